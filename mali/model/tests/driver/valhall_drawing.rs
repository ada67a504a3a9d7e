// SPDX-License-Identifier: MIT OR Apache-2.0
//! Malloc vertex jobs of Valhall, with Mesa's shaders.

use mali_facts::registers::JobStatus;
use mali_facts::valhall::drawing::{self, DepthStencil, FragmentDraw, VertexPrimitive};
use mali_facts::valhall::{
    Attribute, Buffer, Plane, Resource, Sampler, ShaderEnvironment, ShaderProgram, Texture,
    descriptor_type,
};
use mali_facts::{Blend, JobType};
use mali_isa::valhall::assemble;

use crate::drawing::{draw, expect, run, untouched};
use crate::machine::{CODE, DATA, JOBS, Machine, PageMemory};
use crate::picture::{self, *};

/// Positions, varyings, fragments, old content; at multiples of 256 bytes.
const SHADERS: [&[&str]; 4] = [
    &[
        "LD_ATTR_IMM.v4.f32.slot0.wait0 @r0:r1:r2:r3, r60, r61, index:0x0, table:0x1",
        "LEA_BUF_IMM.slot1.wait1 @r4:r5, r59, table:0xD, index:0x0",
        "STORE.i128.istream.slot2.end @r0:r1:r2:r3, r4, offset:0",
    ],
    &[
        "LD_ATTR_IMM.v4.u32.slot0 @r0:r1:r2:r3, r60, r61, index:0x1, table:0x1",
        "LEA_BUF_IMM.slot1.wait01 @r4:r5, r59, table:0xD, index:0x0",
        "STORE.i128.estream.slot2.end @r0:r1:r2:r3, r4, offset:0",
    ],
    &[
        "LD_VAR_BUF_IMM.f32.slot0.v4.src_flat32.center.store.wait0126 @r0:r1:r2:r3, r61, index:0x0",
        "ATEST.wait @r60, r60, r3, atest_datum.w0",
        "BLEND.slot1.v4.auto.end @r0:r1:r2:r3, blend_descriptor_0.w0, r60, target:0x0",
    ],
    &[
        "LD_VAR_IMM.slot0.v2.f32.center.store.wait0 @r0:r1, r61, table:0x0, index:0x0",
        "IADD_IMM.i32 r2, 0x0, #0x18001000",
        "MOV.i32.wait0 r3, 0x0",
        "TEX_SINGLE.slot1.skip.reserved.32.2d.zero.wait @r0:r1:r2:r3, @r0:r1, r2",
        "BLEND.slot2.v4.u32.end @r0:r1:r2:r3, blend_descriptor_0.w0, r60, target:0x0",
    ],
];

const ATTRIBUTES: u64 = 0x200;
const ATTRIBUTE_BUFFER: u64 = 0x240;
const RESOURCES: u64 = 0x280;
const PROGRAMS: u64 = 0x2c0;
const BLEND: u64 = 0x340;
const DEPTH: u64 = 0x360;
const FRAME_RESOURCES: u64 = 0x800;
const FRAME_ATTRIBUTE: u64 = 0x840;
const FRAME_BUFFER: u64 = 0x860;
const FRAME_TEXTURE: u64 = 0x880;
const FRAME_PLANE: u64 = 0x8a0;
const FRAME_SAMPLER: u64 = 0x8c0;
const FRAME_POSITIONS: u64 = 0x900;

/// Four 32-bit components.
const FLOATS: u64 = 191 << 12;
const WORDS: u64 = 157 << 12;

fn machine() -> Machine {
    let machine = Machine::of("g57");
    picture::write(&machine.memory, false);
    write(&machine.memory);
    machine
}

fn write(memory: &PageMemory) {
    let at = |offset: u64| JOBS + offset;
    for (shader, code) in (CODE..).step_by(0x100).zip(SHADERS) {
        for (at, text) in (shader..).step_by(8).zip(code) {
            memory.write64(at, assemble(text).unwrap());
        }
    }
    memory.write(JOBS, &[0; 0x3c0]);
    memory.write(at(FRAME_DRAW), &[0; 0x80]);
    memory.write(at(FRAME_RESOURCES), &[0; 0x100]);

    memory.job(JOBS, JobType::MallocVertex, 0);
    let primitive = VertexPrimitive { words: [0; 4] }
        .with("Draw mode", 12)
        .with("Secondary shader", 1)
        .with("Index count", 4);
    memory.write(at(drawing::PRIMITIVE), &primitive.to_bytes());
    // 32 bytes per vertex, 16 of them attributes.
    memory.write32(at(drawing::ALLOCATION), 1);
    memory.write32(at(drawing::ALLOCATION + 4), 32 | 16 << 16);
    memory.write64(at(drawing::TILER_POINTER), at(TILER));
    memory.write32(at(drawing::SCISSOR + 4), (WIDTH - 1) | (HEIGHT - 1) << 16);

    let environment = |to: u64, resources: u64, program: u64| {
        let environment = ShaderEnvironment { words: [0; 16] }
            .with("Resources", resources)
            .with("Shader", at(PROGRAMS + 32 * program));
        memory.write(to, &environment.to_bytes());
    };
    environment(at(drawing::POSITION_ENVIRONMENT), at(RESOURCES) | 3, 0);
    environment(at(drawing::VARYING_ENVIRONMENT), at(RESOURCES) | 3, 1);
    for (to, resources, program) in [
        (at(drawing::FRAGMENT_DRAW), 0, 2),
        (at(FRAME_DRAW), at(FRAME_RESOURCES) | 4, 3),
    ] {
        let draw = FragmentDraw { words: [0; 16] }
            .with("Sample mask", 0xffff)
            .with("Render target mask", 1)
            .with("Minimum Z", (-1f32).to_bits().into())
            .with("Maximum Z", 1f32.to_bits().into())
            .with("Depth/stencil", at(DEPTH))
            .with("Blend", at(BLEND) | 1);
        memory.write(to, &draw.to_bytes());
        environment(to + drawing::DRAW_ENVIRONMENT, resources, program);
    }
    for (number, stage) in (0..).zip([3, 3, 2, 2]) {
        let program = ShaderProgram { words: [0; 8] }
            .with("Type", descriptor_type::SHADER.into())
            .with("Stage", stage)
            .with("Binary", CODE + 0x100 * number);
        memory.write(at(PROGRAMS + 32 * number), &program.to_bytes());
    }
    let depth = DepthStencil { words: [0; 8] }
        .with("Depth cull enable", 1)
        .with("Depth function", 7);
    memory.write(at(DEPTH), &depth.to_bytes());
    let blend = Blend { words: [0; 4] }
        .with("Enable", 1)
        .with("Equation", 0xf012_2122)
        .with("Mode", 1)
        .with("Conversion", WORDS);
    memory.write(at(BLEND), &blend.to_bytes());

    let attribute = |to: u64, format: u64, table: u64, offset: u64, stride: u64| {
        let attribute = Attribute { words: [0; 8] }
            .with("Type", descriptor_type::ATTRIBUTE.into())
            .with("Attribute type", 1)
            .with("Format", format)
            .with("Table", table)
            .with("Offset", offset)
            .with("Stride", stride);
        memory.write(at(to), &attribute.to_bytes());
    };
    let buffer = |to: u64, address: u64, size: u64| {
        let buffer = Buffer { words: [0; 8] }
            .with("Type", descriptor_type::BUFFER.into())
            .with("Buffer type", 1)
            .with("Size", size)
            .with("Address", at(address));
        memory.write(at(to), &buffer.to_bytes());
    };
    let resource = |list: u64, number: u64, table: u64, bytes: u64| {
        let resource = Resource { words: [0; 4] }
            .with("Address", at(table))
            .with("Contains descriptors", 1)
            .with("Size", bytes);
        memory.write(at(list + 16 * number), &resource.to_bytes());
    };
    attribute(ATTRIBUTES, FLOATS, 2, 0, 32);
    attribute(ATTRIBUTES + 32, WORDS, 2, 16, 32);
    buffer(ATTRIBUTE_BUFFER, VERTICES, 128);
    resource(RESOURCES, 1, ATTRIBUTES, 64);
    resource(RESOURCES, 2, ATTRIBUTE_BUFFER, 32);

    attribute(FRAME_ATTRIBUTE, FLOATS, 1, 0, 16);
    buffer(FRAME_BUFFER, FRAME_POSITIONS, 64);
    let sampler = Sampler { words: [0; 8] }
        .with("Type", descriptor_type::SAMPLER.into())
        .with("Wrap mode R", 9)
        .with("Wrap mode T", 9)
        .with("Wrap mode S", 9)
        .with("Minify nearest", 1)
        .with("Magnify nearest", 1);
    memory.write(at(FRAME_SAMPLER), &sampler.to_bytes());
    let texture = Texture { words: [0; 8] }
        .with("Type", descriptor_type::TEXTURE.into())
        .with("Dimension", 2)
        .with("Format", WORDS)
        .with("Width", (WIDTH - 1).into())
        .with("Height", (HEIGHT - 1).into())
        .with("Swizzle", 0o3210)
        .with("Surfaces", at(FRAME_PLANE));
    memory.write(at(FRAME_TEXTURE), &texture.to_bytes());
    let plane = Plane { words: [0; 8] }
        .with("Type", descriptor_type::PLANE.into())
        .with("Plane type", 1)
        .with("Clump ordering", 2)
        .with("Clump format", 4)
        .with("Size", (WIDTH * HEIGHT * 16).into())
        .with("Pointer", DATA)
        .with("Row stride", (WIDTH * 16).into());
    memory.write(at(FRAME_PLANE), &plane.to_bytes());
    for (number, table) in (0..).zip([FRAME_ATTRIBUTE, FRAME_BUFFER, FRAME_SAMPLER, FRAME_TEXTURE])
    {
        resource(FRAME_RESOURCES, number, table, 32);
    }
}

#[test]
fn triangles_are_drawn_over_what_was_there() {
    let mut machine = machine();
    draw(&mut machine);
    expect(&machine, untouched);
}

#[test]
fn a_second_draw_keeps_the_first_ones_vertices() {
    let mut machine = machine();
    assert_eq!(run(&mut machine, 1, JOBS), JobStatus::DONE);
    let last = [7, 8, 9, 10];
    for (vertex, [x, y]) in (0..).zip([[0, 0], [1, 0], [1, 1], [0, 1u32]]) {
        let [x, y] = [x, y].map(|v| (v as f32).to_bits());
        let at = JOBS + VERTICES + 32 * vertex;
        machine.memory.write_words(at, &[x, y]);
        machine.memory.write_words(at + 16, &last);
    }
    draw(&mut machine);
    let outside = |x, y| match (x, y) {
        (0, 0) => last,
        _ => untouched(x, y),
    };
    expect(&machine, outside);
}

#[test]
fn what_is_not_modelled_is_refused() {
    let config = JobStatus::JOB_CONFIG_FAULT;
    let invalid = JobStatus::DATA_INVALID_FAULT;
    // What is wrong; a word's offset and value; the failing job's slot and status.
    let cases: [(&str, u64, u32, u32, JobStatus); 12] = [
        ("indices", drawing::PRIMITIVE, 12 | 1 << 8, 1, config),
        ("a layer index", drawing::PRIMITIVE, 12 | 1 << 20, 1, config),
        ("points", drawing::PRIMITIVE, 1, 1, config),
        ("instances", drawing::ALLOCATION, 2, 1, config),
        (
            "point sizes in packets",
            drawing::ALLOCATION + 4,
            36 | 16 << 16,
            1,
            config,
        ),
        ("a fragment shader for vertices", PROGRAMS, 0x28, 1, invalid),
        ("no heap", HEAP + 24, 0, 1, JobStatus::OUT_OF_MEMORY),
        (
            "an attribute of instances",
            ATTRIBUTES + 4,
            2 | 1 << 6,
            1,
            JobStatus(0x58),
        ),
        ("a depth test", DEPTH + 16, 0, 0, config),
        ("culling", drawing::FRAGMENT_DRAW, 1 << 17, 0, config),
        ("blending", BLEND + 4, 0xf012_2123, 0, config),
        (
            "two blend descriptors",
            drawing::FRAGMENT_DRAW + 48,
            2,
            0,
            config,
        ),
    ];
    for (name, at, value, slot, expected) in cases {
        let mut machine = machine();
        machine.memory.write32(JOBS + at, value);
        if slot == 0 {
            assert_eq!(run(&mut machine, 1, JOBS), JobStatus::DONE, "{name}");
        }
        let job = [JOBS + FRAGMENT_JOB, JOBS][slot as usize];
        assert_eq!(run(&mut machine, slot, job), expected, "{name}");
    }
    for (shader, text) in [
        (
            2,
            "LD_VAR_BUF_IMM.f32.slot0.v4.src_f32.center.store.wait0126 @r0:r1:r2:r3, r61, index:0x0",
        ),
        (
            2,
            "LEA_BUF_IMM.slot1.wait1 @r4:r5, r59, table:0xD, index:0x0",
        ),
        (
            3,
            "LD_VAR_BUF_IMM.f32.slot0.v4.src_flat32.center.store.wait0126 @r0:r1:r2:r3, r61, index:0x4",
        ),
    ] {
        let mut machine = machine();
        machine
            .memory
            .write64(CODE + 0x100 * shader, assemble(text).unwrap());
        assert_eq!(run(&mut machine, 1, JOBS), JobStatus::DONE, "{text}");
        let status = run(&mut machine, 0, JOBS + FRAGMENT_JOB);
        assert!(status.is_fault(), "{text}: {status}");
    }
}

#[test]
fn jobs_of_the_other_family_are_refused() {
    let mut valhall = machine();
    let words = |kind: JobType| 1 | (kind as u32) << 1 | 1 << 16;
    valhall
        .memory
        .write32(JOBS + 16, words(JobType::IndexedVertex));
    assert_eq!(run(&mut valhall, 1, JOBS), JobStatus::JOB_CONFIG_FAULT);
    let mut bifrost = Machine::new();
    picture::write(&bifrost.memory, false);
    bifrost
        .memory
        .write32(JOBS + 16, words(JobType::MallocVertex));
    assert_eq!(run(&mut bifrost, 1, JOBS), JobStatus::JOB_CONFIG_FAULT);
}
