// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders made by hand, and their memory.

use fastrand::Rng;
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

    pub(crate) fn put_words(&self, words: &[u32]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
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
    Clause {
        header,
        tuples: vec![Tuple::new(registers, fma, add)],
        constants: Vec::new(),
    }
}

pub(crate) fn coded(
    header: ClauseHeader,
    registers: RegisterBlock,
    fma: Instruction,
    add: Instruction,
) -> Vec<u8> {
    encode_clause(&clause(header, registers, fma, add)).unwrap()
}

pub(crate) fn idle(op: Op) -> Instruction {
    nop(match op.unit() {
        Unit::Fma => Unit::Add,
        Unit::Add => Unit::Fma,
    })
}

pub(crate) fn by_unit(ins: Instruction, other: Instruction) -> [Instruction; 2] {
    match ins.op.unit() {
        Unit::Fma => [ins, other],
        Unit::Add => [other, ins],
    }
}

pub(crate) fn alone(header: ClauseHeader, registers: RegisterBlock, ins: Instruction) -> Vec<u8> {
    let [fma, add] = by_unit(ins, idle(ins.op));
    coded(header, registers, fma, add)
}

pub(crate) fn message(ins: &Instruction, staging_register: u8) -> ClauseHeader {
    ClauseHeader {
        message: ins.op.info().message,
        staging_register,
        ..HEADER
    }
}

pub(crate) fn last(header: ClauseHeader) -> ClauseHeader {
    ClauseHeader {
        flow_control: FlowControl::End,
        ..header
    }
}

pub(crate) fn with(mut ins: Instruction, modifiers: &[(Modifier, u8)]) -> Instruction {
    for (modifier, value) in modifiers {
        assert!(ins.set_modifier(*modifier, *value), "{modifier:?}");
    }
    ins
}

pub(crate) fn dispatch(space: &Flat, shader: u64, uniforms: &[u32], threads: u32) -> Dispatch {
    let mut words = uniforms.to_vec();
    words.resize(words.len().next_multiple_of(2), 0);
    Dispatch {
        grid: Grid {
            shader,
            workgroup_size: [threads, 1, 1],
            workgroup_count: [1, 1, 1],
            push_uniforms: space.put_words(&words),
            push_uniform_count: words.len() as u32 / 2,
            ..Grid::default()
        },
        ..Dispatch::default()
    }
}

pub(crate) fn launch(
    dispatch: &Dispatch,
    space: &impl AddressSpace,
) -> Result<Statistics, ShaderFault> {
    mali_shader::run(dispatch, space, &Threads::new(1), &Control::new(10_000))
}

pub(crate) fn run(
    space: &Flat,
    code: &[u8],
    uniforms: &[u32],
    threads: u32,
) -> Result<Statistics, ShaderFault> {
    launch(&dispatch(space, space.put(code), uniforms, threads), space)
}

pub(crate) const UNTOUCHED: u32 = 0xdead_beef;

pub(crate) fn run_between(
    space: &Flat,
    registers: [u32; 3],
    fau: [u32; 2],
    middle: &[u8],
    more: Dispatch,
) -> [u32; 3] {
    use Source::{FauHigh, FauLow};
    let out = space.put_words(&[UNTOUCHED; 3]);
    let mut code = Vec::new();
    for (source, slot, register) in [(FauLow, 0x80, 1), (FauHigh, 0x80, 2), (FauLow, 0x81, 3)] {
        let registers = block(slot, [1, 2, 3], Some((Unit::Fma, register)));
        let mov = instruction(Unit::Fma, "MOV.i32", &[source]);
        code.extend(alone(HEADER, registers, mov));
    }
    code.extend(middle);
    let store = instruction(Unit::Add, "STORE.i96", &[FauLow, FauHigh]);
    let registers_of_end = block(0x83, [1, 2, 3], None);
    code.extend(alone(last(message(&store, 4)), registers_of_end, store));
    let ([a, b, c], [low, high]) = (registers, halves(out));
    let uniforms = [a, b, c, 0, fau[0], fau[1], low, high];
    let dispatch = Dispatch {
        grid: dispatch(space, space.put(&code), &uniforms, 3).grid,
        ..more
    };
    launch(&dispatch, space).unwrap();
    space.words(out, 3).try_into().unwrap()
}

/// r1, r2, r3 at the ports; returns r4 (or what a thread stores).
pub(crate) fn tuple(fma: Instruction, add: Instruction, registers: [u32; 3], fau: [u32; 2]) -> u32 {
    let writer = match () {
        () if add.op.info().message.is_some() => None,
        () if add.op.info().result => Some((Unit::Add, 4)),
        () => fma.op.info().result.then_some((Unit::Fma, 4)),
    };
    let middle = coded(message(&add, 4), block(0x82, [1, 2, 3], writer), fma, add);
    run_between(&Flat::new(64), registers, fau, &middle, Dispatch::default())[0]
}

pub(crate) fn add(ins: Instruction, registers: [u32; 3]) -> u32 {
    tuple(nop(Unit::Fma), ins, registers, [0, 0])
}

pub(crate) fn halves(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

pub(crate) fn any_instruction(random: &mut Rng, op: Op) -> Instruction {
    let mut ins = Instruction::new(op);
    modify(random, &mut ins);
    for (slot, source) in ins.sources.iter_mut().zip(op.info().sources) {
        let selector = random.u32(..8);
        if source.allowed >> selector & 1 == 1 {
            *slot = Source::from_selector(selector);
        }
    }
    ins
}

pub(crate) fn modify(random: &mut Rng, ins: &mut Instruction) {
    let info = ins.op.info();
    for (slot, modifier) in ins.modifiers.iter_mut().zip(info.modifiers) {
        let options: Vec<u8> = modifier.options.iter().flatten().copied().collect();
        *slot = options[random.usize(..options.len())];
    }
}
