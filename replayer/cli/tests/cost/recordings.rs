// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expensive random recordings.

use gpureplay_format::{
    Access, Axis, Builder, ElementType, Piece, RegionKind, SegmentKind, Tensor, TensorId,
    TensorKind,
};

use crate::case::Random;
use crate::driver::{vector_add, vector_add_code};

pub(crate) const GPU: u32 = 0x7212_0000;
pub(crate) const CODE: u64 = 0x100_0000;
pub(crate) const JOBS: u64 = 0x200_0000;
pub(crate) const DATA: u64 = 0x300_0000;

pub(crate) fn builder() -> Builder {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder
}

/// Job header with 64-bit addresses.
pub(crate) fn null_job(next: u64) -> [u8; 32] {
    let mut job = [0; 32];
    job[16] = 1 << 1 | 1;
    job[24..].copy_from_slice(&next.to_le_bytes());
    job
}

pub(crate) fn expensive(random: &mut Random) -> Vec<u8> {
    let mut builder = builder();
    let pages = random.up_to(17) as u32;
    builder.region(DATA, pages, Access::READ_WRITE, RegionKind::Data);
    let code = random.once_in(2);
    if code {
        let bytes = shader(random);
        let pages = bytes.len().div_ceil(4096) as u32;
        builder.region(CODE, pages, Access::READ_EXECUTE, RegionKind::Code);
        builder.segment("setup", SegmentKind::Setup);
        builder.upload(CODE, &bytes);
    }
    let tensors = tensors(&mut builder, random, u64::from(pages) << 12);
    let mut actions = random.up_to(14);
    for _ in 0..random.up_to(12) {
        builder.segment(&"s".repeat(random.up_to(8) as usize), SegmentKind::Run);
        for _ in 0..random.up_to(6).min(actions) {
            actions -= 1;
            let tensor = *random.choose(&tensors);
            match random.below(6) {
                0 => builder.bind_input(tensor),
                1 => builder.bind_output(tensor),
                2 => builder.fill(DATA, random.below(u64::from(pages) << 12) as u32, 7),
                3 if code => {
                    let at = DATA + 4096 * random.below(u64::from(pages).min(3));
                    let entry = CODE + 16 * random.below(4);
                    let mut job = vector_add(JOBS, entry, at, at, DATA);
                    if random.once_in(4) {
                        let table = textures(random, u64::from(pages) << 12);
                        builder.upload(DATA, &table);
                        name_textures(&mut job, random.below(1 << 16) as u16);
                    }
                    builder.upload(JOBS, &job);
                    builder.submit(1, JOBS, 1000);
                }
                _ => chain(&mut builder, random),
            }
        }
        if random.once_in(64) {
            tensors
                .iter()
                .for_each(|tensor| builder.bind_input(*tensor));
        }
    }
    if !random.once_in(4) {
        tensors
            .iter()
            .for_each(|tensor| builder.bind_input(*tensor));
        chain(&mut builder, random);
        tensors
            .iter()
            .for_each(|tensor| builder.bind_output(*tensor));
    }
    builder.finish().unwrap_or_default()
}

fn shader(random: &mut Random) -> Vec<u8> {
    let code = vector_add_code();
    let mut bytes = Vec::new();
    for _ in 0..random.up_to(8) {
        let start = 16 * random.below(code.len() as u64 / 16) as usize;
        bytes.extend(&code[..start]);
    }
    bytes.extend(&code);
    bytes
}

/// Every two words are the address of the same texture.
fn textures(random: &mut Random, bytes: u64) -> Vec<u8> {
    let address = DATA + 8 * random.below(bytes / 8);
    let length = bytes.min(1 << random.below(20)) as usize / 8 * 8;
    address.to_le_bytes().repeat(length / 8)
}

fn name_textures(job: &mut [u8], count: u16) {
    job[0x60..0x68].copy_from_slice(&DATA.to_le_bytes());
    job[0x10a..0x10c].copy_from_slice(&count.to_le_bytes());
}

fn chain(builder: &mut Builder, random: &mut Random) {
    let jobs = random.up_to(6);
    for index in 0..jobs {
        let last = index + 1 == jobs;
        let next = match (last, random.once_in(8)) {
            (false, _) => JOBS + 64 * (index + 1),
            (true, true) => JOBS + 64 * random.below(jobs),
            (true, false) => 0,
        };
        builder.upload(JOBS + 64 * index, &null_job(next));
    }
    builder.submit(random.below(2) as u8, JOBS, 1000);
}

fn tensors(builder: &mut Builder, random: &mut Random, bytes: u64) -> Vec<TensorId> {
    let kinds = [
        TensorKind::Input,
        TensorKind::Output,
        TensorKind::Intermediate,
    ];
    let mut tensors = Vec::new();
    for index in 0..random.up_to(11) {
        let name = format!("{index}{}", "n".repeat(random.up_to(8) as usize));
        let kind = *random.choose(&kinds);
        let mut tensor = match random.below(4) {
            0 => {
                let (rows, columns) = (random.up_to(9) as u32, random.up_to(9) as u32);
                let mut tensor =
                    Tensor::dense(&name, kind, ElementType::U8, &[rows, columns], DATA);
                tensor.pieces = vec![Piece::strided(&[rows, columns], &[1, rows], DATA)];
                tensor
            }
            1 => {
                let count = random.up_to(7) as u32;
                let mut tensor = Tensor::dense(&name, kind, ElementType::U8, &[count], DATA);
                let piece = |element| Piece {
                    va: DATA + u64::from(element),
                    element: if random.once_in(64) { 0 } else { element },
                    axes: vec![Axis {
                        extent: 1,
                        element_stride: 1,
                        byte_stride: 1,
                    }],
                };
                tensor.pieces = (0..count).map(piece).collect();
                tensor
            }
            _ => {
                let elements = 1 + random.below(bytes.min(1 << 32)) as u32;
                Tensor::dense(&name, kind, ElementType::U8, &[elements], DATA)
            }
        };
        tensor.external = random.once_in(16);
        tensors.push(builder.tensor(tensor));
    }
    tensors
}

/// Also returns the states' names and bytes; no job changes them.
pub(crate) fn with_states(random: &mut Random) -> (Vec<u8>, Vec<(String, u32)>) {
    let mut builder = builder();
    let states: Vec<(String, u32)> = (0..random.up_to(8))
        .map(|index| (format!("s{index}"), random.up_to(14) as u32))
        .collect();
    let all: u32 = states.iter().map(|(_, bytes)| bytes).sum();
    builder.region(
        DATA,
        all.div_ceil(4096).max(1),
        Access::READ_WRITE,
        RegionKind::Data,
    );
    let mut at = DATA;
    let mut tensors = Vec::new();
    for (name, bytes) in &states {
        let tensor = Tensor::dense(name, TensorKind::State, ElementType::U8, &[*bytes], at);
        tensors.push(builder.tensor(tensor));
        at += u64::from(*bytes);
    }
    builder.segment("setup", SegmentKind::Setup);
    builder.fill(DATA, all, 1);
    builder.upload(JOBS, &null_job(0));
    for _ in 0..random.up_to(3) {
        builder.segment("run", SegmentKind::Run);
        tensors.iter().for_each(|state| builder.bind_input(*state));
        builder.rearm(JOBS);
        builder.submit(1, JOBS, 1000);
        tensors.iter().for_each(|state| builder.bind_output(*state));
    }
    (builder.finish().unwrap_or_default(), states)
}
