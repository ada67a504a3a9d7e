// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images and textures of a batch, lane after lane.

use super::core::Core;
use super::memory::{address, bytes_of, lanes, words_of};
use super::micro::{MicroOp, Trouble};
use super::rows::{REGISTERS, Rows};
use crate::image::{
    self, Coordinates, Dimension, ImageBuffer, Kind, Level, Lookup, PixelFormat, RegisterFormat,
    Sampler, Texel, Texture,
};
use crate::{Architecture, FaultKind};

/// The address of a texel that does not exist.
const SINK: u64 = 8 << 60;

/// Whether an address is that of a texel that does not exist: stores there are dropped, loads give zero. No page can
/// be there, because the top 16 bits of an address are all equal.
pub(crate) fn is_sink(va: u64) -> bool {
    va >> 60 == SINK >> 60
}

/// What the register format modifier of an attribute instruction is when the attribute decides.
pub(crate) const AUTO: u32 = 15;

/// Descriptors that a host thread has read in this dispatch.
#[derive(Default)]
pub(crate) struct Descriptors {
    textures: Vec<Option<Texture>>,
    samplers: Vec<Option<Sampler>>,
    images: Vec<Option<ImageBuffer>>,
}

fn words<const N: usize>(core: &mut Core<'_>, va: u64) -> Result<[u32; N], Trouble> {
    let mut words = [0; N];
    for (i, word) in words.iter_mut().enumerate() {
        let mut bytes = [0; 4];
        core.read.read(va.wrapping_add(i as u64 * 4), &mut bytes)?;
        *word = u32::from_le_bytes(bytes);
    }
    Ok(words)
}

/// Looks `index` up in the list that `list` selects, or reads the descriptor and keeps it.
fn cached<T: Copy>(
    core: &mut Core<'_>,
    index: u32,
    count: u32,
    what: &str,
    list: fn(&mut Descriptors) -> &mut Vec<Option<T>>,
    read: impl FnOnce(&mut Core<'_>) -> Result<Result<T, image::descriptor::DescriptorError>, Trouble>,
) -> Result<T, Trouble> {
    if let Some(Some(known)) = list(&mut core.descriptors).get(index as usize) {
        return Ok(*known);
    }
    let invalid = |text: String| Trouble::new(FaultKind::InvalidData, 0, text);
    if index >= count || index >= 1 << 16 {
        return Err(invalid(format!("{what} {index} of {count}")));
    }
    let parsed = read(core)?.map_err(|error| invalid(format!("{what} {index}: {error}")))?;
    let list = list(&mut core.descriptors);
    if list.len() <= index as usize {
        list.resize(index as usize + 1, None);
    }
    list[index as usize] = Some(parsed);
    Ok(parsed)
}

fn is_v6(core: &Core<'_>) -> bool {
    core.dispatch.architecture == Architecture::V6
}

fn texture(core: &mut Core<'_>, index: u32) -> Result<Texture, Trouble> {
    let count = core.dispatch.texture_count;
    cached(
        core,
        index,
        count,
        "texture",
        |known| &mut known.textures,
        |core| {
            let descriptor = words(
                core,
                core.dispatch.textures.wrapping_add(u64::from(index) * 32),
            )?;
            Ok(Texture::parse(&descriptor, is_v6(core)))
        },
    )
}

fn sampler(core: &mut Core<'_>, index: u32) -> Result<Sampler, Trouble> {
    let count = core.dispatch.sampler_count;
    cached(
        core,
        index,
        count,
        "sampler",
        |known| &mut known.samplers,
        |core| {
            let descriptor = words(
                core,
                core.dispatch.samplers.wrapping_add(u64::from(index) * 32),
            )?;
            Ok(Sampler::parse(&descriptor))
        },
    )
}

fn image_buffer(core: &mut Core<'_>, index: u32) -> Result<ImageBuffer, Trouble> {
    let count = core.dispatch.attribute_count;
    cached(
        core,
        index,
        count,
        "image attribute",
        |known| &mut known.images,
        |core| {
            let attribute = words(
                core,
                core.dispatch.attributes.wrapping_add(u64::from(index) * 8),
            )?;
            let record = u64::from(ImageBuffer::buffer_index(&attribute)) * 16;
            let record = core.dispatch.attribute_buffers.wrapping_add(record);
            let (buffer, continuation) =
                (words(core, record)?, words(core, record.wrapping_add(16))?);
            Ok(ImageBuffer::parse(
                &attribute,
                &buffer,
                &continuation,
                is_v6(core),
            ))
        },
    )
}

/// The number of a register format in a conversion descriptor, resolved if the format decides.
fn register_format(m: u32, kind: Kind) -> RegisterFormat {
    RegisterFormat::from_encoding(m & 15).unwrap_or(RegisterFormat::natural(kind))
}

/// Writes address and conversion descriptor of texels to three staging registers: coordinates in rows `a` (x, y) and
/// `b` (z or layer), index of the image in row `c`.
pub(crate) fn texel_address(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
    for lane in lanes(rows.mask()) {
        let (xy, z, index) = (
            rows.get(op.a).0[lane],
            rows.get(op.b).0[lane],
            rows.get(op.c).0[lane],
        );
        let image = image_buffer(core, index)?;
        let va = image.address(xy & 0xffff, xy >> 16, z).unwrap_or(SINK);
        let format = register_format(op.m, image.format.kind());
        core.results.0[0].0[lane] = va as u32;
        core.results.0[1].0[lane] = (va >> 32) as u32;
        core.results.0[2].0[lane] = image.format_word & 0x3f_ffff | (format as u32) << 24;
    }
    for word in 0..3 {
        rows.replace(op.d + word as u16, &mut core.results.0[word]);
    }
    Ok(())
}

/// Components that a vector size in bits 9:8 of the modifiers means.
fn components(m: u32) -> usize {
    (m >> 8 & 3) as usize + 1
}

/// Loads texels of an image: sources as for [`texel_address`].
pub(crate) fn load_texel(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
    let mut count = 0;
    for lane in lanes(rows.mask()) {
        let (xy, z, index) = (
            rows.get(op.a).0[lane],
            rows.get(op.b).0[lane],
            rows.get(op.c).0[lane],
        );
        let image = image_buffer(core, index)?;
        let format = register_format(op.m, image.format.kind());
        let texel = match image.address(xy & 0xffff, xy >> 16, z) {
            Some(va) => load_converted(core, va, &image.format)?,
            None => [0; 4],
        };
        count = format.registers(components(op.m));
        core.results
            .put(lane, &format.pack(texel, image.format.kind()));
    }
    finish(op, rows, core, count)
}

fn load_converted(core: &mut Core<'_>, va: u64, format: &PixelFormat) -> Result<Texel, Trouble> {
    let mut bytes = [0; 16];
    let count = usize::from(format.bytes).min(16);
    core.read.read(va, &mut bytes[..count])?;
    core.statistics.bytes_read += count as u64;
    Ok(format.load(&bytes[..count]))
}

fn finish(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>, count: usize) -> Result<(), Trouble> {
    for word in 0..count {
        let register = usize::from(op.d) + word;
        if register >= REGISTERS {
            return Err(Trouble::new(
                FaultKind::InvalidEncoding,
                0,
                "staging registers past r63",
            ));
        }
        rows.replace(register as u16, &mut core.results.0[word]);
    }
    Ok(())
}

/// What a conversion descriptor says: pixel format and register format, or plain words.
fn conversion(
    core: &Core<'_>,
    word: u32,
) -> Result<(Option<PixelFormat>, RegisterFormat), Trouble> {
    let invalid = |text: String| Trouble::new(FaultKind::InvalidData, 0, text);
    let format = RegisterFormat::from_encoding(word >> 24 & 7).ok_or_else(|| {
        invalid(format!(
            "conversion descriptor {word:#010x} has no register format"
        ))
    })?;
    if word >> 22 & 1 == 1 {
        return Ok((None, format));
    }
    let pixel = PixelFormat::parse(word & 0x3f_ffff, is_v6(core))
        .map_err(|error| invalid(error.to_string()))?;
    Ok((Some(pixel), format))
}

/// Loads through a conversion descriptor (row `c`) from the address in rows `a`, `b`.
pub(crate) fn load_conversion(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
    let mut count = 0;
    for lane in lanes(rows.mask()) {
        let (pixel, format) = conversion(core, rows.get(op.c).0[lane])?;
        let va = address(rows.get(op.a), rows.get(op.b), lane);
        count = format.registers(components(op.m));
        let words = match pixel {
            _ if is_sink(va) => [0; 4],
            Some(pixel) => format.pack(load_converted(core, va, &pixel)?, pixel.kind()),
            None => {
                let mut bytes = [0; 16];
                core.read.read(va, &mut bytes[..count * 4])?;
                words_of(bytes)
            }
        };
        core.results.put(lane, &words);
    }
    finish(op, rows, core, count)
}

/// Stores through a conversion descriptor (row `c`) to the address in rows `a`, `b`.
pub(crate) fn store_conversion(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
    for lane in lanes(rows.mask()) {
        let (pixel, format) = conversion(core, rows.get(op.c).0[lane])?;
        let va = address(rows.get(op.a), rows.get(op.b), lane);
        if is_sink(va) {
            continue;
        }
        let count = format.registers(components(op.m));
        let mut words = [0; 4];
        for (i, word) in words.iter_mut().enumerate().take(count) {
            *word = rows
                .get((usize::from(op.d) + i).min(REGISTERS - 1) as u16)
                .0[lane];
        }
        let mut bytes = bytes_of(words);
        let size = match pixel {
            Some(pixel) => pixel.store(format.unpack(words), &mut bytes),
            None => count * 4,
        };
        core.write.write(va, &bytes[..size])?;
        core.statistics.bytes_written += size as u64;
    }
    Ok(())
}

/// Reads a clock into two staging registers.
pub(crate) fn clock(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Result<(), Trouble> {
    let now = core.cycles;
    core.results.0[0].0.fill(now as u32);
    core.results.0[1].0.fill((now >> 32) as u32);
    finish(op, rows, core, 2)
}

/// What a texture instruction asks for, as the fields of its descriptor word.
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

    /// Indices of texture and sampler; `None` means that a staging register holds it.
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

/// The coordinate that a cube-map descriptor packs with a face: its top three bits are always the same.
fn cube_coordinate(word: u32) -> f32 {
    f32::from_bits(word & 0x1fff_ffff | 0x2000_0000)
}

/// `TEXC`: coordinates in rows `a` and `b`, descriptor in row `c`, everything else in staging registers.
pub(crate) fn texture_operation(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
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
            // Gradient descriptors: without neighbours in a picture all gradients are zero.
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

/// The staging words of a texel in a result format, and how many registers all components fill.
fn result(format: u32, texel: Texel, kind: Kind) -> ([u32; 4], usize) {
    use crate::alu::{Clamp, float};
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

/// `TEXS_2D` and `TEXS_CUBE`: coordinates in rows `a` and `b`, face in the top bits of row `c`. Modifiers: texture in
/// bits 7:0, sampler in 15:8, half precision in 16, cube in 17.
pub(crate) fn sample_simple(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
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
