// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images and textures from resource tables.

use gpureplay_shader::FaultKind;
use gpureplay_shader::core::{Core, Trouble};
use gpureplay_shader::ir::micro::MicroOp;
use gpureplay_shader::operations::sink::SINK;
use gpureplay_shader::rows::{REGISTERS, Rows, lanes};
use mali_facts::valhall;

use super::image::{components, finish, first_plane, load_converted, put_address, register_format};
use super::texture::cube_coordinate;
use crate::image::{self, Coordinates, Dimension, Level, Lookup, RegisterFormat, Sampler, Texture};
use crate::state::State;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Fetch,
    Sample,
    Gather,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) what: What,
    pub(crate) dimension: Dimension,
    pub(crate) array: bool,
    /// Of texels, in one word with a fetch's level.
    pub(crate) offsets: bool,
    pub(crate) shadow: bool,
    /// Level or bias.
    pub(crate) lod: bool,
    /// 32 bits each.
    pub(crate) wide_handles: bool,
    /// Two components share a register.
    pub(crate) narrow_result: bool,
    pub(crate) component: u32,
    pub(crate) mask: u32,
}

impl Request {
    pub(crate) fn word(self) -> u32 {
        let flags = [
            self.array,
            self.offsets,
            self.shadow,
            self.lod,
            self.wide_handles,
            self.narrow_result,
        ];
        let flags = flags
            .iter()
            .rev()
            .fold(0, |m, &flag| m << 1 | u32::from(flag));
        self.what as u32
            | (self.dimension as u32) << 2
            | flags << 4
            | self.component << 10
            | self.mask << 12
    }

    fn of(word: u32) -> Request {
        let flag = |at: u32| word >> (4 + at) & 1 == 1;
        Request {
            what: match word & 3 {
                0 => What::Fetch,
                1 => What::Sample,
                _ => What::Gather,
            },
            dimension: match word >> 2 & 3 {
                0 => Dimension::Cube,
                1 => Dimension::One,
                2 => Dimension::Two,
                _ => Dimension::Three,
            },
            array: flag(0),
            offsets: flag(1),
            shadow: flag(2),
            lod: flag(3),
            wide_handles: flag(4),
            narrow_result: flag(5),
            component: word >> 10 & 3,
            mask: word >> 12 & 15,
        }
    }

    pub(crate) fn registers(self) -> u8 {
        let coordinates = match self.dimension {
            Dimension::One => 1,
            Dimension::Two | Dimension::Cube => 2,
            Dimension::Three => 3,
        };
        let more = [self.array, self.shadow, self.offsets, self.lod];
        coordinates + more.iter().map(|&one| u8::from(one)).sum::<u8>()
    }

    pub(crate) fn results(self) -> u8 {
        let components = self.mask.count_ones() as u8;
        match self.narrow_result {
            true => components.div_ceil(2),
            false => components,
        }
    }

    fn handles(self, low: u32, high: u32) -> [u32; 2] {
        if self.wide_handles {
            return [high, low];
        }
        // Immediate numbers of tables: 12 to 15 are the last four.
        let table = |number: u32| if number < 12 { number } else { number + 48 };
        let texture = table(low >> 27 & 15) << 24 | low >> 16 & 0x7ff;
        let sampler = table(low >> 11 & 15) << 24 | low & 0x7ff;
        [texture, sampler]
    }
}

type Parsed<T> = Result<T, image::descriptor::DescriptorError>;

fn known<T: Copy>(
    core: &mut Core<'_>,
    handle: u32,
    list: fn(&mut State) -> &mut Vec<(u32, T)>,
    parse: fn(&mut Core<'_>, [u32; 8]) -> Result<Parsed<T>, Trouble>,
) -> Result<T, Trouble> {
    let (state, read) = State::with_memory(core)?;
    let mut known = list(state).iter();
    if let Some((_, known)) = known.find(|(of, _)| *of == handle) {
        return Ok(*known);
    }
    let words = state.descriptor(handle, read)?;
    let parsed = parse(core, words)?.map_err(|error| {
        let text = format!("descriptor {handle:#x}: {error}");
        Trouble::new(FaultKind::InvalidData, 0, text)
    })?;
    list(State::of_mut(core)?).push((handle, parsed));
    Ok(parsed)
}

fn texture_of(core: &mut Core<'_>, handle: u32) -> Result<Texture, Trouble> {
    known(
        core,
        handle,
        |known| &mut known.named_textures,
        |core, words| {
            let texture = valhall::Texture { words };
            let mut first = [0; valhall::Plane::SIZE];
            core.read.read(texture.surfaces(), &mut first)?;
            let first = valhall::Plane::from_bytes(&first);
            Ok(Texture::with_planes(&texture, &first))
        },
    )
}

fn sampler_of(core: &mut Core<'_>, handle: u32) -> Result<Sampler, Trouble> {
    known(
        core,
        handle,
        |known| &mut known.named_samplers,
        |_, words| Ok(Sampler::of_valhall(&valhall::Sampler { words })),
    )
}

/// Level 0: columns and lines in one word, slice and layer in the other.
fn texel_at(
    core: &mut Core<'_>,
    texture: &Texture,
    xy: u32,
    zw: u32,
) -> Result<Option<u64>, Trouble> {
    let (x, y) = (xy & 0xffff, xy >> 16);
    let (slice, layer) = (zw & 0xffff, zw >> 16);
    if !texture.extent.contains(x, y, slice) || layer >= texture.layers {
        return Ok(None);
    }
    let plane = first_plane(core, texture, layer)?;
    Ok(Some(plane.address(x, y, slice)))
}

/// Address and conversion descriptor to three registers.
pub(crate) fn texel_address(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
    for lane in lanes(rows.mask()) {
        let [xy, zw, handle] = [op.a, op.b, op.c].map(|row| rows.get(row).0[lane]);
        let texture = texture_of(core, handle)?;
        let va = texel_at(core, &texture, xy, zw)?.unwrap_or(SINK);
        let format = register_format(op.m, texture.format.kind());
        put_address(core, lane, va, texture.format_word, format);
    }
    finish(op, rows, core, 3)
}

pub(crate) fn load_texel(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
    let mut count = 0;
    for lane in lanes(rows.mask()) {
        let [xy, zw, handle] = [op.a, op.b, op.c].map(|row| rows.get(row).0[lane]);
        let texture = texture_of(core, handle)?;
        let format = register_format(op.m, texture.format.kind());
        let texel = match texel_at(core, &texture, xy, zw)? {
            Some(va) => load_converted(core, va, &texture.format)?,
            None => [0; 4],
        };
        count = format.registers(components(op.m));
        core.results
            .put(lane, &format.pack(texel, texture.format.kind()));
    }
    finish(op, rows, core, count)
}

/// Handles in `a`, `b`, the rest in rows `c` on.
pub(crate) fn texture(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Result<(), Trouble> {
    let request = Request::of(op.m);
    for lane in lanes(rows.mask()) {
        let mut next = op.c;
        let mut staged = |wanted: bool| {
            if !wanted {
                return 0;
            }
            let register = next.min(REGISTERS as u16 - 1);
            next += 1;
            rows.get(register).0[lane]
        };
        let dimension = request.dimension;
        let x = staged(true);
        let y = staged(dimension != Dimension::One);
        let z = staged(dimension == Dimension::Three);
        let layer = staged(request.array);
        let reference = staged(request.shadow);
        let offsets = staged(request.offsets);
        let lod = staged(request.lod);
        let [low, high] = [op.a, op.b].map(|row| rows.get(row).0[lane]);
        let [texture, sampler] = request.handles(low, high);
        let texture = texture_of(core, texture)?;
        let offset = [0, 8, 16].map(|at| i32::from((offsets >> at) as i8));
        let texel = if request.what == What::Fetch {
            let moved = |at: u32, by: i32| at.wrapping_add(by as u32);
            let at = [
                moved(x, offset[0]),
                moved(y, offset[1]),
                moved(z, offset[2]),
            ];
            let level = Level {
                layer,
                face: 0,
                level: offsets >> 24,
            };
            let mut lookup = Lookup {
                texture: &texture,
                fetch: |va, to: &mut [u8]| core.read.read(va, to),
            };
            image::fetch_texel(&mut lookup, at, level)?
        } else {
            let cube = dimension == Dimension::Cube;
            let first = match cube {
                true => cube_coordinate(x),
                false => f32::from_bits(x),
            };
            // Rounded as OpenCL does.
            let layer = f32::from_bits(layer).round_ties_even() as u32;
            let coordinates = Coordinates {
                position: [first, f32::from_bits(y), f32::from_bits(z)],
                layer,
                face: if cube { x >> 29 } else { 0 },
                lod: f32::from(lod as i16) / 256.0,
                offset,
                reference: request.shadow.then_some(f32::from_bits(reference)),
            };
            let sampler = sampler_of(core, sampler)?;
            let mut lookup = Lookup {
                texture: &texture,
                fetch: |va, to: &mut [u8]| core.read.read(va, to),
            };
            match request.what {
                What::Gather => {
                    let component = request.component as usize;
                    image::gather(&mut lookup, &sampler, &coordinates, component)?
                }
                _ => image::sample(&mut lookup, &sampler, &coordinates)?,
            }
        };
        let mut wanted = (0..4).filter(|at| request.mask >> at & 1 == 1);
        let chosen = [(); 4].map(|()| wanted.next().map_or(0, |at| texel[at]));
        let kind = texture.format.kind();
        let words = match request.narrow_result {
            true => match kind {
                image::Kind::Float => RegisterFormat::F16,
                image::Kind::Signed => RegisterFormat::I16,
                image::Kind::Unsigned => RegisterFormat::U16,
            }
            .pack(chosen, kind),
            false => chosen,
        };
        core.results.put(lane, &words);
    }
    finish(op, rows, core, request.results().into())
}
