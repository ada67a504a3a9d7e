// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texture instructions, lane after lane.

use gpureplay_shader::core::{Core, Done};
use gpureplay_shader::ir::micro::MicroOp;
use gpureplay_shader::rows::{REGISTERS, Rows, lanes};

use super::image::{finish, sampler, texture};
use crate::image::{self, Coordinates, Dimension, Kind, Level, Lookup, RegisterFormat, Texel};

#[derive(Clone, Copy)]
struct Request(u32);

impl Request {
    fn field(self, start: u32, size: u32) -> u32 {
        self.0 >> start & ((1 << size) - 1)
    }

    fn operation(self) -> u32 {
        self.field(12, 3)
    }

    fn flag(self, bit: u32) -> bool {
        self.field(bit, 1) == 1
    }

    /// `None`: in a staging register.
    fn indices(self) -> (Option<u32>, Option<u32>) {
        let (low, high) = (self.field(0, 4), self.field(4, 7));
        if self.flag(11) {
            return (Some(high), Some(low));
        }
        match low & 3 {
            0 => (Some(high), Some(high)),
            1 => (None, Some(high)),
            2 => (Some(high), None),
            _ => (None, None),
        }
    }

    fn dimension(self) -> Dimension {
        match self.field(18, 2) {
            0 => Dimension::Cube,
            1 => Dimension::One,
            2 => Dimension::Two,
            _ => Dimension::Three,
        }
    }
}

const FETCH: u32 = 6;
const TEXTURE: u32 = 7;

/// Packed with a face: its top three bits are always the same.
pub(super) fn cube_coordinate(word: u32) -> f32 {
    f32::from_bits(word & 0x1fff_ffff | 0x2000_0000)
}

/// `TEXC`: coordinates `a`, `b`, descriptor `c`, the rest in staging registers.
pub(crate) fn texture_operation(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let mut written = 0;
    for lane in lanes(rows.mask()) {
        let request = Request(rows.get(op.c).0[lane]);
        let mut next = op.d;
        let mut staging = |wanted: bool| {
            if !wanted {
                return 0;
            }
            let register = next.min(REGISTERS as u16 - 1);
            next += 1;
            rows.get(register).0[lane]
        };
        let (x, y) = (rows.get(op.a).0[lane], rows.get(op.b).0[lane]);
        let kind = request.operation();
        let lod_mode = request.field(20, 3);
        let dimension = request.dimension();
        let z = staging(dimension == Dimension::Three);
        let lod = staging(kind == FETCH || (kind == TEXTURE && matches!(lod_mode, 4 | 5)));
        staging(kind == TEXTURE && lod_mode == 3);
        let shadow = staging(request.flag(16));
        let layer = staging(request.flag(17));
        let offsets = staging(request.flag(15) && matches!(kind, FETCH | TEXTURE));
        let (texture_index, sampler_index) = request.indices();
        let sampler_staged = staging(sampler_index.is_none());
        let texture_staged = staging(texture_index.is_none());

        let texture = texture(core, texture_index.unwrap_or(texture_staged))?;
        let offset = [0, 8, 16].map(|at| i32::from((offsets >> at) as i8));
        let mut lookup = Lookup {
            texture: &texture,
            fetch: |va, to: &mut [u8]| core.read.read(va, to),
        };
        let gathers = kind == FETCH && lod_mode >= 4;
        let texel = if kind == FETCH && !gathers {
            let moved = |at: u32, by: i32| at.wrapping_add(by as u32);
            let at = [
                moved(x, offset[0]),
                moved(y, offset[1]),
                moved(z, offset[2]),
            ];
            let at = match dimension {
                Dimension::One => [at[0], 0, 0],
                Dimension::Three => at,
                _ => [at[0], at[1], 0],
            };
            let level = Level {
                layer,
                face: lod >> 16,
                level: lod >> 8 & 0xff,
            };
            image::fetch_texel(&mut lookup, at, level)?
        } else if gathers || kind == TEXTURE {
            let cube = dimension == Dimension::Cube;
            let first = if cube {
                cube_coordinate(x)
            } else {
                f32::from_bits(x)
            };
            let coordinates = Coordinates {
                position: [first, f32::from_bits(y), f32::from_bits(z)],
                layer,
                face: if cube { x >> 29 } else { 0 },
                lod: if matches!(lod_mode, 4 | 5) {
                    f32::from(lod as i16) / 256.0
                } else {
                    0.0
                },
                offset,
                reference: request.flag(16).then_some(f32::from_bits(shadow)),
            };
            let sampler = sampler(core, sampler_index.unwrap_or(sampler_staged))?;
            let mut lookup = Lookup {
                texture: &texture,
                fetch: |va, to: &mut [u8]| core.read.read(va, to),
            };
            if gathers {
                image::gather(&mut lookup, &sampler, &coordinates, (lod_mode - 4) as usize)?
            } else {
                image::sample(&mut lookup, &sampler, &coordinates)?
            }
        } else {
            // Gradients are zero without neighbours.
            [0; 4]
        };
        let (words, count) = result(request.field(24, 4), texel, texture.format.kind());
        core.results.put(lane, &words);
        let mask = request.field(28, 4);
        written = if count == 4 {
            mask
        } else {
            u32::from(mask & 3 != 0) | u32::from(mask & 12 != 0) << 1
        };
    }
    for word in 0..4 {
        let register = usize::from(op.d) + word;
        if written >> word & 1 == 1 && register < REGISTERS {
            rows.replace(register as u16, &mut core.results.0[word]);
        }
    }
    Ok(())
}

fn result(format: u32, texel: Texel, kind: Kind) -> ([u32; 4], usize) {
    use gpureplay_shader::alu::{Clamp, float};
    let clamp = [
        Clamp::None,
        Clamp::ZeroInf,
        Clamp::MinusOneOne,
        Clamp::ZeroOne,
    ][format as usize & 3];
    let clamped = || texel.map(|word| float::clamp(word, clamp));
    match format {
        0..4 => (RegisterFormat::F16.pack(clamped(), kind), 2),
        4..8 => (clamped(), 4),
        12 => (RegisterFormat::U16.pack(texel, kind), 2),
        13 => (RegisterFormat::I16.pack(texel, kind), 2),
        _ => (texel, 4),
    }
}

/// `TEXS_2D`, `TEXS_CUBE`: coordinates `a`, `b`, face in top bits of `c`. Modifiers: texture in 7:0, sampler in
/// 15:8, half precision in 16, cube in 17.
pub(crate) fn sample_simple(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let texture = texture(core, op.m & 0xff)?;
    let sampler = sampler(core, op.m >> 8 & 0xff)?;
    let (half, cube) = (op.m >> 16 & 1 == 1, op.m >> 17 & 1 == 1);
    for lane in lanes(rows.mask()) {
        let (x, y) = (rows.get(op.a).0[lane], rows.get(op.b).0[lane]);
        let coordinates = Coordinates {
            position: [f32::from_bits(x), f32::from_bits(y), 0.0],
            face: if cube {
                rows.get(op.c).0[lane] >> 29
            } else {
                0
            },
            ..Coordinates::default()
        };
        let mut lookup = Lookup {
            texture: &texture,
            fetch: |va, to: &mut [u8]| core.read.read(va, to),
        };
        let texel = image::sample(&mut lookup, &sampler, &coordinates)?;
        let words = if half {
            RegisterFormat::F16.pack(texel, texture.format.kind())
        } else {
            texel
        };
        core.results.put(lane, &words);
    }
    finish(op, rows, core, if half { 2 } else { 4 })
}
