// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders made by hand, and memory to run them in.
// Each test uses a part.

use gpureplay_memory::{Bus, Page, Ram};
use gpureplay_shader::{
    Access, AddressSpace, Control, Grid, MmuFault, ShaderFault, Statistics, Threads,
};
use mali_isa::*;
use mali_shader::Dispatch;

pub(crate) struct Flat(pub(crate) Ram);

impl AddressSpace for Flat {
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault> {
        self.0.page(va).ok_or(MmuFault {
            va,
            access,
            code: 0xc3,
        })
    }
}

impl Flat {
    pub(crate) fn new(pages: usize) -> Flat {
        Flat(Ram::new(pages).unwrap())
    }

    pub(crate) fn put(&self, bytes: &[u8]) -> u64 {
        let address = self
            .0
            .allocate_contiguous(bytes.len().div_ceil(4096).max(1))
            .unwrap();
        self.0.write(address, bytes).unwrap();
        address
    }

    pub(crate) fn words(&self, address: u64, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; count * 4];
        self.0.read(address, &mut bytes).unwrap();
        bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect()
    }
}

pub(crate) const HEADER: ClauseHeader = ClauseHeader::PLAIN;

pub(crate) fn nop(unit: Unit) -> Instruction {
    Instruction::new(Op::find(unit, "NOP").unwrap())
}

pub(crate) fn instruction(unit: Unit, name: &str, sources: &[Source]) -> Instruction {
    let mut instruction =
        Instruction::new(Op::find(unit, name).unwrap_or_else(|| panic!("no {name}")));
    instruction.sources[..sources.len()].copy_from_slice(sources);
    instruction
}

/// Ports 0, 1, 2 read `reads` (ascending); `unit` writes `write`.
pub(crate) fn block(fau: u8, reads: [u8; 3], write: Option<(Unit, u8)>) -> RegisterBlock {
    let (control, slot3) = match write {
        Some((Unit::Fma, register)) => (3, register),
        Some((Unit::Add, register)) => (6, register),
        // Slot 2 is read, nothing written: mode 20.
        None => (4 | 8, 0),
    };
    assert!(reads[0] <= reads[1] && reads[0] < 32);
    RegisterBlock(
        u64::from(fau)
            | u64::from(slot3) << 8
            | u64::from(reads[2]) << 14
            | u64::from(reads[0]) << 20
            | u64::from(reads[1]) << 25
            | control << 31,
    )
}

pub(crate) fn clause(
    header: ClauseHeader,
    registers: RegisterBlock,
    fma: Instruction,
    add: Instruction,
) -> Clause {
    let tuple = Tuple {
        registers,
        ports: [None; 3],
        fau: Fau::Zero,
        fma,
        add,
        fma_destination: None,
        add_destination: None,
    };
    Clause {
        header,
        tuples: vec![tuple],
        constants: Vec::new(),
    }
}

pub(crate) fn run(
    space: &Flat,
    code: &[u8],
    uniforms: &[u32],
    threads: u32,
) -> Result<Statistics, ShaderFault> {
    let mut words = uniforms.to_vec();
    words.resize(words.len().next_multiple_of(2), 0);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let dispatch = Dispatch {
        grid: Grid {
            shader: space.put(code),
            workgroup_size: [threads, 1, 1],
            workgroup_count: [1, 1, 1],
            push_uniforms: space.put(&bytes),
            push_uniform_count: words.len() as u32 / 2,
            ..Grid::default()
        },
        ..Dispatch::default()
    };
    mali_shader::run(&dispatch, space, &Threads::new(1), &Control::new(10_000))
}

/// SplitMix64, so that a failure repeats.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
