// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texture, sampler and image-buffer descriptors of v6 and v7.

use super::address::{Extent, Layout, Plane};
use super::format::{Channel, PixelFormat, UnknownFormat, swizzle};

/// Why a descriptor cannot be used. Each carries the bits that are at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorError {
    /// The descriptor's type field is this, not that of the descriptor asked for.
    Type(u32),
    /// Unknown pixel format.
    Format(UnknownFormat),
    /// Reserved selector in these swizzle bits.
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

/// A texture descriptor (32 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texture {
    /// Shape.
    pub dimension: Dimension,
    /// Pixel format.
    pub format: PixelFormat,
    /// The 22-bit pixel format word, for conversion descriptors.
    pub format_word: u32,
    /// Applied after the format's own order.
    pub swizzle: [Channel; 4],
    /// Arrangement of texels.
    pub layout: Layout,
    /// Size of level 0.
    pub extent: Extent,
    /// Mipmap levels.
    pub levels: u32,
    /// Array layers (cubes count once).
    pub layers: u32,
    /// Samples per texel.
    pub samples: u32,
    /// GPU address of the surface records.
    pub surfaces: u64,
    /// Records are ordered as v6 does.
    v6: bool,
}

impl Texture {
    /// Bytes of a surface record: address, row stride, slice stride.
    pub const SURFACE_BYTES: u64 = 16;

    /// Decodes a descriptor; `v6` selects that generation's pixel formats and order of records.
    pub fn parse(w: &[u32; 8], v6: bool) -> Result<Texture, DescriptorError> {
        if w[0] & 15 != 2 {
            return Err(DescriptorError::Type(w[0] & 15));
        }
        let format = PixelFormat::parse(w[0] >> 10, v6).map_err(DescriptorError::Format)?;
        let bits = w[2] & 0xfff;
        let swizzle = swizzle(bits).ok_or(DescriptorError::Swizzle(bits))?;
        let layout = match w[2] >> 12 & 15 {
            1 => Layout::Interleaved,
            2 => Layout::Linear,
            other => return Err(DescriptorError::Layout(other)),
        };
        let dimension = match w[0] >> 4 & 3 {
            0 => Dimension::Cube,
            1 => Dimension::One,
            2 => Dimension::Two,
            _ => Dimension::Three,
        };
        let three = dimension == Dimension::Three;
        Ok(Texture {
            dimension,
            format,
            format_word: w[0] >> 10,
            swizzle,
            layout,
            extent: Extent {
                width: (w[1] & 0xffff) + 1,
                height: (w[1] >> 16) + 1,
                depth: if three { (w[7] & 0xffff) + 1 } else { 1 },
            },
            levels: (w[2] >> 16 & 31) + 1,
            layers: (w[6] & 0xffff) + 1,
            samples: 1 << (w[3] >> 13 & 7),
            surfaces: (w[5] as u64) << 32 | w[4] as u64,
            v6,
        })
    }

    /// Address of the surface record of a level of a layer (and, of a cube, face).
    pub const fn surface_record(&self, layer: u32, face: u32, level: u32, sample: u32) -> u64 {
        let faces = match self.dimension {
            Dimension::Cube => 6,
            _ => 1,
        };
        let (layer, face, level) = (layer as u64, face as u64, level as u64);
        let (samples, levels) = (self.samples as u64, self.levels as u64);
        let index = if self.v6 {
            ((layer * levels + level) * faces + face) * samples + sample as u64
        } else {
            ((layer * faces + face) * samples + sample as u64) * levels + level
        };
        self.surfaces.wrapping_add(index * Self::SURFACE_BYTES)
    }

    /// The texels that a surface record describes.
    pub fn plane(&self, record: &[u8; 16]) -> Plane {
        let word =
            |i: usize| u32::from_le_bytes([record[i], record[i + 1], record[i + 2], record[i + 3]]);
        Plane {
            base: (word(4) as u64) << 32 | word(0) as u64,
            layout: self.layout,
            texel: self.format.bytes as u32,
            row: word(8) as i32,
            slice: word(12) as i32,
        }
    }
}

/// What becomes of a coordinate outside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrap {
    /// The image repeats.
    Repeat,
    /// The texel at the edge.
    ClampToEdge,
    /// The border colour.
    ClampToBorder,
    /// The image repeats, mirrored every other time.
    Mirror,
    /// Mirrored once, then the texel at the edge.
    MirrorClampToEdge,
    /// Mirrored once, then the border colour.
    MirrorClampToBorder,
}

impl Wrap {
    fn parse(bits: u32) -> Result<Wrap, DescriptorError> {
        Ok(match bits & 15 {
            8 => Wrap::Repeat,
            9 => Wrap::ClampToEdge,
            // 10 and 14 blend with the border at the edge when filtering; nearest filtering clamps.
            10 => Wrap::ClampToEdge,
            11 => Wrap::ClampToBorder,
            12 => Wrap::Mirror,
            13 | 14 => Wrap::MirrorClampToEdge,
            15 => Wrap::MirrorClampToBorder,
            other => return Err(DescriptorError::Wrap(other)),
        })
    }
}

/// How levels are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mipmap {
    /// The nearest level.
    Nearest,
    /// Level 0.
    None,
    /// The two nearest levels, blended.
    Trilinear,
}

/// A sampler descriptor (32 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Wrap modes of the first, second and third coordinate.
    pub wrap: [Wrap; 3],
    /// Coordinates are fractions of the image's size.
    pub normalized: bool,
    /// Filter of a magnified image takes the nearest texel.
    pub magnify_nearest: bool,
    /// Filter of a reduced image takes the nearest texel.
    pub minify_nearest: bool,
    /// Choice of levels.
    pub mipmap: Mipmap,
    /// Least level of detail, in 1/256.
    pub minimum_lod: u32,
    /// Greatest level of detail, in 1/256.
    pub maximum_lod: u32,
    /// Added to the level of detail, in 1/256.
    pub lod_bias: i32,
    /// Comparison with the reference (GL's order: never, <, ==, <=, >, !=, >=, always).
    pub compare: u32,
    /// Border colour: numbers or integers as the texture's format asks.
    pub border: [u32; 4],
}

impl Sampler {
    /// Decodes a descriptor.
    pub fn parse(w: &[u32; 8]) -> Result<Sampler, DescriptorError> {
        if w[0] & 15 != 1 {
            return Err(DescriptorError::Type(w[0] & 15));
        }
        let mipmap = match w[0] >> 30 {
            0 => Mipmap::Nearest,
            1 => Mipmap::None,
            3 => Mipmap::Trilinear,
            other => return Err(DescriptorError::Mipmap(other)),
        };
        Ok(Sampler {
            wrap: [
                Wrap::parse(w[0] >> 16)?,
                Wrap::parse(w[0] >> 12)?,
                Wrap::parse(w[0] >> 8)?,
            ],
            normalized: w[0] >> 25 & 1 == 1,
            minify_nearest: w[0] >> 27 & 1 == 1,
            magnify_nearest: w[0] >> 28 & 1 == 1,
            mipmap,
            minimum_lod: w[1] & 0x1fff,
            maximum_lod: w[1] >> 16 & 0x1fff,
            lod_bias: w[2] as i16 as i32,
            compare: w[1] >> 13 & 7,
            border: [w[4], w[5], w[6], w[7]],
        })
    }
}

/// A storage image: an attribute with its buffer record and the continuation of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageBuffer {
    /// Pixel format.
    pub format: PixelFormat,
    /// The 22-bit pixel format word, for conversion descriptors.
    pub format_word: u32,
    /// Texels in memory.
    pub plane: Plane,
    /// Size in texels.
    pub extent: Extent,
}

impl ImageBuffer {
    /// Index of the buffer record that an attribute names.
    pub const fn buffer_index(attribute: &[u32; 2]) -> u32 {
        attribute[0] & 0x1ff
    }

    /// Decodes an attribute, the buffer record it names and the record after that.
    pub fn parse(
        attribute: &[u32; 2],
        buffer: &[u32; 4],
        continuation: &[u32; 4],
        v6: bool,
    ) -> Result<ImageBuffer, DescriptorError> {
        let layout = match buffer[0] & 0x3f {
            5 => Layout::Linear,
            6 => Layout::Interleaved,
            other => return Err(DescriptorError::Type(other)),
        };
        if continuation[0] & 0x3f != 32 {
            return Err(DescriptorError::Type(continuation[0] & 0x3f));
        }
        let format_word = attribute[0] >> 10;
        let format = PixelFormat::parse(format_word, v6).map_err(DescriptorError::Format)?;
        let pointer = ((buffer[1] as u64) << 32 | buffer[0] as u64) & 0x00ff_ffff_ffff_ffc0;
        let offset = if attribute[0] >> 9 & 1 == 1 {
            attribute[1] as i32 as i64
        } else {
            0
        };
        Ok(ImageBuffer {
            format,
            format_word,
            plane: Plane {
                base: pointer.wrapping_add(offset as u64),
                layout,
                texel: buffer[2],
                row: continuation[2] as i32,
                slice: continuation[3] as i32,
            },
            extent: Extent {
                width: (continuation[0] >> 16) + 1,
                height: (continuation[1] & 0xffff) + 1,
                depth: (continuation[1] >> 16) + 1,
            },
        })
    }

    /// Address of a texel, or `None` outside the image.
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
        let mut record = [0; 16];
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
