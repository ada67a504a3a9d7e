// SPDX-License-Identifier: MIT OR Apache-2.0
//! A drawing: a fan of two triangles, 24 by 20 pixels of four 32-bit integers.

use mali_facts::{Invocation, JobType};

use super::machine::{CODE, DATA, JOBS, PageMemory};

/// `LD_ATTR_IMM.f32.v4 r0, attribute 0`, `ST_CVT.v4 r0` to the position, conversion u0.
const POSITION: [u32; 8] = [
    0x2000004a, 0x80cb1e02, 0xc000e023, 0x00800000, 0x5000804e, 0x80cb1e08, 0x00027c23, 0x01800800,
];
/// `LD_ATTR_IMM.f32.v4 r0, attribute 1`, `LEA_ATTR_IMM.auto r4, varying 1`, `ST_CVT.v4 r0`.
const VARYING: [u32; 12] = [
    0x2000004a, 0x80cb1e02, 0xc000e123, 0x00800000, 0x2000004e, 0x80cb1e02, 0xc0020123, 0x00800080,
    0x4180004e, 0x80cb1e0a, 0x00027a23, 0x01800800,
];
/// `LD_VAR_FLAT_IMM.v4.u32 r0, varying 0`, `BLEND r0`.
const FRAGMENT: [u32; 8] = [
    0x0080004a, 0x80cb1e02, 0xc004fc0f, 0x00400000, 0x3000084e, 0x80cb1e04, 0x0002a583, 0x02400800,
];
/// `VAR_TEX.f32.store.center r0, varying 0, texture 0`, `BLEND r0`.
const FRAME: [u32; 8] = [
    0x0080004e, 0x80cb1e02, 0xc0028803, 0x01000000, 0x3000084e, 0x80cb1e04, 0x0002a583, 0x02400800,
];

pub(crate) const VERTEX_STATE: u64 = 0x200;
pub(crate) const FRAGMENT_STATE: u64 = 0x240;
const ATTRIBUTES: u64 = 0x2c0;
pub(crate) const ATTRIBUTE_BUFFER: u64 = 0x2e0;
const VERTEX_VARYINGS: u64 = 0x300;
const FRAGMENT_VARYINGS: u64 = 0x320;
pub(crate) const VARYING_BUFFERS: u64 = 0x340;
pub(crate) const VIEWPORT: u64 = 0x380;
const UNIFORMS: u64 = 0x3c0;
pub(crate) const TILER: u64 = 0x400;
pub(crate) const HEAP: u64 = 0x500;
pub(crate) const FRAGMENT_JOB: u64 = 0x540;
pub(crate) const FRAMEBUFFER: u64 = 0x580;
pub(crate) const TARGET: u64 = FRAMEBUFFER + 128;
pub(crate) const FRAME_DRAW: u64 = 0x680;
pub(crate) const FRAME_STATE: u64 = 0x800;
const FRAME_TEXTURE: u64 = 0x880;
const FRAME_SURFACE: u64 = 0x8a0;
const FRAME_SAMPLER: u64 = 0x8c0;
const FRAME_VARYING: u64 = 0x8e0;
const FRAME_BUFFER: u64 = 0x8f0;
const FRAME_POSITIONS: u64 = 0x900;
pub(crate) const VERTICES: u64 = 0xa00;
pub(crate) const POSITIONS: u64 = 0xb00;
const COLOURS: u64 = 0xb40;

pub(crate) const HEAP_MEMORY: u64 = DATA + 0x8000;
const HEAP_BYTES: u64 = 0x1000;

pub(crate) const WIDTH: u32 = 24;
pub(crate) const HEIGHT: u32 = 20;
/// Left, top, right, bottom; the latter two are excluded.
pub(crate) const DRAWN: [u32; 4] = [3, 2, 17, 13];

pub(crate) fn colour(vertex: u32) -> [u32; 4] {
    [0x1111_0000, 7, u32::MAX, 0x8000_0001].map(|word: u32| word.wrapping_add(vertex))
}

/// Vertex job at JOBS, fragment job at JOBS + [`FRAGMENT_JOB`], target at DATA.
pub(crate) fn write(memory: &PageMemory, v6: bool) {
    let at = |offset: u64| JOBS + offset;
    let words = |to: u64, words: &[u32]| memory.write_words(to, words);
    let pointer = |draw: u64, word: u64, to: u64| memory.write64(draw + 4 * word, to);
    // v6 has a swizzle, v7 an order of components.
    let rgba = |number: u32| number << 12 | if v6 { 0o3210 } else { 0 };
    memory.write(JOBS, &[0; 0x1000]);
    for (offset, code) in [
        (0, &POSITION[..]),
        (0x100, &VARYING),
        (0x200, &FRAGMENT),
        (0x300, &FRAME),
    ] {
        words(CODE + offset, code);
    }

    memory.job(JOBS, JobType::IndexedVertex, 0);
    let invocation = Invocation::pack([1; 3], [1, 4, 1]).unwrap();
    words(at(32), &invocation.words);
    words(at(40), &[12 | 1 << 18, 0, 0, 3]);
    memory.write64(at(72), at(TILER));
    let [fragment, vertex] = [at(128), at(256)];
    pointer(fragment, 4, at(POSITIONS));
    pointer(fragment, 14, at(FRAGMENT_STATE));
    pointer(fragment, 20, at(VARYING_BUFFERS));
    pointer(fragment, 22, at(FRAGMENT_VARYINGS));
    pointer(fragment, 24, at(VIEWPORT));
    pointer(vertex, 12, at(UNIFORMS));
    pointer(vertex, 14, at(VERTEX_STATE));
    pointer(vertex, 16, at(ATTRIBUTE_BUFFER));
    pointer(vertex, 18, at(ATTRIBUTES));
    pointer(vertex, 20, at(VARYING_BUFFERS));
    pointer(vertex, 22, at(VERTEX_VARYINGS));

    memory.write64(at(VERTEX_STATE), CODE);
    words(at(VERTEX_STATE + 12), &[2 | 2 << 16]);
    words(at(VERTEX_STATE + 48), &[3 << 10 | 3 << 13 | 1 << 15, 0]);
    memory.write64(at(VERTEX_STATE + 56), CODE + 0x100);
    let snapped = rgba(94) | 1 << 24;
    words(at(UNIFORMS), &[snapped, 0]);
    words(
        at(ATTRIBUTES),
        &[1 << 9 | rgba(191) << 10, 0, 1 << 9 | rgba(191) << 10, 16],
    );
    words(at(ATTRIBUTE_BUFFER), &[1 | at(VERTICES) as u32, 0, 32, 128]);
    words(
        at(VERTEX_VARYINGS),
        &[1 | rgba(94) << 10, 0, rgba(157) << 10, 0],
    );
    words(at(FRAGMENT_VARYINGS), &[rgba(157) << 10, 0]);
    words(at(VARYING_BUFFERS), &[1 | at(COLOURS) as u32, 0, 16, 64]);
    words(
        at(VARYING_BUFFERS + 16),
        &[1 | at(POSITIONS) as u32, 0, 16, 64],
    );
    let [left, top, right, bottom] = DRAWN;
    for (n, [x, y]) in [[left, top], [right, top], [right, bottom], [left, bottom]]
        .into_iter()
        .enumerate()
    {
        let [x, y] = [x, y].map(|v| (v as f32).to_bits());
        let vertex = at(VERTICES) + 32 * n as u64;
        words(vertex, &[x, y, 0, 1f32.to_bits()]);
        words(vertex + 16, &colour(n as u32));
    }

    fragment_state(memory, at(FRAGMENT_STATE), CODE + 0x200, rgba(157));
    words(
        at(VIEWPORT + 16),
        &[
            (-1f32).to_bits(),
            1f32.to_bits(),
            0,
            (WIDTH - 1) | (HEIGHT - 1) << 16,
        ],
    );
    memory.write64(at(TILER + 24), at(HEAP));
    memory.write64(at(HEAP + 16), HEAP_MEMORY);
    memory.write64(at(HEAP + 24), HEAP_MEMORY + HEAP_BYTES);

    memory.write32(at(FRAGMENT_JOB + 16), 1 | (JobType::Fragment as u32) << 1);
    words(at(FRAGMENT_JOB + 36), &[1 | 1 << 16]);
    memory.write64(at(FRAGMENT_JOB + 40), at(FRAMEBUFFER) | 1);
    // The frame shader runs in tiles that are drawn to.
    words(at(FRAMEBUFFER), &[2]);
    memory.write64(at(FRAMEBUFFER + 24), at(FRAME_DRAW));
    let last = (WIDTH - 1) | (HEIGHT - 1) << 16;
    words(at(FRAMEBUFFER + 32), &[last, 0, last]);
    memory.write64(at(FRAMEBUFFER + 56), at(TILER));
    // RAW128, in memory too.
    let block = if v6 { 2 << 10 } else { 2 << 8 };
    words(at(TARGET), &[36 << 26, 1 | 7 << 3 | block | 0o3210 << 16]);
    memory.write64(at(TARGET + 32), DATA);
    words(at(TARGET + 40), &[WIDTH * 16]);

    let frame = at(FRAME_DRAW);
    pointer(frame, 4, at(FRAME_POSITIONS));
    pointer(frame, 8, at(FRAME_TEXTURE));
    pointer(frame, 10, at(FRAME_SAMPLER));
    pointer(frame, 14, at(FRAME_STATE));
    pointer(frame, 20, at(FRAME_BUFFER));
    pointer(frame, 22, at(FRAME_VARYING));
    pointer(frame, 24, at(VIEWPORT));
    fragment_state(memory, at(FRAME_STATE), CODE + 0x300, rgba(157));
    words(at(FRAME_STATE + 8), &[1 | 1 << 16]);
    words(
        at(FRAME_TEXTURE),
        &[2 | 2 << 4 | rgba(157) << 10, last, 0o3210 | 2 << 12],
    );
    memory.write64(at(FRAME_TEXTURE + 16), at(FRAME_SURFACE));
    memory.write64(at(FRAME_SURFACE), DATA);
    words(at(FRAME_SURFACE + 8), &[WIDTH * 16]);
    // Coordinates in texels, clamped; the nearest texel.
    words(at(FRAME_SAMPLER), &[1 | 0x999 << 8 | 3 << 27]);
    words(at(FRAME_VARYING), &[rgba(191) << 10, 0]);
    words(
        at(FRAME_BUFFER),
        &[1 | at(FRAME_POSITIONS) as u32, 0, 16, 64],
    );
    for (n, [x, y]) in [[0, 0], [WIDTH, 0], [0, HEIGHT], [WIDTH, HEIGHT]]
        .into_iter()
        .enumerate()
    {
        let [x, y] = [x, y].map(|v| (v as f32).to_bits());
        words(
            at(FRAME_POSITIONS) + 16 * n as u64,
            &[x, y, 0, 1f32.to_bits()],
        );
    }
    for n in 0..WIDTH * HEIGHT * 4 {
        memory.write32(DATA + u64::from(n) * 4, before(n));
    }
}

pub(crate) fn before(word: u32) -> u32 {
    word.wrapping_mul(0x9e37_79b9)
}

/// A state, then a blend descriptor that replaces colours.
fn fragment_state(memory: &PageMemory, at: u64, shader: u64, format: u32) {
    memory.write64(at, shader);
    memory.write32(at + 12, 1 << 16);
    // Depth from the rasteriser; every sample and depth passes; a register holds the coverage.
    memory.write32(at + 16, 2 << 8);
    memory.write32(at + 32, 0xffff | 7 << 24 | 3 << 28);
    memory.write32(at + 48, 1 << 7);
    memory.write32(at + 64, 1 << 9);
    memory.write32(at + 68, 0xf012_2122);
    memory.write32(at + 72, 1 | 3 << 3);
    memory.write32(at + 76, format | 3 << 24);
}
