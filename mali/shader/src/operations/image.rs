// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images and textures, lane after lane.

use gpureplay_shader::FaultKind;
use gpureplay_shader::core::{Core, Done, Trouble};
use gpureplay_shader::ir::micro::MicroOp;
use gpureplay_shader::operations::memory::address;
use gpureplay_shader::operations::sink::{SINK, is_sink};
use gpureplay_shader::rows::{REGISTERS, Rows, lanes};
use gpureplay_shader::words::{bytes_of, words_of};

use crate::image::{
    self, Dimension, ImageBuffer, Kind, RegisterFormat, Sampler, Texel, TexelFormat, Texels,
    Texture,
};
use crate::state::State;

/// The attribute decides the register format.
pub(crate) const AUTO: u32 = 15;

pub(super) fn words<const N: usize>(core: &mut Core<'_>, va: u64) -> Result<[u32; N], Trouble> {
    let mut words = [0; N];
    for (i, word) in words.iter_mut().enumerate() {
        let mut bytes = [0; 4];
        core.read.read(va.wrapping_add(i as u64 * 4), &mut bytes)?;
        *word = u32::from_le_bytes(bytes);
    }
    Ok(words)
}

fn cached<T: Copy>(
    core: &mut Core<'_>,
    index: u32,
    count: u32,
    what: &str,
    list: fn(&mut State) -> &mut Vec<Option<T>>,
    read: impl FnOnce(&mut Core<'_>) -> Result<Result<T, image::descriptor::DescriptorError>, Trouble>,
) -> Result<T, Trouble> {
    let known = list(State::of_mut(core)?).get(index as usize);
    if let Some(Some(known)) = known {
        return Ok(*known);
    }
    let invalid = |text: String| Trouble::new(FaultKind::InvalidData, 0, text);
    if index >= count || index >= 1 << 16 {
        return Err(invalid(format!("{what} {index} of {count}")));
    }
    let parsed = read(core)?.map_err(|error| invalid(format!("{what} {index}: {error}")))?;
    let list = list(State::of_mut(core)?);
    if list.len() <= index as usize {
        list.resize(index as usize + 1, None);
    }
    list[index as usize] = Some(parsed);
    Ok(parsed)
}

pub(super) fn texture(core: &mut Core<'_>, index: u32) -> Result<Texture, Trouble> {
    let dispatch = &State::of(core)?.dispatch;
    let (table, count) = (dispatch.textures, dispatch.texture_count);
    cached(
        core,
        index,
        count,
        "texture",
        |known| &mut known.textures,
        |core| {
            let descriptor = words(core, table.wrapping_add(u64::from(index) * 32))?;
            Ok(Texture::parse(&descriptor, State::of(core)?.is_v6()))
        },
    )
}

pub(super) fn sampler(core: &mut Core<'_>, index: u32) -> Result<Sampler, Trouble> {
    let dispatch = &State::of(core)?.dispatch;
    let (table, count) = (dispatch.samplers, dispatch.sampler_count);
    cached(
        core,
        index,
        count,
        "sampler",
        |known| &mut known.samplers,
        |core| {
            let descriptor = words(core, table.wrapping_add(u64::from(index) * 32))?;
            Ok(Sampler::parse(&descriptor))
        },
    )
}

fn image_buffer(core: &mut Core<'_>, index: u32) -> Result<ImageBuffer, Trouble> {
    let dispatch = &State::of(core)?.dispatch;
    let (table, count) = (dispatch.attributes, dispatch.attribute_count);
    let buffers = dispatch.attribute_buffers;
    cached(
        core,
        index,
        count,
        "image attribute",
        |known| &mut known.images,
        |core| {
            let attribute = words(core, table.wrapping_add(u64::from(index) * 8))?;
            let record = u64::from(ImageBuffer::buffer_index(&attribute)) * 16;
            let record = buffers.wrapping_add(record);
            let (buffer, continuation) =
                (words(core, record)?, words(core, record.wrapping_add(16))?);
            Ok(ImageBuffer::parse(
                &attribute,
                &buffer,
                &continuation,
                State::of(core)?.is_v6(),
            ))
        },
    )
}

pub(super) fn register_format(m: u32, kind: Kind) -> RegisterFormat {
    RegisterFormat::from_encoding(m & 15).unwrap_or(RegisterFormat::natural(kind))
}

/// Address and conversion descriptor to three registers; `b` is z or layer.
pub(crate) fn texel_address(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    for lane in lanes(rows.mask()) {
        let (xy, z, index) = (
            rows.get(op.a).0[lane],
            rows.get(op.b).0[lane],
            rows.get(op.c).0[lane],
        );
        let image = image_buffer(core, index)?;
        let va = image.address(xy & 0xffff, xy >> 16, z).unwrap_or(SINK);
        let format = register_format(op.m, image.format.kind());
        put_address(core, lane, va, image.format_word, format);
    }
    finish(op, rows, core, 3)
}

/// As [`texel_address`], of a texture's level 0; `b` is layer or slice.
pub(crate) fn texture_address(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    for lane in lanes(rows.mask()) {
        let (xy, z, index) = (
            rows.get(op.a).0[lane],
            rows.get(op.b).0[lane],
            rows.get(op.c).0[lane],
        );
        let texture = texture(core, index)?;
        let (x, y) = (xy & 0xffff, xy >> 16);
        let (slice, layer) = match texture.dimension {
            Dimension::Three => (z, 0),
            _ => (0, z),
        };
        let va = if texture.extent.contains(x, y, slice) && layer < texture.layers {
            first_plane(core, &texture, layer)?.address(x, y, slice)
        } else {
            SINK
        };
        let format = register_format(op.m, texture.format.kind());
        put_address(core, lane, va, texture.format_word, format);
    }
    finish(op, rows, core, 3)
}

pub(super) fn first_plane(
    core: &mut Core<'_>,
    texture: &Texture,
    layer: u32,
) -> Result<image::Plane, Trouble> {
    let mut record = [0; Texture::LONGEST_RECORD];
    let at = texture.surface_record(layer, 0, 0, 0);
    core.read.read(at, &mut record[..texture.record_bytes()])?;
    Ok(texture.plane(&record))
}

pub(super) fn put_address(
    core: &mut Core<'_>,
    lane: usize,
    va: u64,
    format_word: u32,
    format: RegisterFormat,
) {
    let conversion = format_word & 0x3f_ffff | (format as u32) << 24;
    core.results
        .put(lane, &[va as u32, (va >> 32) as u32, conversion]);
}

pub(crate) fn components(m: u32) -> usize {
    (m >> 8 & 3) as usize + 1
}

pub(crate) fn load_texel(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
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

pub(super) fn load_converted(
    core: &mut Core<'_>,
    va: u64,
    format: &TexelFormat,
) -> Result<Texel, Trouble> {
    let mut bytes = [0; 16];
    let count = usize::from(format.bytes).min(16);
    core.read.read(va, &mut bytes[..count])?;
    core.statistics.bytes_read += count as u64;
    Ok(format.load(&bytes[..count]))
}

pub(super) fn finish(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>, count: usize) -> Done {
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

pub(crate) fn load_conversion(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let mut count = 0;
    for lane in lanes(rows.mask()) {
        let (pixel, format) = State::of(core)?.conversion(rows.get(op.c).0[lane])?;
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

pub(crate) fn store_conversion(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    for lane in lanes(rows.mask()) {
        let (pixel, format) = State::of(core)?.conversion(rows.get(op.c).0[lane])?;
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

pub(crate) fn clock(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let now = core.cycles;
    core.results.0[0].0.fill(now as u32);
    core.results.0[1].0.fill((now >> 32) as u32);
    finish(op, rows, core, 2)
}
