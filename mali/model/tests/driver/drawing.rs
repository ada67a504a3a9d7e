// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vertex and fragment jobs: pixels, and refusals.

use mali_facts::Memory;
use mali_facts::registers::JobStatus;
use mali_model::Options;

use crate::machine::{CODE, DATA, Format, JOBS, Machine, NOWHERE};
use crate::picture::{self, *};

fn machine(gpu: &str) -> Machine {
    machine_with(gpu, Options::default())
}

fn machine_with(gpu: &str, options: Options) -> Machine {
    let machine = Machine::with(gpu, Format::Lpae, options);
    picture::write(&machine.memory, gpu == "g72");
    machine
}

pub(crate) fn run(machine: &mut Machine, slot: u32, job: u64) -> JobStatus {
    let status = machine.run(slot, job);
    machine.clear_interrupts();
    machine.gpu.run();
    status
}

pub(crate) fn draw(machine: &mut Machine) {
    assert_eq!(run(machine, 1, JOBS), JobStatus::DONE);
    assert_eq!(run(machine, 0, JOBS + FRAGMENT_JOB), JobStatus::DONE);
}

fn pixel(machine: &Machine, x: u32, y: u32) -> [u32; 4] {
    let at = DATA + u64::from(y * WIDTH + x) * 16;
    [0, 4, 8, 12].map(|offset| machine.memory.read32(at + offset))
}

pub(crate) fn untouched(x: u32, y: u32) -> [u32; 4] {
    [0, 1, 2, 3].map(|word| before((y * WIDTH + x) * 4 + word))
}

fn inside(x: u32, y: u32) -> bool {
    let [left, top, right, bottom] = DRAWN;
    (left..right).contains(&x) && (top..bottom).contains(&y)
}

/// The diagonal joins the first and third corner; the last vertex gives the colour.
fn drawn(x: u32, y: u32) -> Option<[u32; 4]> {
    let [left, top, right, bottom] = DRAWN.map(|v| f64::from(v) * 2.0);
    let (x2, y2) = (f64::from(2 * x + 1), f64::from(2 * y + 1));
    let side = (x2 - left) * (bottom - top) - (y2 - top) * (right - left);
    (inside(x, y) && side != 0.0).then(|| colour(if side > 0.0 { 2 } else { 3 }))
}

#[track_caller]
pub(crate) fn expect(machine: &Machine, outside: impl Fn(u32, u32) -> [u32; 4]) {
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let have = pixel(machine, x, y);
            match drawn(x, y) {
                Some(colour) => assert_eq!(have, colour, "{x}, {y}"),
                None if inside(x, y) => {
                    assert!(have == colour(2) || have == colour(3), "{x}, {y}")
                }
                None => assert_eq!(have, outside(x, y), "{x}, {y}"),
            }
        }
    }
}

#[test]
fn triangles_are_drawn_over_what_was_there() {
    for gpu in ["g52", "g72"] {
        let mut machine = machine(gpu);
        draw(&mut machine);
        expect(&machine, untouched);
        let at = |vertex: u64| JOBS + POSITIONS + vertex * 16;
        let [left, top, right, bottom] = DRAWN.map(|v| (v as f32).to_bits());
        let position = |vertex| [0, 4].map(|word| machine.memory.read32(at(vertex) + word));
        assert_eq!(position(0), [left, top], "positions are in memory");
        assert_eq!(position(2), [right, bottom]);
    }
}

#[test]
fn a_message_before_the_shader_does_what_its_instruction_does() {
    let mut machine = machine("g52");
    // Before the shader: a lookup of texture 0 at varying 0, level 0. The shader starts after its own lookup.
    machine.memory.write32(JOBS + FRAME_STATE + 60, 2 | 1 << 15);
    machine.memory.write64(JOBS + FRAME_STATE, CODE + 0x310);
    draw(&mut machine);
    expect(&machine, untouched);
}

#[test]
fn a_varying_before_the_shader_is_interpolated() {
    let mut machine = machine("g52");
    // Before the shader: varying 0, four singles, is the pixel's place. It is blended as words.
    machine.memory.write32(JOBS + FRAME_STATE + 60, 1 | 3 << 11);
    machine.memory.write64(JOBS + FRAME_STATE, CODE + 0x310);
    draw(&mut machine);
    let centre = |v: u32| (v as f32 + 0.5).to_bits();
    expect(&machine, |x, y| [centre(x), centre(y), 0, 1f32.to_bits()]);
}

#[test]
fn tiles_begin_with_the_clear_colour() {
    let clear = [5, 6, 7, 8];
    for draws in [true, false] {
        let mut machine = machine("g52");
        machine.memory.write32(JOBS + FRAMEBUFFER, 0);
        machine.memory.write_words(JOBS + TARGET + 48, &clear);
        if draws {
            draw(&mut machine);
            expect(&machine, |_, _| clear);
        } else {
            assert_eq!(run(&mut machine, 0, JOBS + FRAGMENT_JOB), JobStatus::DONE);
            for y in 0..HEIGHT {
                assert!((0..WIDTH).all(|x| pixel(&machine, x, y) == clear));
            }
        }
    }
}

#[test]
fn without_draws_a_frame_stays_as_it_is() {
    let mut machine = machine("g52");
    assert_eq!(run(&mut machine, 0, JOBS + FRAGMENT_JOB), JobStatus::DONE);
    for (x, y) in [(0, 0), (5, 5), (WIDTH - 1, HEIGHT - 1)] {
        assert_eq!(pixel(&machine, x, y), untouched(x, y));
    }
}

#[test]
fn bounds_and_scissor_limit_what_is_written() {
    let mut machine = machine("g52");
    machine.memory.write32(JOBS + VIEWPORT + 24, 5);
    machine
        .memory
        .write32(JOBS + FRAMEBUFFER + 40, (WIDTH - 1) | 9 << 16);
    draw(&mut machine);
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let written = inside(x, y) && x >= 5 && y <= 9;
            assert_eq!(
                pixel(&machine, x, y) != untouched(x, y),
                written,
                "{x}, {y}"
            );
        }
    }
}

#[test]
fn the_first_vertex_can_give_the_colour() {
    let mut machine = machine("g52");
    machine.memory.write32(JOBS + 40, 12 | 1 << 18 | 1 << 15);
    draw(&mut machine);
    let [left, top, right, bottom] = DRAWN;
    assert_eq!(pixel(&machine, right - 1, top), colour(1));
    assert_eq!(pixel(&machine, left, bottom - 1), colour(2));
}

#[test]
fn a_target_can_consist_of_tiles() {
    for (gpu, block) in [("g52", 1 << 8), ("g72", 1 << 10)] {
        let mut machine = machine(gpu);
        machine.memory.write32(JOBS + FRAMEBUFFER, 0);
        machine
            .memory
            .write32(JOBS + TARGET + 4, 1 | 7 << 3 | block | 0o3210 << 16);
        machine.memory.write32(JOBS + TARGET + 40, 2 * 256 * 16);
        draw(&mut machine);
        for y in 0..HEIGHT {
            for x in 0..WIDTH {
                let mut index = 0;
                for bit in 0..4 {
                    index |= ((x ^ y) >> bit & 1) << (2 * bit) | (y >> bit & 1) << (2 * bit + 1);
                }
                let tile = (y / 16) * 2 + x / 16;
                let at = DATA + u64::from(tile * 256 + index) * 16;
                let have = [0, 4, 8, 12].map(|word| machine.memory.read32(at + word));
                match drawn(x, y) {
                    Some(colour) => assert_eq!(have, colour, "{x}, {y}"),
                    None if inside(x, y) => assert_ne!(have, [0; 4]),
                    None => assert_eq!(have, [0; 4], "{x}, {y}"),
                }
            }
        }
    }
}

#[test]
fn two_draws_come_in_order() {
    let mut machine = machine("g52");
    assert_eq!(run(&mut machine, 1, JOBS), JobStatus::DONE);
    // Both draws' varyings lie in one place, so the last one's colours show.
    for vertex in 0..4 {
        let at = JOBS + VERTICES + 32 * u64::from(vertex) + 16;
        machine.memory.write_words(at, &colour(vertex + 40));
    }
    assert_eq!(run(&mut machine, 1, JOBS), JobStatus::DONE);
    assert_eq!(machine.memory.read32(JOBS + TILER + 132), 2);
    assert_eq!(run(&mut machine, 0, JOBS + FRAGMENT_JOB), JobStatus::DONE);
    assert_eq!(pixel(&machine, DRAWN[2] - 1, DRAWN[1]), colour(42));
}

type Refused = (JobStatus, &'static str, u64, u32);

const CONFIGURATION: JobStatus = JobStatus::JOB_CONFIG_FAULT;
const INVALID: JobStatus = JobStatus::DATA_INVALID_FAULT;
const STATE: u64 = FRAGMENT_STATE;
const WRITTEN: u32 = 1 | 0o3210 << 16;
const FRAME: u32 = (JOBS + FRAMEBUFFER) as u32;

const VERTEX_JOBS: &[Refused] = &[
    (CONFIGURATION, "points", 40, 1 | 1 << 18),
    (CONFIGURATION, "lines", 40, 2 | 1 << 18),
    (CONFIGURATION, "quads", 40, 14 | 1 << 18),
    (CONFIGURATION, "indices", 40, 12 | 1 << 8),
    (CONFIGURATION, "point sizes", 40, 12 | 2 << 11),
    (CONFIGURATION, "restart", 40, 12 | 2 << 19),
    (CONFIGURATION, "base vertex", 44, 1),
    (CONFIGURATION, "index count", 52, 7),
    (CONFIGURATION, "first vertex", 256 + 4, 1),
    (CONFIGURATION, "occlusion query", 128, 1 << 3),
    (CONFIGURATION, "culling", 128, 1 << 6),
    (INVALID, "no positions", 128 + 16, 0),
    (INVALID, "a foreign tiler state", TILER + 128, 5),
    (INVALID, "attributes of another kind", ATTRIBUTE_BUFFER, 5),
    (INVALID, "too few varyings", VERTEX_STATE + 12, 2),
    (
        JobStatus::OUT_OF_MEMORY,
        "a heap that is too small",
        HEAP + 24,
        HEAP_MEMORY as u32 + 16,
    ),
];

const FRAGMENT_JOBS: &[Refused] = &[
    (CONFIGURATION, "tile map", FRAGMENT_JOB + 36, 1 << 31),
    (CONFIGURATION, "single target", FRAGMENT_JOB + 40, FRAME),
    (CONFIGURATION, "extension", FRAGMENT_JOB + 40, FRAME | 3),
    (CONFIGURATION, "two targets", FRAGMENT_JOB + 40, FRAME | 5),
    (CONFIGURATION, "two targets", FRAMEBUFFER + 44, 1 << 19),
    (CONFIGURATION, "samples", FRAMEBUFFER + 44, 2),
    (CONFIGURATION, "depth", FRAMEBUFFER + 48, 1 << 18),
    (CONFIGURATION, "stencil", FRAMEBUFFER + 48, 1 << 8),
    (CONFIGURATION, "checksums", FRAMEBUFFER + 48, 1 << 31),
    (
        CONFIGURATION,
        "second frame shader",
        FRAMEBUFFER,
        2 | 1 << 3,
    ),
    (
        CONFIGURATION,
        "shader after the frame",
        FRAMEBUFFER,
        2 | 1 << 6,
    ),
    (CONFIGURATION, "frame shader of depth", FRAMEBUFFER, 3),
    (
        CONFIGURATION,
        "AFBC",
        TARGET + 4,
        WRITTEN | 7 << 3 | 12 << 8,
    ),
    (CONFIGURATION, "YUV", TARGET, 36 << 26 | 1 << 24),
    (
        CONFIGURATION,
        "sRGB",
        TARGET + 4,
        WRITTEN | 7 << 3 | 2 << 8 | 1 << 14,
    ),
    (
        CONFIGURATION,
        "average",
        TARGET + 4,
        WRITTEN | 7 << 3 | 2 << 8 | 1 << 12,
    ),
    (CONFIGURATION, "another format", TARGET, 2 << 26),
    (
        CONFIGURATION,
        "another writeback",
        TARGET + 4,
        WRITTEN | 5 << 3 | 2 << 8,
    ),
    (
        CONFIGURATION,
        "multisampling",
        STATE + 32,
        0xffff | 1 << 16 | 7 << 24,
    ),
    (CONFIGURATION, "depth test", STATE + 32, 0xffff | 1 << 24),
    (
        CONFIGURATION,
        "depth write",
        STATE + 32,
        0xffff | 7 << 24 | 1 << 27,
    ),
    (CONFIGURATION, "stencil test", STATE + 36, 1 << 16),
    (CONFIGURATION, "coverage from alpha", STATE + 36, 1 << 17),
    (CONFIGURATION, "depth from the shader", STATE + 16, 3 << 8),
    (CONFIGURATION, "primitive number", STATE + 48, 1 << 9),
    (CONFIGURATION, "blend shader", STATE + 72, 3 << 3),
    (CONFIGURATION, "blending", STATE + 72, 2 | 3 << 3),
    (
        CONFIGURATION,
        "loads what was there",
        STATE + 64,
        1 << 9 | 1,
    ),
    (CONFIGURATION, "blend equation", STATE + 68, 0xf012_2132),
    (CONFIGURATION, "colour mask", STATE + 68, 0x7012_2122),
    (
        CONFIGURATION,
        "clipping by depth",
        VIEWPORT + 16,
        0x3f80_0000,
    ),
    (CONFIGURATION, "behind the eye", POSITIONS + 12, 0xbf80_0000),
    (CONFIGURATION, "no number", POSITIONS, 0x7fc0_0000),
    (CONFIGURATION, "far away", POSITIONS, 0x4f80_0000),
    (
        INVALID,
        "pixels of another size",
        STATE + 76,
        140 << 12 | 3 << 24,
    ),
    (
        INVALID,
        "another render target",
        STATE + 72,
        1 | 3 << 3 | 1 << 16,
    ),
    (INVALID, "too many draws", TILER + 132, 5000),
    (INVALID, "draws that nobody made", TILER + 132, 2),
];

#[test]
fn what_is_not_modelled_is_refused() {
    for (first, cases) in [(false, VERTEX_JOBS), (true, FRAGMENT_JOBS)] {
        for &(expected, what, offset, word) in cases {
            let mut machine = machine("g52");
            let (slot, job) = if first {
                assert_eq!(run(&mut machine, 1, JOBS), JobStatus::DONE);
                (0, JOBS + FRAGMENT_JOB)
            } else {
                (1, JOBS)
            };
            let good = machine.memory.read32(JOBS + offset);
            machine.memory.write32(JOBS + offset, word);
            assert_eq!(run(&mut machine, slot, job), expected, "{what}");
            for (x, y) in [(0, 0), (5, 5)] {
                assert_eq!(pixel(&machine, x, y), untouched(x, y), "{what}");
            }
            machine.memory.write32(JOBS + offset, good);
            assert_eq!(run(&mut machine, slot, job), JobStatus::DONE, "{what}");
        }
    }
}

#[test]
fn memory_that_is_not_there_faults() {
    for (what, slot, offset) in [
        ("tiler context", 1, 72),
        ("vertex state", 1, 256 + 56),
        ("positions", 1, 128 + 16),
        ("heap", 1, TILER + 24),
        ("framebuffer's tiler", 0, FRAMEBUFFER + 56),
        ("frame shader", 0, FRAMEBUFFER + 24),
        ("target", 0, TARGET + 32),
    ] {
        let mut machine = machine("g52");
        if slot == 0 {
            assert_eq!(run(&mut machine, 1, JOBS), JobStatus::DONE);
        }
        machine.memory.write64(JOBS + offset, NOWHERE);
        let job = if slot == 0 { JOBS + FRAGMENT_JOB } else { JOBS };
        let status = run(&mut machine, slot, job);
        assert_eq!(status.0 & 0xf8, 0xc0, "{what}: {status}");
    }
}

#[test]
fn an_endless_frame_uses_up_its_budget() {
    let options = Options {
        clause_budget: 5000,
        ..Options::default()
    };
    let mut machine = machine_with("g52", options);
    // 65536 lines of 65536 pixels, all in one place.
    machine.memory.write32(JOBS + FRAMEBUFFER, 0);
    machine.memory.write32(JOBS + FRAMEBUFFER + 32, u32::MAX);
    machine.memory.write32(JOBS + FRAMEBUFFER + 40, 0xffff_ffff);
    machine
        .memory
        .write32(JOBS + FRAGMENT_JOB + 36, 0xfff | 0xfff << 16);
    machine
        .memory
        .write32(JOBS + TARGET + 4, 1 | 7 << 3 | 1 << 8 | 0o3210 << 16);
    machine.memory.write32(JOBS + TARGET + 40, 0);
    let status = run(&mut machine, 0, JOBS + FRAGMENT_JOB);
    assert!(
        status == JobStatus::TERMINATED || status.0 & 0xf8 == 0xc0,
        "{status}"
    );
    let mut byte = [0];
    assert!(machine.memory.read(DATA, &mut byte));
}

#[test]
fn changed_descriptors_end_without_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..1500 {
        let gpu = if round % 2 == 0 { "g52" } else { "g72" };
        let options = Options {
            clause_budget: 4000,
            ..Options::default()
        };
        let mut machine = machine_with(gpu, options);
        for _ in 0..1 + random.u32(..3) {
            let at = JOBS + random.u64(..0x2c0) * 4;
            let word = machine.memory.read32(at);
            let changed = match random.u32(..3) {
                0 => word ^ 1 << random.u32(..32),
                1 => word.wrapping_add(random.u32(..64)),
                _ => random.u32(..) << random.u32(..32),
            };
            machine.memory.write32(at, changed);
        }
        for (slot, job) in [(1, JOBS), (0, JOBS + FRAGMENT_JOB)] {
            assert_ne!(run(&mut machine, slot, job), JobStatus::ACTIVE, "{round}");
        }
    }
}
