// SPDX-License-Identifier: MIT OR Apache-2.0
//! For every rule, a recording that only it refuses.

use std::collections::BTreeSet;

use gpureplay_format::{Access, Builder, ElementType, RegionKind, SegmentKind, Tensor, TensorKind};
use gpureplay_library::{Files, Trust};
use gpureplay_retarget::{CompareError, Effort, Options, TargetRule, compare, fits, retarget};
use mali_facts::{Invocation, Profile};
use mali_isa::{
    Clause, ClauseHeader, Fau, Instruction, Modifier, Op, RegisterBlock, Segment, Source, Tuple,
    Unit, encode_clause,
};

const JOBS: u64 = 0x200_0000;
const CODE: u64 = 0x300_0000;
const DATA: u64 = 0x400_0000;
const STORAGE: u64 = 0x500_0000;

struct Recipe {
    shader: Vec<u8>,
    slot: u8,
    size: u32,
    count: u32,
    barrier: bool,
    texture: Option<u32>,
    /// Bytes per thread: 16, shifted by this.
    storage: Option<u32>,
    storage_at: u64,
    /// By default as many as a G52 needs.
    pages: Option<u32>,
    far: Option<u64>,
}

impl Default for Recipe {
    fn default() -> Self {
        Recipe {
            shader: [
                one(
                    "STORE.i32",
                    &[Source::FauLow, Source::FauHigh],
                    Fau::Uniform(0),
                ),
                end(),
            ]
            .concat(),
            slot: 1,
            size: 16,
            count: 64,
            barrier: false,
            texture: None,
            storage: None,
            storage_at: STORAGE,
            pages: None,
            far: None,
        }
    }
}

/// One ADD instruction, which stores r0 if it stores. Ports 0 and 1 read r0 and r1.
fn one(name: &str, sources: &[Source], fau: Fau) -> Vec<u8> {
    one_with(0, name, sources, fau)
}

fn one_with(staging_register: u8, name: &str, sources: &[Source], fau: Fau) -> Vec<u8> {
    let mut add = Instruction::new(Op::find(Unit::Add, name).unwrap());
    add.sources[..sources.len()].copy_from_slice(sources);
    clause(staging_register, add, fau)
}

fn in_storage(staging_register: u8, name: &str) -> Vec<u8> {
    let mut add = Instruction::new(Op::find(Unit::Add, name).unwrap());
    add.sources[..2].copy_from_slice(&[Source::FauLow, Source::FauHigh]);
    assert!(add.set_modifier(Modifier::Segment, Segment::Tl as u8));
    clause(staging_register, add, Fau::Zero)
}

fn clause(staging_register: u8, add: Instruction, fau: Fau) -> Vec<u8> {
    let nop = Instruction::new(Op::find(Unit::Fma, "NOP").unwrap());
    let message = add.op.info().message;
    let index = match fau {
        Fau::Uniform(slot) => 0x80 | u64::from(slot),
        Fau::LaneId => 1,
        Fau::WarpId => 2,
        Fau::CoreId => 3,
        _ => 0,
    };
    let registers = RegisterBlock(index | 2 << 14 | 1 << 25 | 12 << 31);
    let clause = Clause {
        header: ClauseHeader {
            staging_register,
            message,
            ..ClauseHeader::PLAIN
        },
        tuples: vec![Tuple::new(registers, nop, add)],
        constants: Vec::new(),
    };
    encode_clause(&clause).unwrap()
}

fn end() -> Vec<u8> {
    one("JUMP", &[Source::FauLow], Fau::Zero)
}

impl Recipe {
    fn bytes(&self) -> Vec<u8> {
        let mut builder = Builder::new(0x7212_0000);
        builder.identity(0, 0xffff_0000, 0x7212_0000);
        builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
        builder.region(CODE, 1, Access::READ_EXECUTE, RegionKind::Code);
        builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
        let mut words = [0u32; 512];
        let mut long = |at: usize, value: u64| {
            words[at / 4] = value as u32;
            words[at / 4 + 1] = (value >> 32) as u32;
        };
        // Header: compute, 64-bit. Draw: state, uniforms, storage.
        long(16, 1 | 4 << 1 | 1 << 16);
        let invocation = Invocation::pack([self.size, 1, 1], [self.count, 1, 1]).unwrap();
        long(
            32,
            u64::from(invocation.words[1]) << 32 | u64::from(invocation.words[0]),
        );
        long(64 + 12 * 4, JOBS + 0x180);
        long(64 + 14 * 4, JOBS + 0x100);
        // Renderer state 0x100, uniforms 0x180, storage 0x1c0, texture 0x200, its surface 0x240.
        long(0x100, CODE);
        long(0x110, 2 << 12 | u64::from(self.barrier) << 11);
        long(0x130, 1 << 12 | 3 << 15);
        long(0x180, DATA);
        if let Some(format) = self.texture {
            long(0x108, 1 << 16);
            long(64 + 8 * 4, JOBS + 0x200);
            long(0x200, 2 | 1 << 4 | u64::from(format) << 22);
            long(0x210, JOBS + 0x240);
            long(0x240, DATA);
        }
        if let Some(size) = self.storage {
            let pages = self.pages.unwrap_or((16 << size) * 768 * 2 / 4096);
            builder.region(
                self.storage_at,
                pages,
                Access::READ_WRITE,
                RegionKind::Scratch,
            );
            long(64 + 28 * 4, JOBS + 0x1c0);
            long(0x1c0, size.into());
            long(0x1c8, self.storage_at);
        }
        if let Some(far) = self.far {
            builder.region(far, 1, Access::READ_WRITE, RegionKind::Data);
        }
        let output = Tensor::dense("out", TensorKind::Output, ElementType::U32, &[256], DATA);
        let output = builder.tensor(output);
        builder.segment("setup", SegmentKind::Setup);
        builder.upload(CODE, &self.shader);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        builder.upload(JOBS, &bytes);
        builder.segment("run", SegmentKind::Run);
        builder.rearm(JOBS);
        builder.submit(self.slot, JOBS, 1_000_000);
        builder.bind_output(output);
        builder.finish().unwrap()
    }

    /// `None`: it computes the same there.
    fn rule(&self, gpu: &'static Profile, mix_versions: bool) -> Option<(TargetRule, String)> {
        let bytes = self.bytes();
        let read = || Files::from_bytes(bytes.clone(), &Trust::default());
        let files = read().unwrap();
        let view = files.view().unwrap();
        let verified = *files.verify(&view).unwrap().chains().unwrap();
        let options = Options {
            mix_versions,
            ..Options::default()
        };
        let made = match retarget(&verified, gpu, &options) {
            Ok(made) => made,
            Err(refusal) => return Some((refusal.rule, refusal.to_string())),
        };
        match compare(read, &made, Effort::default()) {
            Ok(_) => None,
            Err(CompareError::Refused(refusal)) => Some((refusal.rule, refusal.to_string())),
            Err(error) => panic!("{error}"),
        }
    }
}

fn gpu(name: &str) -> &'static Profile {
    Profile::by_name(name).unwrap()
}

fn like(name: &str, change: impl FnOnce(&mut Profile)) -> &'static Profile {
    let mut profile = Profile { ..*gpu(name) };
    change(&mut profile);
    Box::leak(Box::new(profile))
}

/// The rule, the GPU, whether versions may be mixed; what is refused, and what is taken.
macro_rules! cases {
    ($($rule:ident, $gpu:expr, $mix:literal: $refused:expr $(=> $taken:expr)?;)*) => {
        vec![$(($rule, $refused, cases!(@ $($taken)?), $gpu, $mix)),*]
    };
    (@) => { None };
    (@ $taken:expr) => { Some($taken) };
}

#[test]
fn every_rule_refuses_something() {
    use TargetRule::*;
    let port = &[Source::Port0];
    let pointer = &[Source::FauLow, Source::FauHigh];
    let plain = Recipe::default;
    let with = |shader: Vec<u8>| Recipe {
        shader: [shader, end()].concat(),
        ..plain()
    };
    let reads = |fau| with(one("IADD.s32", &[Source::FauLow, Source::Port0], fau));
    let stored = |size| Recipe {
        storage: Some(size),
        ..plain()
    };
    let cases: Vec<(TargetRule, Recipe, Option<Recipe>, &'static Profile, bool)> = cases! {
        Sound, gpu("g76"), false: Recipe { pages: Some(1), ..stored(4) } => stored(4);
        Version, gpu("g72"), false: plain();
        Instructions, gpu("g71"), true:
            with(one("FRCP.f32", port, Fau::Zero)) =>
            with(one("FRCP_APPROX.f32", port, Fau::Zero));
        WholeShader, gpu("g31"), false: with(one("JUMP", port, Fau::Zero)) => plain();
        CoreNumber, gpu("g31"), false: reads(Fau::CoreId) => reads(Fau::LaneId);
        Warp, gpu("g71"), true: reads(Fau::LaneId) => reads(Fau::Uniform(0));
        GroupSize, gpu("g31"), false:
            Recipe { size: 512, ..plain() } => Recipe { size: 256, ..plain() };
        BarrierSize, like("g31", |gpu| gpu.max_barrier_size = 8), false:
            Recipe { barrier: true, ..plain() } => plain();
        JobSlot, like("g31", |gpu| gpu.js_present = 1), false: plain();
        Format, gpu("g31"), false:
            Recipe { texture: Some(3), ..plain() } => Recipe { texture: Some(187), ..plain() };
        AddressBits, gpu("g31"), false:
            Recipe { far: Some(1 << 34), ..plain() } =>
            Recipe { far: Some(1 << 32), ..plain() };
        Storage, like("g76", |gpu| gpu.mmu_features = 0x2821), false:
            Recipe { storage_at: 0x1_f000_0000, ..stored(11) } => stored(4);
        // More memory than any recording may have.
        Deep, gpu("g76"), false: stored(17) => stored(4);
        // The last thread to store depends on the order.
        Order, gpu("g31"), false:
            with(one_with(60, "STORE.i32", pointer, Fau::Uniform(0))) => plain();
        // Storage has what the thread before left; that depends on the number of cores.
        Equal, gpu("g31"), false:
            Recipe { shader: [
                in_storage(0, "LOAD.i32"),
                in_storage(60, "STORE.i32"),
                one_with(0, "STORE.i32", pointer, Fau::Uniform(0)),
                end(),
            ].concat(), ..stored(4) };
    };
    let mut seen = BTreeSet::new();
    for (rule, refused, taken, gpu, mix) in &cases {
        seen.insert(*rule);
        let found = refused.rule(gpu, *mix);
        let (found, text) = found.unwrap_or_else(|| panic!("{} is not refused", rule.name()));
        assert_eq!(found, *rule, "{text}");
        println!("{text}");
        if let Some(taken) = taken {
            let found = taken.rule(gpu, *mix);
            assert_eq!(found, None, "beside {}", rule.name());
        }
    }
    let all: BTreeSet<TargetRule> = TargetRule::ALL.iter().copied().collect();
    assert_eq!(seen, all);
}

#[test]
fn what_fits_as_it_is_needs_storage_too() {
    let bytes = Recipe {
        storage: Some(4),
        ..Recipe::default()
    }
    .bytes();
    let files = Files::from_bytes(bytes, &Trust::default()).unwrap();
    let view = files.view().unwrap();
    let verified = *files.verify(&view).unwrap().chains().unwrap();
    let options = Options::default();
    assert_eq!(fits(&verified, gpu("g31"), &options), Ok(1));
    let refusal = fits(&verified, gpu("g76"), &options).unwrap_err();
    assert_eq!(refusal.rule, TargetRule::Deep, "{refusal}");
}
