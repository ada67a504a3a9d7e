// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers and instructions of vertices and fragments.

use std::sync::Arc;

use gpureplay_shader::FaultKind;
use gpureplay_shader::core::{Core, Done, Trouble};
use gpureplay_shader::ir::micro::{Kind, MicroOp, Run};
use gpureplay_shader::operations::sink::SINK;
use gpureplay_shader::rows::{LANES, REGISTERS, Rows, lanes};
use gpureplay_shader::words::bytes_of;
use mali_facts::valhall::{self, descriptor_type};
use mali_facts::{AttributeBuffer, Blend, PixelFormat, attribute_type, blend_mode};

use super::image::{
    components, finish, load_converted, put_address, register_format, sampler, texture, words,
};
use crate::image::{self, Coordinates, RegisterFormat, Texel, TexelFormat, Texels};
use crate::stage::{AttributeTable, Fragments, Lookup, Preload, Stage, Vertices};
use crate::state::State;

/// The position's address: low word, high word next.
const POSITION: u16 = 58;
/// Column low, line high half.
const PIXEL: u16 = 59;
/// Covered samples, as bits.
const COVERAGE: u16 = 60;
/// On Valhall: number in the packets, vertex, instance; a fragment's last is the sample.
const VERTEX: [u16; 3] = [59, 60, 61];

/// For [`blend`]: the modifiers name the colour's type, not the descriptor.
pub(crate) const TYPED: u32 = 1 << 16;

fn invalid(text: impl Into<String>) -> Trouble {
    Trouble::new(FaultKind::InvalidData, 0, text)
}

fn missing(instruction: &str, what: &str) -> Trouble {
    let text = format!("{instruction} works on {what}, which this shader does not have");
    Trouble::new(FaultKind::InvalidEncoding, 0, text)
}

fn vertices(core: &Core<'_>, instruction: &str, what: &str) -> Result<Vertices, Trouble> {
    match State::of(core)?.stage {
        Some(Stage::Vertices(vertices)) => Ok(vertices),
        _ => Err(missing(instruction, what)),
    }
}

fn fragments(core: &Core<'_>, instruction: &str, what: &str) -> Result<Arc<Fragments>, Trouble> {
    match &State::of(core)?.stage {
        Some(Stage::Fragments(fragments)) => Ok(Arc::clone(fragments)),
        _ => Err(missing(instruction, what)),
    }
}

fn pixel(core: &Core<'_>, fragments: &Fragments, lane: usize) -> Result<[u32; 2], Trouble> {
    let columns = u64::from(core.grid.workgroup_count[0]).max(1);
    let number = State::of(core)?.first + lane as u64;
    Ok([
        fragments.origin[0].wrapping_add((number % columns) as u32),
        fragments.origin[1].wrapping_add((number / columns) as u32),
    ])
}

/// The lanes that start; `None`: all.
pub(crate) fn begin(
    rows: &mut Rows,
    core: &mut Core<'_>,
    first: u64,
    count: u32,
) -> Result<Option<u64>, Trouble> {
    let state = State::of_mut(core)?;
    state.first = first;
    let (stage, by_tables) = (state.stage.clone(), state.has_resource_tables());
    let all = u64::MAX >> (LANES - (count as usize).clamp(1, LANES));
    match stage {
        None => {}
        Some(Stage::Vertices(vertices)) => {
            if by_tables {
                for lane in lanes(all) {
                    let number = (first + lane as u64) as u32;
                    for (register, value) in VERTEX.into_iter().zip([number, number, 0]) {
                        rows.get_mut(register).0[lane] = value;
                    }
                }
                return Ok(None);
            }
            for lane in lanes(all).filter(|_| vertices.positions != 0) {
                let offset = (first + lane as u64).wrapping_mul(16);
                let va = vertices.positions.wrapping_add(offset);
                rows.get_mut(POSITION).0[lane] = va as u32;
                rows.get_mut(POSITION + 1).0[lane] = (va >> 32) as u32;
            }
        }
        Some(Stage::Fragments(fragments)) => {
            let mut covered = 0;
            for lane in lanes(all) {
                let [x, y] = pixel(core, &fragments, lane)?;
                let inside = fragments.everywhere || fragments.triangle.covers(x, y);
                covered |= u64::from(inside) << lane;
                rows.get_mut(PIXEL).0[lane] = x & 0xffff | y << 16;
                rows.get_mut(COVERAGE).0[lane] = 1;
                if by_tables {
                    rows.get_mut(VERTEX[2]).0[lane] = 0;
                }
            }
            if let Some(preload) = fragments.preload {
                rows.activate(covered, covered);
                load_first(&fragments, preload, rows, core)?;
            }
            return Ok(Some(covered));
        }
    }
    Ok(None)
}

fn load_first(
    fragments: &Fragments,
    preload: Preload,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Done {
    let mut op = MicroOp {
        run: Run::Message(varying_texture),
        d: 0,
        a: 0,
        b: 0,
        c: 0,
        e: 0,
        m: 0,
        sources: 0,
        kind: Kind::Plain,
        part: 0,
    };
    match preload {
        Preload::Texture(lookup) => look_up(fragments, lookup, &op, rows, core),
        Preload::Varying {
            index,
            components,
            half,
        } => {
            let format = if half {
                RegisterFormat::F16
            } else {
                RegisterFormat::F32
            };
            op.m = format as u32 | (components.clamp(1, 4) - 1) << 8;
            interpolate(fragments, |_, _| index, &op, rows, core)
        }
    }
}

struct Attribute {
    format: TexelFormat,
    format_word: u32,
    base: u64,
    offset: i64,
    stride: u32,
    size: u32,
}

impl Attribute {
    fn read(
        core: &mut Core<'_>,
        table: &AttributeTable,
        index: u32,
        what: &str,
    ) -> Result<Self, Trouble> {
        if State::of(core)?.has_resource_tables() {
            return Attribute::named(core, index, what);
        }
        if index >= table.count {
            return Err(invalid(format!("{what} {index} of {}", table.count)));
        }
        let size = mali_facts::Attribute::SIZE as u64;
        let at = table.descriptors.wrapping_add(u64::from(index) * size);
        let descriptor = mali_facts::Attribute {
            words: words(core, at)?,
        };
        let record = descriptor.buffer_index() * AttributeBuffer::SIZE as u64;
        let buffer = AttributeBuffer {
            words: words(core, table.buffers.wrapping_add(record))?,
        };
        let kind = buffer.buffer_type() as u32;
        if kind != attribute_type::LINEAR_1D {
            return Err(invalid(format!(
                "{what} {index}: buffers of type {kind} are not modelled"
            )));
        }
        let v6 = State::of(core)?.is_v6();
        let format_word = descriptor.format() as u32;
        let format = TexelFormat::parse(PixelFormat(format_word), v6)
            .map_err(|error| invalid(format!("{what} {index}: {error}")))?;
        Ok(Attribute {
            format,
            format_word,
            base: buffer.pointer(),
            offset: descriptor.enabled_offset(),
            stride: buffer.stride() as u32,
            size: buffer.size() as u32,
        })
    }

    fn named(core: &mut Core<'_>, handle: u32, what: &str) -> Result<Self, Trouble> {
        let (state, read) = State::with_memory(core)?;
        let descriptor = valhall::Attribute {
            words: state.descriptor(handle, read)?,
        };
        let record = descriptor.table() << 24 | descriptor.buffer_index() & 0xff_ffff;
        let buffer = valhall::Buffer {
            words: state.descriptor(record as u32, read)?,
        };
        let kinds = [
            (descriptor.descriptor_type(), descriptor_type::ATTRIBUTE),
            (descriptor.attribute_type(), 1),
            (descriptor.frequency(), 0),
            (buffer.descriptor_type(), descriptor_type::BUFFER),
            (buffer.buffer_type(), 1),
        ];
        if kinds
            .iter()
            .any(|(found, known)| *found != u64::from(*known))
        {
            return Err(invalid(format!(
                "{what} {handle:#x}: only plain attributes of vertices in plain buffers are modelled"
            )));
        }
        let format_word = descriptor.format() as u32;
        let format = TexelFormat::parse(PixelFormat(format_word), false)
            .map_err(|error| invalid(format!("{what} {handle:#x}: {error}")))?;
        Ok(Attribute {
            format,
            format_word,
            base: buffer.address(),
            offset: i64::from(descriptor.offset() as i32),
            stride: descriptor.stride() as u32,
            size: buffer.size() as u32,
        })
    }

    fn address(&self, vertex: u32) -> Option<u64> {
        let at = i128::from(self.offset) + i128::from(self.stride) * i128::from(vertex);
        let end = at + i128::from(self.format.bytes);
        let inside = at >= 0 && end <= i128::from(self.size);
        inside.then(|| self.base.wrapping_add(at as u64))
    }

    fn load(&self, core: &mut Core<'_>, vertex: u32) -> Result<Texel, Trouble> {
        match self.address(vertex) {
            Some(va) => load_converted(core, va, &self.format),
            None => Ok([0; 4]),
        }
    }
}

/// `LD_ATTR`: vertex `a`, instance `b`, attribute `c`.
pub(crate) fn load_attribute(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    vertices(core, "+LD_ATTR", "the attributes of a vertex")?;
    let dispatch = &State::of(core)?.dispatch;
    let table = AttributeTable {
        descriptors: dispatch.attributes,
        count: dispatch.attribute_count,
        buffers: dispatch.attribute_buffers,
    };
    let mut count = 0;
    for lane in lanes(rows.mask()) {
        let (vertex, index) = vertex(op, rows, lane)?;
        let attribute = Attribute::read(core, &table, index, "attribute")?;
        let format = register_format(op.m, attribute.format.kind());
        let texel = attribute.load(core, vertex)?;
        count = format.registers(components(op.m));
        core.results
            .put(lane, &format.pack(texel, attribute.format.kind()));
    }
    finish(op, rows, core, count)
}

fn vertex(op: &MicroOp, rows: &Rows, lane: usize) -> Result<(u32, u32), Trouble> {
    let [vertex, instance, index] = [op.a, op.b, op.c].map(|row| rows.get(row).0[lane]);
    if instance != 0 {
        return Err(invalid(format!(
            "attribute of instance {instance}, but instances are not modelled"
        )));
    }
    Ok((vertex, index))
}

/// `LEA_ATTR`: address and conversion of a varying. Sources as [`load_attribute`].
pub(crate) fn varying_address(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let vertices = vertices(core, "+LEA_ATTR", "the attributes of a vertex")?;
    for lane in lanes(rows.mask()) {
        let (vertex, index) = vertex(op, rows, lane)?;
        let varying = Attribute::read(core, &vertices.varyings, index, "varying")?;
        let va = varying.address(vertex).unwrap_or(SINK);
        let format = register_format(op.m, varying.format.kind());
        put_address(core, lane, va, varying.format_word, format);
    }
    finish(op, rows, core, 3)
}

/// `LEA_BUF_IMM`: a vertex shader's output on Valhall; vertex `a`.
pub(crate) fn packet_address(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let vertices = vertices(core, "LEA_BUF_IMM", "the packet of a vertex")?;
    for lane in lanes(rows.mask()) {
        let va = vertices.packets.at(rows.get(op.a).0[lane]);
        core.results.put(lane, &[va as u32, (va >> 32) as u32]);
    }
    finish(op, rows, core, 2)
}

/// `LD_VAR_BUF_IMM`, not interpolated: offset `a` into a vertex's attributes.
pub(crate) fn packet_varying(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let fragments = fragments(core, "LD_VAR_BUF_IMM", "the varyings of a fragment")?;
    let (packets, count) = (fragments.packets, components(op.m));
    let start = packets.at(fragments.provoking);
    for lane in lanes(rows.mask()) {
        let offset = rows.get(op.a).0[lane];
        if offset as usize + 4 * count > packets.stride as usize {
            return Err(invalid(format!("varying at byte {offset} of a vertex")));
        }
        let mut varying = [0; 4];
        for (word, to) in varying.iter_mut().take(count).enumerate() {
            [*to] = words(
                core,
                start.wrapping_add(u64::from(offset) + word as u64 * 4),
            )?;
        }
        core.results.put(lane, &varying);
    }
    finish(op, rows, core, count)
}

/// `LD_VAR_FLAT`: varying `a`.
pub(crate) fn flat_varying(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let fragments = fragments(core, "+LD_VAR_FLAT", "the varyings of a fragment")?;
    let mut count = 0;
    for lane in lanes(rows.mask()) {
        let index = rows.get(op.a).0[lane];
        let varying = Attribute::read(core, &fragments.varyings, index, "varying")?;
        let format = register_format(op.m, varying.format.kind());
        let texel = varying.load(core, fragments.provoking)?;
        count = format.registers(components(op.m));
        core.results
            .put(lane, &format.pack(texel, varying.format.kind()));
    }
    finish(op, rows, core, count)
}

/// `VAR_TEX`: varying in bits 15:8 of `m`, texture and sampler in 7:0, half precision in 16, computed level in 17.
pub(crate) fn varying_texture(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let fragments = fragments(core, "+VAR_TEX", "the varyings of a fragment")?;
    let lookup = Lookup {
        varying: op.m >> 8 & 0xff,
        texture: op.m & 0xff,
        half: op.m >> 16 & 1 == 1,
        computed_lod: op.m >> 17 & 1 == 1,
    };
    look_up(&fragments, lookup, op, rows, core)
}

/// `LD_VAR`: varying `a`.
pub(crate) fn varying(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let fragments = fragments(core, "+LD_VAR", "the varyings of a fragment")?;
    let number = |rows: &Rows, lane: usize| rows.get(op.a).0[lane];
    interpolate(&fragments, number, op, rows, core)
}

struct Corners([[f64; 4]; 3]);

impl Corners {
    fn read(core: &mut Core<'_>, fragments: &Fragments, index: u32) -> Result<Self, Trouble> {
        let varying = Attribute::read(core, &fragments.varyings, index, "varying")?;
        if varying.format.kind() != image::Kind::Float {
            return Err(invalid(format!(
                "varying {index}: integers are not interpolated"
            )));
        }
        let mut corners = [[0.0; 4]; 3];
        for (corner, vertex) in corners.iter_mut().zip(fragments.vertices) {
            let texel = varying.load(core, vertex)?;
            *corner = texel.map(|word| f64::from(f32::from_bits(word)));
        }
        Ok(Corners(corners))
    }

    fn at(&self, fragments: &Fragments, [x, y]: [u32; 2]) -> [f32; 4] {
        let weights = fragments.triangle.weights(x, y);
        let (mut value, mut sum) = ([0.0f64; 4], 0.0);
        for ((corner, weight), reciprocal) in self.0.iter().zip(weights).zip(fragments.reciprocals)
        {
            let weight = weight * f64::from(reciprocal);
            sum += weight;
            for (to, from) in value.iter_mut().zip(corner) {
                *to += weight * from;
            }
        }
        value.map(|value| (value / sum) as f32)
    }
}

fn interpolate(
    fragments: &Fragments,
    number: impl Fn(&Rows, usize) -> u32,
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Done {
    let mut known: Option<(u32, Corners)> = None;
    let format = register_format(op.m, image::Kind::Float);
    for lane in lanes(rows.mask()) {
        let index = number(rows, lane);
        let corners = match known.take().filter(|(of, _)| *of == index) {
            Some((_, corners)) => corners,
            None => Corners::read(core, fragments, index)?,
        };
        let value = corners.at(fragments, pixel(core, fragments, lane)?);
        let words = format.pack(value.map(f32::to_bits), image::Kind::Float);
        core.results.put(lane, &words);
        known = Some((index, corners));
    }
    finish(op, rows, core, format.registers(components(op.m)))
}

fn look_up(
    fragments: &Fragments,
    lookup: Lookup,
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Done {
    if rows.mask() == 0 {
        return Ok(());
    }
    let corners = Corners::read(core, fragments, lookup.varying)?;
    let texture = texture(core, lookup.texture)?;
    let sampler = sampler(core, lookup.texture)?;
    if lookup.computed_lod && texture.levels > 1 {
        return Err(invalid("a level of detail from neighbours is not modelled"));
    }
    for lane in lanes(rows.mask()) {
        let [s, t, ..] = corners.at(fragments, pixel(core, fragments, lane)?);
        let coordinates = Coordinates {
            position: [s, t, 0.0],
            ..Coordinates::default()
        };
        let mut reader = image::Lookup {
            texture: &texture,
            fetch: |va, to: &mut [u8]| core.read.read(va, to),
        };
        let texel = image::sample(&mut reader, &sampler, &coordinates)?;
        let words = if lookup.half {
            RegisterFormat::F16.pack(texel, texture.format.kind())
        } else {
            texel
        };
        core.results.put(lane, &words);
    }
    finish(op, rows, core, if lookup.half { 2 } else { 4 })
}

/// `ATEST`: coverage `a`, which stays: jobs with alpha tests are refused.
pub(crate) fn alpha_test(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    fragments(core, "+ATEST", "the coverage of a fragment")?;
    core.results.0[0].0 = rows.get(op.a).0;
    finish(op, rows, core, 1)
}

/// `BLEND`: coverage `a`, descriptor `b`, `c`, colour in staging registers.
pub(crate) fn blend(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let fragments = fragments(core, "+BLEND", "the pixels of a tile")?;
    let mut pixels = Vec::with_capacity(LANES);
    for lane in lanes(rows.mask()) {
        let [coverage, descriptor, word] = [op.a, op.b, op.c].map(|row| rows.get(row).0[lane]);
        let blend = Blend {
            words: [0, 0, descriptor, word],
        };
        let by_alpha = blend.alpha_zero_nop() | blend.alpha_one_store();
        match blend.mode() as u32 {
            blend_mode::OFF => continue,
            blend_mode::OPAQUE if by_alpha == 0 && blend.target() == 0 => {}
            _ => {
                return Err(invalid(format!(
                    "blend descriptor {descriptor:#010x} does more than replace the pixel, which is not modelled"
                )));
            }
        }
        if coverage & 1 == 0 {
            continue;
        }
        let (pixel_format, format) = State::of(core)?.conversion(word)?;
        let format = match (op.m & TYPED, pixel_format) {
            (0, _) => format,
            (_, Some(pixel)) => register_format(op.m, pixel.kind()),
            (_, None) => return Err(invalid("a blend descriptor of plain words is not modelled")),
        };
        let count = format.registers(4);
        let mut colour = [0; 4];
        for (i, word) in colour.iter_mut().enumerate().take(count) {
            let register = (usize::from(op.d) + i).min(REGISTERS - 1);
            *word = rows.get(register as u16).0[lane];
        }
        let mut bytes = bytes_of(colour);
        let size = match pixel_format {
            Some(pixel) => pixel.store(format.unpack(colour), &mut bytes),
            None => count * 4,
        };
        if size != fragments.tile.bytes() {
            return Err(invalid(format!(
                "the blend descriptor makes pixels of {size} bytes, the render target has {}",
                fragments.tile.bytes()
            )));
        }
        pixels.push((pixel(core, &fragments, lane)?, bytes));
    }
    fragments.tile.store(&pixels);
    Ok(())
}
