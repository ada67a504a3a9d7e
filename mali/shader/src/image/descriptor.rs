// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texture, sampler and image-buffer descriptors.

use mali_facts::PixelFormat;
use mali_facts::texel::{Channel, TexelFormat, UnknownFormat, swizzle};
use mali_facts::{
    Attribute, AttributeBuffer, AttributeBuffer3d, Surface, attribute_type, descriptor_type,
    mipmap_mode, texel_ordering, texture_dimension, valhall, wrap_mode,
};

use super::address::{Extent, Layout, Plane};

/// Without compression.
const GENERIC_PLANE: u32 = 1;

/// Why a descriptor cannot be used, with the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorError {
    /// The type field is another descriptor's.
    Type(u32),
    /// Unknown pixel format.
    Format(UnknownFormat),
    /// Reserved selector.
    Swizzle(u32),
    /// Unknown texel arrangement.
    Layout(u32),
    /// Unknown wrap mode.
    Wrap(u32),
    /// Unknown mipmap mode.
    Mipmap(u32),
}

impl core::fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Type(t) => write!(f, "descriptor of type {t}"),
            Self::Format(e) => write!(f, "{e}"),
            Self::Swizzle(s) => write!(f, "reserved selector in swizzle {s:#05x}"),
            Self::Layout(l) => write!(f, "texel arrangement {l} is not known"),
            Self::Wrap(w) => write!(f, "wrap mode {w} is not known"),
            Self::Mipmap(m) => write!(f, "mipmap mode {m} is not known"),
        }
    }
}

impl std::error::Error for DescriptorError {}

/// Shape of a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Six faces.
    Cube = 0,
    /// A row.
    One = 1,
    /// An area.
    Two = 2,
    /// A volume.
    Three = 3,
}

/// Texture descriptor (32 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texture {
    /// Shape.
    pub dimension: Dimension,
    /// Pixel format.
    pub format: TexelFormat,
    /// 22 bits, for conversion descriptors.
    pub format_word: u32,
    /// After the format's order.
    pub swizzle: [Channel; 4],
    /// Of texels.
    pub layout: Layout,
    /// Of level 0.
    pub extent: Extent,
    /// Mipmap levels.
    pub levels: u32,
    /// Array layers (cubes count once).
    pub layers: u32,
    /// Per texel.
    pub samples: u32,
    /// Address of surface records.
    pub surfaces: u64,
    records: Records,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Records {
    V6,
    V7,
    Planes,
}

/// Each generation has the same fields in other places.
macro_rules! described {
    ($texture:expr, $records:expr, $layout:expr) => {{
        let (texture, records) = ($texture, $records);
        let format_word = texture.format() as u32;
        let format = TexelFormat::parse(PixelFormat(format_word), records == Records::V6);
        let bits = texture.swizzle() as u32;
        let dimension = dimension(texture.dimension());
        let three = dimension == Dimension::Three;
        Ok(Texture {
            dimension,
            format: format.map_err(DescriptorError::Format)?,
            format_word,
            swizzle: swizzle(bits).ok_or(DescriptorError::Swizzle(bits))?,
            layout: $layout,
            extent: Extent {
                width: texture.width() as u32,
                height: texture.height() as u32,
                depth: if three { texture.depth() as u32 } else { 1 },
            },
            levels: texture.levels() as u32,
            layers: texture.array_size() as u32,
            samples: texture.sample_count() as u32,
            surfaces: texture.surfaces(),
            records,
        })
    }};
}

fn dimension(field: u64) -> Dimension {
    match field as u32 {
        texture_dimension::CUBE => Dimension::Cube,
        texture_dimension::ONE => Dimension::One,
        texture_dimension::TWO => Dimension::Two,
        _ => Dimension::Three,
    }
}

impl Texture {
    /// Most bytes of a surface record.
    pub const LONGEST_RECORD: usize = valhall::Plane::SIZE;

    /// Bytes of a surface record.
    pub const fn record_bytes(&self) -> usize {
        match self.records {
            Records::Planes => valhall::Plane::SIZE,
            _ => Surface::SIZE,
        }
    }

    /// `v6` selects pixel formats and record order.
    pub fn parse(w: &[u32; 8], v6: bool) -> Result<Texture, DescriptorError> {
        let texture = mali_facts::Texture { words: *w };
        if texture.descriptor_type() as u32 != descriptor_type::TEXTURE {
            return Err(DescriptorError::Type(texture.descriptor_type() as u32));
        }
        let records = if v6 { Records::V6 } else { Records::V7 };
        described!(
            texture,
            records,
            match texture.texel_ordering() as u32 {
                texel_ordering::INTERLEAVED => Layout::Interleaved,
                texel_ordering::LINEAR => Layout::Linear,
                other => return Err(DescriptorError::Layout(other)),
            }
        )
    }

    /// Decodes Valhall's; the first plane says how texels lie in all.
    pub fn with_planes(
        texture: &valhall::Texture,
        first: &valhall::Plane,
    ) -> Result<Texture, DescriptorError> {
        if texture.descriptor_type() as u32 != valhall::descriptor_type::TEXTURE {
            return Err(DescriptorError::Type(texture.descriptor_type() as u32));
        }
        if first.descriptor_type() as u32 != valhall::descriptor_type::PLANE {
            return Err(DescriptorError::Type(first.descriptor_type() as u32));
        }
        if first.plane_type() as u32 != GENERIC_PLANE {
            return Err(DescriptorError::Layout(first.plane_type() as u32));
        }
        described!(
            texture,
            Records::Planes,
            match first.clump_ordering() as u32 {
                valhall::clump_ordering::TILED => Layout::Interleaved,
                valhall::clump_ordering::LINEAR => Layout::Linear,
                other => return Err(DescriptorError::Layout(other)),
            }
        )
    }

    /// Address of a level's surface record.
    pub const fn surface_record(&self, layer: u32, face: u32, level: u32, sample: u32) -> u64 {
        let faces = match self.dimension {
            Dimension::Cube => 6,
            _ => 1,
        };
        let (layer, face, level) = (layer as u64, face as u64, level as u64);
        let (samples, levels) = (self.samples as u64, self.levels as u64);
        let index = if matches!(self.records, Records::V6) {
            ((layer * levels + level) * faces + face) * samples + sample as u64
        } else {
            ((layer * faces + face) * samples + sample as u64) * levels + level
        };
        self.surfaces
            .wrapping_add(index * self.record_bytes() as u64)
    }

    /// Decodes a record of [`Texture::record_bytes`] bytes.
    pub fn plane(&self, record: &[u8; Texture::LONGEST_RECORD]) -> Plane {
        let (base, row, slice) = match (self.records, record.first_chunk()) {
            (Records::V6 | Records::V7, Some(record)) => {
                let surface = Surface::from_bytes(record);
                let strides = (surface.row_stride(), surface.surface_stride());
                (surface.pointer(), strides.0 as i32, strides.1 as i32)
            }
            _ => {
                let plane = valhall::Plane::from_bytes(record);
                let strides = (plane.row_stride(), plane.slice_stride());
                (plane.pointer(), strides.0 as i32, strides.1 as i32)
            }
        };
        Plane {
            base,
            layout: self.layout,
            texel: self.format.bytes as u32,
            row,
            slice,
        }
    }
}

/// Coordinates outside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrap {
    /// The image repeats.
    Repeat,
    /// The texel at the edge.
    ClampToEdge,
    /// The border colour.
    ClampToBorder,
    /// Repeats, mirrored every other time.
    Mirror,
    /// Mirrored once, then the edge.
    MirrorClampToEdge,
    /// Mirrored once, then the border.
    MirrorClampToBorder,
}

impl Wrap {
    fn parse(bits: u64) -> Result<Wrap, DescriptorError> {
        Ok(match bits as u32 {
            wrap_mode::REPEAT => Wrap::Repeat,
            wrap_mode::CLAMP_TO_EDGE => Wrap::ClampToEdge,
            // Plain "clamp" blends with the border when filtering; nearest filtering clamps.
            wrap_mode::CLAMP => Wrap::ClampToEdge,
            wrap_mode::CLAMP_TO_BORDER => Wrap::ClampToBorder,
            wrap_mode::MIRRORED_REPEAT => Wrap::Mirror,
            wrap_mode::MIRRORED_CLAMP_TO_EDGE | wrap_mode::MIRRORED_CLAMP => {
                Wrap::MirrorClampToEdge
            }
            wrap_mode::MIRRORED_CLAMP_TO_BORDER => Wrap::MirrorClampToBorder,
            other => return Err(DescriptorError::Wrap(other)),
        })
    }
}

/// Choice of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mipmap {
    /// The nearest level.
    Nearest,
    /// Level 0.
    None,
    /// The two nearest levels, blended.
    Trilinear,
}

/// Sampler descriptor (32 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// By coordinate.
    pub wrap: [Wrap; 3],
    /// Coordinates are fractions.
    pub normalized: bool,
    /// Magnifying takes the nearest texel.
    pub magnify_nearest: bool,
    /// Reducing takes the nearest texel.
    pub minify_nearest: bool,
    /// Choice of levels.
    pub mipmap: Mipmap,
    /// In 1/256.
    pub minimum_lod: u32,
    /// In 1/256.
    pub maximum_lod: u32,
    /// Added to the level, in 1/256.
    pub lod_bias: i32,
    /// GL's order: never, <, ==, <=, >, !=, >=, always.
    pub compare: u32,
    /// Numbers or integers, by the texture's format.
    pub border: [u32; 4],
}

macro_rules! decoded {
    ($sampler:expr) => {{
        if $sampler.descriptor_type() as u32 != descriptor_type::SAMPLER {
            return Err(DescriptorError::Type($sampler.descriptor_type() as u32));
        }
        let mipmap = match $sampler.mipmap_mode() as u32 {
            mipmap_mode::NEAREST => Mipmap::Nearest,
            mipmap_mode::NONE => Mipmap::None,
            mipmap_mode::TRILINEAR => Mipmap::Trilinear,
            other => return Err(DescriptorError::Mipmap(other)),
        };
        Ok(Sampler {
            wrap: [
                Wrap::parse($sampler.wrap_s())?,
                Wrap::parse($sampler.wrap_t())?,
                Wrap::parse($sampler.wrap_r())?,
            ],
            normalized: $sampler.normalized_coordinates() == 1,
            minify_nearest: $sampler.minify_nearest() == 1,
            magnify_nearest: $sampler.magnify_nearest() == 1,
            mipmap,
            minimum_lod: $sampler.minimum_lod() as u32,
            maximum_lod: $sampler.maximum_lod() as u32,
            lod_bias: $sampler.lod_bias() as i32,
            compare: $sampler.compare_function() as u32,
            border: [
                $sampler.border_red() as u32,
                $sampler.border_green() as u32,
                $sampler.border_blue() as u32,
                $sampler.border_alpha() as u32,
            ],
        })
    }};
}

impl Sampler {
    /// Decodes a descriptor.
    pub fn parse(w: &[u32; 8]) -> Result<Sampler, DescriptorError> {
        let sampler = mali_facts::Sampler { words: *w };
        decoded!(sampler)
    }

    /// Decodes a descriptor of Valhall.
    pub fn of_valhall(sampler: &valhall::Sampler) -> Result<Sampler, DescriptorError> {
        decoded!(sampler)
    }
}

/// Storage image: attribute, buffer record, its continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageBuffer {
    /// Pixel format.
    pub format: TexelFormat,
    /// 22 bits, for conversion descriptors.
    pub format_word: u32,
    /// Texels in memory.
    pub plane: Plane,
    /// In texels.
    pub extent: Extent,
}

impl ImageBuffer {
    /// Buffer record that an attribute names.
    pub fn buffer_index(attribute: &[u32; 2]) -> u32 {
        Attribute { words: *attribute }.buffer_index() as u32
    }

    /// Decodes attribute, buffer record, next record.
    pub fn parse(
        attribute: &[u32; 2],
        buffer: &[u32; 4],
        continuation: &[u32; 4],
        v6: bool,
    ) -> Result<ImageBuffer, DescriptorError> {
        let attribute = Attribute { words: *attribute };
        let buffer = AttributeBuffer { words: *buffer };
        let continuation = AttributeBuffer3d {
            words: *continuation,
        };
        let layout = match buffer.buffer_type() as u32 {
            attribute_type::LINEAR_3D => Layout::Linear,
            attribute_type::INTERLEAVED_3D => Layout::Interleaved,
            other => return Err(DescriptorError::Type(other)),
        };
        if continuation.record_type() as u32 != attribute_type::CONTINUATION {
            return Err(DescriptorError::Type(continuation.record_type() as u32));
        }
        let format_word = attribute.format() as u32;
        let format =
            TexelFormat::parse(PixelFormat(format_word), v6).map_err(DescriptorError::Format)?;
        let offset = attribute.enabled_offset();
        Ok(ImageBuffer {
            format,
            format_word,
            plane: Plane {
                base: buffer.pointer().wrapping_add(offset as u64),
                layout,
                texel: buffer.stride() as u32,
                row: continuation.row_stride() as i32,
                slice: continuation.slice_stride() as i32,
            },
            extent: Extent {
                width: continuation.s_dimension() as u32,
                height: continuation.t_dimension() as u32,
                depth: continuation.r_dimension() as u32,
            },
        })
    }

    /// Address of a texel; `None` outside the image.
    #[inline]
    pub const fn address(&self, x: u32, y: u32, z: u32) -> Option<u64> {
        if self.extent.contains(x, y, z) {
            Some(self.plane.address(x, y, z))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RGBA8: u32 = 187 << 12;

    fn texture(dimension: u32, levels: u32, v6: bool) -> Texture {
        let format = if v6 { RGBA8 | 0o3210 } else { RGBA8 };
        let w = [
            2 | dimension << 4 | format << 10,
            63 | 31 << 16,
            0o3210 | 2 << 12 | (levels - 1) << 16,
            0,
            0x8000_0000,
            0x12,
            3,
            7,
        ];
        Texture::parse(&w, v6).unwrap()
    }

    #[test]
    fn textures() {
        let t = texture(3, 1, false);
        assert_eq!(
            (t.extent.width, t.extent.height, t.extent.depth),
            (64, 32, 8)
        );
        assert_eq!((t.layers, t.surfaces), (4, 0x12_8000_0000));
        let t = texture(0, 3, false);
        assert_eq!(t.surface_record(2, 5, 1, 0) - t.surfaces, 16 * (17 * 3 + 1));
        let t = texture(0, 3, true);
        assert_eq!(t.surface_record(2, 5, 1, 0) - t.surfaces, 16 * (7 * 6 + 5));
        let mut record = [0; Texture::LONGEST_RECORD];
        record[..8].copy_from_slice(&0x1_2345_6780u64.to_le_bytes());
        record[8..12].copy_from_slice(&256u32.to_le_bytes());
        let p = t.plane(&record);
        assert_eq!((p.base, p.row, p.texel), (0x1_2345_6780, 256, 4));
        assert_eq!(
            Texture::parse(&[0; 8], false),
            Err(DescriptorError::Type(0))
        );
        let afbc = [2 | 2 << 4 | RGBA8 << 10, 0, 12 << 12, 0, 0, 0, 0, 0];
        assert_eq!(
            Texture::parse(&afbc, false),
            Err(DescriptorError::Layout(12))
        );
    }

    #[test]
    fn samplers() {
        let w = [
            1 | 8 << 8 | 9 << 12 | 11 << 16 | 1 << 27 | 1 << 28 | 1 << 30,
            0x100 | 3 << 13 | 0x200 << 16,
            0xff80,
            0,
            1,
            2,
            3,
            4,
        ];
        let s = Sampler::parse(&w).unwrap();
        assert_eq!(
            s.wrap,
            [Wrap::ClampToBorder, Wrap::ClampToEdge, Wrap::Repeat]
        );
        assert!(!s.normalized && s.magnify_nearest && s.minify_nearest);
        assert_eq!((s.minimum_lod, s.maximum_lod, s.lod_bias), (256, 512, -128));
        assert_eq!((s.compare, s.border), (3, [1, 2, 3, 4]));
        assert!(Sampler::parse(&[1; 8]).is_err());
    }

    #[test]
    fn image_buffers() {
        let attribute = [4 | 1 << 9 | RGBA8 << 10, 0x20];
        assert_eq!(ImageBuffer::buffer_index(&attribute), 4);
        let buffer = [0x8000_0040 | 5, 0, 4, 0x1000];
        let continuation = [32 | 15 << 16, 7 | 1 << 16, 64, 512];
        let i = ImageBuffer::parse(&attribute, &buffer, &continuation, false).unwrap();
        assert_eq!(i.address(1, 2, 1), Some(0x8000_0060 + 4 + 128 + 512));
        assert_eq!(i.address(16, 0, 0), None);
        assert_eq!(i.address(0, 0, 2), None);
        let bad = ImageBuffer::parse(&attribute, &[1, 0, 4, 0], &continuation, false);
        assert_eq!(bad, Err(DescriptorError::Type(1)));
    }
}
