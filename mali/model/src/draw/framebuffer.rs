// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pixels of fragment jobs, and in memory.

use gpureplay_memory::Bus;
use mali_facts::{
    Architecture, FragmentPayload, FramebufferParameters, RENDER_TARGET_OFFSET, RenderTarget,
    TILE_SIDE, texel_ordering,
};
use mali_shader::image::{Layout, Plane};

use super::Job;
use crate::environment::JobFault;

const RGBA: u64 = 0o3210;

/// `end` is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) start: [u32; 2],
    pub(crate) end: [u32; 2],
}

impl Rectangle {
    pub(crate) fn intersection(&self, other: &Rectangle) -> Option<Rectangle> {
        let both = Rectangle {
            start: [0, 1].map(|i| self.start[i].max(other.start[i])),
            end: [0, 1].map(|i| self.end[i].min(other.end[i])),
        };
        let empty = (0..2).any(|i| both.start[i] >= both.end[i]);
        (!empty).then_some(both)
    }

    pub(crate) fn size(&self) -> [u32; 2] {
        [0, 1].map(|i| self.end[i] - self.start[i])
    }
}

/// Loads old content into the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameShader {
    Never,
    Always,
    /// In tiles that are drawn to; others keep their memory.
    Intersect,
}

#[derive(Clone, Debug)]
pub(crate) struct Framebuffer {
    pub(crate) bounds: Option<Rectangle>,
    pub(crate) frame: Rectangle,
    pub(crate) frame_shader: FrameShader,
    pub(crate) frame_draw: u64,
    /// 0: nothing was drawn.
    pub(crate) tiler: u64,
    pub(crate) target: Target,
}

#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Of the blend unit's pixel.
    pub(crate) bytes: usize,
    pub(crate) clear: [u8; 16],
    pub(crate) plane: Option<Plane>,
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Raw(usize),
    /// So many bytes, by number in the tile's pixel; 4: 0, 5: 255.
    Components(usize, [u8; 4]),
}

impl Target {
    pub(crate) fn stored(&self, pixel: &[u8; 16]) -> ([u8; 16], usize) {
        match self.source {
            Source::Raw(bytes) => (*pixel, bytes),
            Source::Components(count, from) => {
                let mut stored = [0; 16];
                for (to, from) in stored.iter_mut().zip(from) {
                    *to = match from {
                        0..4 => pixel[usize::from(from)],
                        4 => 0,
                        _ => 255,
                    };
                }
                (stored, count)
            }
        }
    }

    fn read<B: Bus>(job: &Job<'_, B>, at: u64) -> Result<Target, JobFault> {
        let target = RenderTarget::from_bytes(&job.memory.bytes(at)?);
        let writes = target.write_enable() == 1;
        let (block, little_endian) = match job.environment.profile.architecture {
            Architecture::V6 => (target.block_format() >> 2, target.block_format() & 3 == 0),
            _ => (target.block_format(), true),
        };
        let layout = match block as u32 {
            texel_ordering::INTERLEAVED => Some(Layout::Interleaved),
            texel_ordering::LINEAR => Some(Layout::Linear),
            _ => None,
        };
        let format = formats(
            target.internal_format(),
            target.writeback_format(),
            target.swizzle(),
        );
        job.demand(&[
            (target.yuv() == 0, "a YUV render target"),
            (target.msaa() == 0, "a render target with several samples"),
            (target.srgb() == 0, "an sRGB render target"),
            (little_endian, "a big-endian render target"),
            (
                layout.is_some() || !writes,
                "a render target that is neither linear nor u-interleaved",
            ),
        ])?;
        let Some((bytes, source)) = format else {
            return Err(job.unmodelled(format!(
                "a render target of internal format {}, writeback format {} and swizzle {:#05o}",
                target.internal_format(),
                target.writeback_format(),
                target.swizzle()
            )));
        };
        let row = i32::try_from(target.row_stride())
            .map_err(|_| job.invalid("the render target's rows are 2 GiB apart or more"))?;
        let texel = match source {
            Source::Raw(count) | Source::Components(count, _) => count as u32,
        };
        let clear = u128::from(target.clear_high()) << 64 | u128::from(target.clear_low());
        Ok(Target {
            bytes,
            clear: clear.to_le_bytes(),
            plane: layout.filter(|_| writes).map(|layout| Plane {
                base: target.base(),
                layout,
                texel,
                row,
                slice: 0,
            }),
            source,
        })
    }
}

/// Bytes of the blend unit's pixel, and the source of those in memory.
fn formats(internal: u64, writeback: u64, swizzle: u64) -> Option<(usize, Source)> {
    match (internal, writeback) {
        // Four components of eight bits; one to four in memory.
        (1, 16..=19) => {
            let from = [0, 3, 6, 9].map(|shift| (swizzle >> shift & 7) as u8);
            let known = from.iter().all(|&from| from < 6);
            known.then_some((4, Source::Components(writeback as usize - 15, from)))
        }
        // Three components take as much room as four.
        (32..=36, 0..=7) => {
            let bytes = 1usize << (internal - 32);
            let stored = [1usize, 2, 3, 4, 6, 8, 12, 16][writeback as usize];
            let same = bytes == stored.next_power_of_two() && swizzle == RGBA;
            same.then_some((stored, Source::Raw(stored)))
        }
        _ => None,
    }
}

impl Framebuffer {
    pub(crate) fn read<B: Bus>(
        job: &Job<'_, B>,
        payload: &FragmentPayload,
    ) -> Result<Framebuffer, JobFault> {
        let pointer = payload.framebuffer();
        // Low bits: 0 multi-target framebuffer, 1 extended, 5:2 render targets less one.
        job.demand(&[
            (pointer & 1 == 1, "a single-target framebuffer"),
            (pointer & 2 == 0, "depth, stencil or checksums"),
            (pointer >> 2 & 15 == 0, "several render targets"),
            (payload.has_tile_map() == 0, "a tile enable map"),
        ])?;
        let at = pointer & !63;
        let parameters = FramebufferParameters::from_bytes(&job.memory.bytes(at)?);
        job.demand(&[
            (parameters.target_count() == 1, "several render targets"),
            (parameters.sample_count() == 1, "several samples"),
            (parameters.downsampling() == 0, "downsampling"),
            (parameters.extension() == 0, "depth, stencil or checksums"),
            (parameters.stencil_use() == 0, "stencil"),
            (parameters.depth_use() == 0, "depth"),
            (parameters.crc_use() == 0, "checksums of tiles"),
            (parameters.pre_frame_1() == 0, "a second frame shader"),
            (parameters.post_frame() == 0, "a shader after the frame"),
        ])?;
        let frame_shader = match parameters.pre_frame_0() {
            0 => FrameShader::Never,
            1 => FrameShader::Always,
            2 => FrameShader::Intersect,
            _ => return Err(job.unmodelled("a frame shader of depth")),
        };
        let frame = Rectangle {
            start: [0; 2],
            end: [parameters.width(), parameters.height()].map(|v| v as u32),
        };
        let bounds = Rectangle {
            start: [parameters.minimum_x(), parameters.minimum_y()].map(|v| v as u32),
            end: [parameters.maximum_x(), parameters.maximum_y()].map(|v| v as u32 + 1),
        };
        let tiles = Rectangle {
            start: [payload.minimum_x(), payload.minimum_y()].map(|v| v as u32 * TILE_SIDE),
            end: [payload.maximum_x(), payload.maximum_y()].map(|v| (v as u32 + 1) * TILE_SIDE),
        };
        Ok(Framebuffer {
            bounds: frame
                .intersection(&bounds)
                .and_then(|both| both.intersection(&tiles)),
            frame,
            frame_shader,
            frame_draw: parameters.frame_shaders(),
            tiler: parameters.tiler() & !63,
            target: Target::read(job, at.wrapping_add(RENDER_TARGET_OFFSET))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_intersect() {
        let a = Rectangle {
            start: [2, 3],
            end: [10, 20],
        };
        let b = Rectangle {
            start: [5, 0],
            end: [30, 4],
        };
        let both = a.intersection(&b).unwrap();
        assert_eq!(
            (both.start, both.end, both.size()),
            ([5, 3], [10, 4], [5, 1])
        );
        let c = Rectangle {
            start: [10, 3],
            end: [11, 4],
        };
        assert_eq!(a.intersection(&c), None);
    }

    #[test]
    fn pixels_are_stored_as_their_format_says() {
        let pixel: [u8; 16] = std::array::from_fn(|i| i as u8 + 1);
        let stored = |internal, writeback, swizzle| {
            let (bytes, source) = formats(internal, writeback, swizzle)?;
            let target = Target {
                bytes,
                clear: [0; 16],
                plane: None,
                source,
            };
            let (all, count) = target.stored(&pixel);
            Some((bytes, all[..count].to_vec()))
        };
        assert_eq!(stored(1, 19, 0o3210), Some((4, vec![1, 2, 3, 4])));
        assert_eq!(stored(1, 19, 0o3012), Some((4, vec![3, 2, 1, 4])));
        assert_eq!(stored(1, 19, 0o5432), Some((4, vec![3, 4, 0, 255])));
        assert_eq!(stored(1, 16, 0o5440), Some((4, vec![1])));
        assert_eq!(stored(1, 17, 0o3210), Some((4, vec![1, 2])));
        assert_eq!(stored(32, 0, RGBA), Some((1, vec![1])));
        assert_eq!(stored(35, 5, RGBA), Some((8, pixel[..8].to_vec())));
        assert_eq!(stored(34, 2, RGBA), Some((3, vec![1, 2, 3])));
        assert_eq!(stored(36, 6, RGBA), Some((12, pixel[..12].to_vec())));
        assert_eq!(stored(36, 7, RGBA), Some((16, pixel.to_vec())));
        for refused in [
            (1, 21, RGBA),
            (1, 19, 0o7210),
            (2, 24, RGBA),
            (33, 3, RGBA),
            (34, 3, 0o3012),
        ] {
            let (internal, writeback, swizzle) = refused;
            assert_eq!(stored(internal, writeback, swizzle), None, "{refused:?}");
        }
    }
}
