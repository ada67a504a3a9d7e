// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong Valhall compute jobs.

use mali_facts::job::PAYLOAD;
use mali_facts::valhall::{
    Buffer, ComputePayload, LocalStorage, Plane, Resource, ShaderEnvironment, ShaderProgram,
    Texture, descriptor_type, stage,
};

use super::Mutant;
use super::places::Places;
use super::tables::HIGH;

/// From the job's start.
const ENVIRONMENT: u64 = PAYLOAD + ComputePayload::SIZE as u64;

fn named(field: &str) -> u64 {
    ENVIRONMENT + ShaderEnvironment::LAYOUT.offset_of(field).unwrap_or(0)
}

fn table(address: u64, size: u64) -> [u8; Resource::SIZE] {
    Resource { words: [0; 4] }
        .with("Address", address)
        .with("Contains descriptors", 1)
        .with("Size", size)
        .to_bytes()
}

fn buffer(address: u64, size: u64) -> [u8; Buffer::SIZE] {
    Buffer { words: [0; 8] }
        .with("Type", descriptor_type::BUFFER.into())
        .with("Size", size)
        .with("Address", address)
        .to_bytes()
}

pub(super) fn mutants(places: &Places<'_>) -> Vec<Mutant> {
    let &Places {
        chain,
        code,
        scratch,
        data,
        end,
        spare,
        input,
        nowhere,
        ..
    } = places;
    let with = |field: &str, value: u64| places.with(named(field), value);
    // One resource in unused memory, with a table of one descriptor.
    let listed = |resource: [u8; Resource::SIZE], descriptor: &[u8], behind: &[u8]| {
        places.patched(&[
            (chain + named("Resources"), &(spare | 1).to_le_bytes()),
            (spare, &resource),
            (spare + 64, descriptor),
            (spare + 128, behind),
        ])
    };
    let own = table(spare + 64, Buffer::SIZE as u64);
    let in_table = |descriptor: &[u8]| listed(own, descriptor, &[]);
    let memory = Resource { words: [0; 4] }
        .with("Address", end - 16)
        .with("Size", 32);
    let texture = Texture { words: [0; 8] }
        .with("Type", descriptor_type::TEXTURE.into())
        .with("Surfaces", spare + 128);
    let plane = Plane { words: [0; 8] }
        .with("Type", descriptor_type::PLANE.into())
        .with("Size", 16)
        .with("Pointer", nowhere);
    let program = |kind: u32, stage: u32, code: u64| {
        let program = ShaderProgram { words: [0; 8] }
            .with("Type", kind.into())
            .with("Stage", stage.into())
            .with("Binary", code);
        let shader = (chain + named("Shader"), &spare.to_le_bytes()[..]);
        places.patched(&[shader, (spare, &program.to_bytes())])
    };
    let compute = |code: u64| program(descriptor_type::SHADER, stage::COMPUTE, code);
    // 16 MiB per thread of a core, or per group.
    let storage = |base: &str, size: &[(&str, u64)]| {
        let storage = LocalStorage { words: [0; 8] }.with(base, data);
        let storage = size
            .iter()
            .fold(storage, |it, (field, n)| it.with(field, *n));
        let pointer = (chain + named("Thread storage"), &spare.to_le_bytes()[..]);
        places.patched(&[pointer, (spare, &storage.to_bytes())])
    };
    let payload = |field: &str, value: u32| {
        let offset = ComputePayload::LAYOUT.offset_of(field).unwrap_or(0);
        places.patched(&[(chain + PAYLOAD + offset, &value.to_le_bytes())])
    };
    // All of a list's tables are one, of buffers.
    let endless = {
        let list = table(HIGH + 0x1000, 0xf000).repeat(63);
        let buffers = buffer(HIGH, 0x1_0000).repeat(0xf000 / Buffer::SIZE);
        places.endless(&[
            (chain + named("Resources"), &(HIGH | 63).to_le_bytes()),
            (HIGH, &list),
            (HIGH + 0x1000, &buffers),
        ])
    };
    rows![
        "program outside memory", "descriptor-region" => with("Shader", nowhere);
        "program at the end of the address space", "descriptor-region" => with("Shader", u64::MAX - 31);
        "program in code", "descriptor-region" => with("Shader", code);
        "program in scratch", "descriptor-region" => with("Shader", scratch);
        "program that an input overwrites", "descriptor-tensor" => with("Shader", input & !31);
        "storage of Valhall outside memory", "descriptor-region" => with("Thread storage", nowhere);
        "list of resources outside memory", "descriptor-region" => with("Resources", nowhere | 1);
        "list of resources that an input overwrites", "descriptor-tensor" => with("Resources", input & !63 | 1);
        "storage of Valhall that an input overwrites", "descriptor-tensor" => with("Thread storage", input & !63);
        "table of descriptors that an input overwrites", "descriptor-tensor" => listed(table(input & !31, 32), &[], &[]);
        "planes that an input overwrites", "descriptor-tensor" => in_table(&texture.with("Surfaces", input & !63).to_bytes());
        "list of resources in code", "descriptor-region" => with("Resources", code | 1);
        "table of descriptors outside memory", "descriptor-region" => listed(table(nowhere, 32), &[], &[]);
        "descriptor of a type that tables lack", "descriptor-form" => in_table(&[15; 32]);
        "buffer of a table outside memory", "buffer-region" => in_table(&buffer(nowhere, 16));
        "buffer of a table beyond its region", "buffer-region" => in_table(&buffer(end - 16, 32));
        "resource beyond its region", "buffer-region" => listed(memory.to_bytes(), &[], &[]);
        "planes outside memory", "descriptor-region" => in_table(&texture.with("Surfaces", nowhere).to_bytes());
        "texels outside memory", "buffer-region" => listed(own, &texture.to_bytes(), &plane.to_bytes());
        "FAU outside memory", "buffer-region" => with("FAU", nowhere);
        "thread storage too small", "buffer-region" => storage("TLS base pointer", &[("TLS size", 20)]);
        "work group storage too small", "buffer-region" => storage("WLS base pointer", &[("WLS size scale", 24)]);
        "program of no type", "descriptor-form" => program(0, stage::COMPUTE, code);
        "program of fragments", "descriptor-form" => program(descriptor_type::SHADER, stage::FRAGMENT, code);
        "work groups that begin elsewhere", "descriptor-form" => payload("Offset Y", 1);
        "tables without end", "deep-limit" => endless;
        "binary in data", "shader-region" => compute(data);
        "binary outside memory", "shader-region" => compute(nowhere);
    ]
}
