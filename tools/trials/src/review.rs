// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attackers' recordings. A rule refuses each, or it stays within budget (`cargo test -p gpureplay --test cost`).

use gpureplay_format::{
    Access, Axis, Builder, ElementType, Piece, RegionKind, Section, SegmentKind, Tensor, TensorKind,
};
use mali_facts::Invocation;
use mali_isa::{
    Clause, ClauseHeader, FlowControl, Instruction, Op, RegisterBlock, Source, Tuple, Unit,
    encode_clause,
};

use crate::parts::Parts;

const GPU: u32 = 0x7212_0000;
const CODE: u64 = 0x100_0000;
const JOBS: u64 = 0x200_0000;
const DATA: u64 = 0x300_0000;

/// An attack on the replayer.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// What it shows.
    pub finding: &'static str,
    /// The recording.
    pub file: Vec<u8>,
    /// `None` if it stays within budget.
    pub rule: Option<&'static str>,
}

/// `scale`: smaller by powers of two, but for what a rule must refuse.
pub fn all(scale: u32) -> Vec<Reviewed> {
    let less = |number: u32| (number >> scale).max(1);
    let new = |finding, rule, file| Reviewed {
        finding,
        file,
        rule,
    };
    vec![
        new(
            "1: a name wider than a column",
            Some("name-length"),
            named(70_000, 1),
        ),
        new(
            "1: a name of many binds",
            Some("name-length"),
            named(1 << 20, less(40_000)),
        ),
        new(
            "1: a name of many tensors",
            Some("name-length"),
            shared_name(less(4000)),
        ),
        new(
            "1: regions of more than all memory",
            Some("memory-limit"),
            regions(less(1 << 20) + 1),
        ),
        new("1: empty segments", None, segments(less(200_000))),
        new(
            "2: shaders that share their code",
            None,
            shaders(less(100), less(100), less(65_000)),
        ),
        new(
            "4: jobs of one large shader",
            None,
            shaders(less(65_536), 1, less(65_000)),
        ),
        new("4: a shader without end", None, endless()),
        new("4: a chain without end", Some("chain-loop"), circle()),
        new(
            "5: a transposed output",
            Some("copy-runs"),
            transposed(1000),
        ),
        new(
            "6: empty segments beside much memory",
            None,
            much_memory(20),
        ),
        new(
            "8: pieces that cover one element",
            Some("tensor-coverage"),
            one_element(),
        ),
        new(
            "9: an input that nothing binds",
            Some("tensor-use"),
            unbound(),
        ),
        new("9: many binds in many layers", None, layers(less(20_000))),
        new(
            "10: a chain that is submitted often",
            None,
            resubmitted(1000, less(250)),
        ),
        new(
            "10: a chain that is submitted as often as may be",
            None,
            resubmitted(1000, 262),
        ),
        new(
            "10: a chain that is submitted too often",
            Some("deep-limit"),
            resubmitted(1000, 500),
        ),
        new("10: many states", None, states(less(20_000))),
        new(
            "10: outputs in the same memory",
            Some("output-bytes"),
            outputs(500),
        ),
    ]
}

/// Rules of deep verification only; others refuse for every command.
pub const DEEP: [&str; 2] = ["chain-loop", "deep-limit"];

fn builder() -> Builder {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder
}

/// Job at [`JOBS`], one-thread groups, its code's address as a uniform.
fn compute_job(entry: u64, groups: u32) -> [u8; 0x200] {
    let mut job = [0; 0x200];
    let mut put = |at: usize, word: u64| job[at..at + 8].copy_from_slice(&word.to_le_bytes());
    // Compute, 64-bit addresses, index 1.
    put(0x10, 0x0001_0009);
    // Storage, uniforms, renderer state, uniform buffers.
    for (at, to) in [(0x58, 0x1c0), (0x70, 0x180), (0x78, 0x100), (0xb0, 0x140)] {
        put(at, JOBS + to);
    }
    put(0x40, 3);
    // Code, 32 registers, three pushed uniforms; no local storage.
    put(0x100, entry);
    put(0x110, 0x2001);
    put(0x130, 0x1_9000);
    put(0x144, 31);
    put(0x180, entry);
    let size = Invocation::pack([1; 3], [groups, 1, 1]).map_or([0; 2], |size| size.words);
    put(0x20, u64::from(size[1]) << 32 | u64::from(size[0]));
    job
}

fn null_job(next: u64) -> [u8; 32] {
    let mut job = [0; 32];
    job[16] = 1 << 1 | 1;
    job[24..].copy_from_slice(&next.to_le_bytes());
    job
}

fn null_chain(builder: &mut Builder) {
    builder.upload(JOBS, &null_job(0));
    builder.submit(1, JOBS, 1000);
}

fn with_data() -> Builder {
    let mut builder = builder();
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    builder
}

fn finished(builder: Builder) -> Vec<u8> {
    builder.finish().unwrap_or_default()
}

fn byte(name: &str, kind: TensorKind) -> Tensor {
    Tensor::dense(name, kind, ElementType::U8, &[1], DATA)
}

fn named(length: usize, binds: u32) -> Vec<u8> {
    let mut builder = with_data();
    let tensor = builder.tensor(byte(&"n".repeat(length), TensorKind::Input));
    builder.segment("run", SegmentKind::Run);
    (0..binds).for_each(|_| builder.bind_input(tensor));
    null_chain(&mut builder);
    finished(builder)
}

fn shared_name(count: u32) -> Vec<u8> {
    let mut builder = with_data();
    for index in 0..count {
        builder.tensor(byte(&index.to_string(), TensorKind::Input));
    }
    builder.segment("run", SegmentKind::Run);
    let Some(mut parts) = Parts::of(&finished(builder)) else {
        return Vec::new();
    };
    let names = parts.tensors().iter_mut();
    names.for_each(|entry| entry.name.set(0));
    *parts.section(Section::Strings) = [vec![b'n'; 1 << 20], vec![0]].concat();
    parts.file()
}

fn regions(count: u32) -> Vec<u8> {
    let Some(mut parts) = Parts::of(&named(1, 1)) else {
        return Vec::new();
    };
    let region = |index: u64| {
        let rest = [1, RegionKind::Data.code(), 0, 0];
        [&(index << 12).to_le_bytes()[..], &[0xff; 4], &rest].concat()
    };
    *parts.section(Section::Regions) = (0..u64::from(count)).flat_map(region).collect();
    parts.file()
}

fn segments(count: u32) -> Vec<u8> {
    let mut builder = with_data();
    (0..count).for_each(|_| builder.segment("run", SegmentKind::Run));
    finished(builder)
}

fn instruction(unit: Unit, name: &str) -> Instruction {
    let op = Op::find(unit, name).or(Op::find(unit, "NOP"));
    Instruction::new(op.expect("every unit does nothing"))
}

fn addition() -> Tuple {
    let [fma, add] = [Unit::Fma, Unit::Add].map(|unit| instruction(unit, "FADD.f32"));
    Tuple::new(
        RegisterBlock(1 << 20 | 2 << 25 | 3 << 31 | 3 << 14),
        fma,
        add,
    )
}

fn clause_of(tuples: Vec<Tuple>, flow_control: FlowControl) -> Vec<u8> {
    let message = tuples.last().and_then(|tuple| tuple.add.op.info().message);
    let header = ClauseHeader {
        flow_control,
        message,
        ..ClauseHeader::PLAIN
    };
    let clause = Clause {
        header,
        tuples,
        constants: Vec::new(),
    };
    encode_clause(&clause).unwrap_or_default()
}

fn clause(tuples: usize) -> Vec<u8> {
    clause_of(vec![addition(); tuples], FlowControl::Continue)
}

fn with_code(code: &[u8]) -> Builder {
    let mut builder = with_data();
    let pages = code.len().div_ceil(4096) as u32;
    builder.region(CODE, pages, Access::READ_EXECUTE, RegionKind::Code);
    builder.segment("setup", SegmentKind::Setup);
    builder.upload(CODE, code);
    builder.segment("run", SegmentKind::Run);
    builder
}

/// 16-byte clauses, each an entry, before one long code; jobs run them in turn.
fn shaders(jobs: u32, entries: u32, clauses: u32) -> Vec<u8> {
    let mut code = clause(1).repeat(entries as usize);
    code.extend(clause(8).repeat(clauses as usize));
    code.extend(clause_of(vec![addition()], FlowControl::End));
    let mut builder = with_code(&code);
    for job in 0..jobs {
        let entry = CODE + 16 * u64::from(job % entries);
        builder.upload(JOBS, &compute_job(entry, 1));
        builder.submit(1, JOBS, 1000);
    }
    finished(builder)
}

fn endless() -> Vec<u8> {
    // It jumps to its first uniform: its own address.
    let mut jump = instruction(Unit::Add, "JUMP");
    jump.sources[0] = Source::FauLow;
    let registers = RegisterBlock(0x80 | 2 << 14 | 1 << 25 | 12 << 31);
    let tuple = Tuple::new(registers, instruction(Unit::Fma, "NOP"), jump);
    let mut code = clause_of(vec![tuple], FlowControl::Continue);
    code.resize(64, 0);
    let mut builder = with_code(&code);
    builder.upload(JOBS, &compute_job(CODE, 64));
    builder.submit(1, JOBS, 1000);
    finished(builder)
}

fn circle() -> Vec<u8> {
    let mut builder = with_data();
    builder.segment("run", SegmentKind::Run);
    builder.upload(JOBS, &null_job(JOBS));
    builder.submit(1, JOBS, 1000);
    finished(builder)
}

fn transposed(binds: u32) -> Vec<u8> {
    const SIDE: u32 = 8192;
    let mut builder = builder();
    let pages = SIDE * (SIDE / 4096);
    builder.region(DATA, pages, Access::READ_WRITE, RegionKind::Data);
    let mut tensor = byte("y", TensorKind::Output);
    tensor.shape = vec![SIDE, SIDE];
    tensor.pieces = vec![Piece::strided(&[SIDE, SIDE], &[1, SIDE], DATA)];
    let tensor = builder.tensor(tensor);
    builder.segment("run", SegmentKind::Run);
    null_chain(&mut builder);
    (0..binds).for_each(|_| builder.bind_output(tensor));
    finished(builder)
}

fn much_memory(segments: u32) -> Vec<u8> {
    let mut builder = builder();
    builder.region(0x1_0000_0000, 1 << 18, Access::READ_WRITE, RegionKind::Data);
    (0..segments).for_each(|_| builder.segment("run", SegmentKind::Run));
    finished(builder)
}

fn one_element() -> Vec<u8> {
    let mut builder = with_data();
    let mut tensor = byte("y", TensorKind::Output);
    tensor.shape = vec![64];
    let piece = Piece {
        va: DATA,
        element: 0,
        axes: vec![Axis {
            extent: 1,
            element_stride: 1,
            byte_stride: 1,
        }],
    };
    tensor.pieces = vec![piece; 64];
    let tensor = builder.tensor(tensor);
    builder.segment("run", SegmentKind::Run);
    null_chain(&mut builder);
    builder.bind_output(tensor);
    finished(builder)
}

fn unbound() -> Vec<u8> {
    let mut builder = with_data();
    builder.tensor(byte("x", TensorKind::Input));
    builder.segment("run", SegmentKind::Run);
    finished(builder)
}

fn resubmitted(jobs: u64, times: u32) -> Vec<u8> {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    let pages = (64 * jobs).div_ceil(4096) as u32;
    builder.region(JOBS, pages, Access::READ_WRITE, RegionKind::Descriptors);
    builder.segment("setup", SegmentKind::Setup);
    let headers = (1..=jobs).flat_map(|next| {
        let next = if next < jobs { JOBS + 64 * next } else { 0 };
        let mut header = [0; 64];
        header[..32].copy_from_slice(&null_job(next));
        header
    });
    builder.upload(JOBS, &headers.collect::<Vec<u8>>());
    builder.segment("first", SegmentKind::Run);
    builder.segment("second", SegmentKind::Run);
    for _ in 0..times {
        builder.rearm(JOBS);
        builder.submit(1, JOBS, 100);
    }
    finished(builder)
}

fn states(count: u32) -> Vec<u8> {
    let mut builder = builder();
    let pages = count.div_ceil(4096);
    builder.region(DATA, pages, Access::READ_WRITE, RegionKind::Data);
    let states: Vec<_> = (0..count)
        .map(|index| {
            let va = DATA + u64::from(index);
            let name = format!("s{index}");
            builder.tensor(Tensor::dense(
                &name,
                TensorKind::State,
                ElementType::U8,
                &[1],
                va,
            ))
        })
        .collect();
    builder.segment("run", SegmentKind::Run);
    states.iter().for_each(|state| builder.bind_input(*state));
    null_chain(&mut builder);
    states.iter().for_each(|state| builder.bind_output(*state));
    finished(builder)
}

fn outputs(count: u32) -> Vec<u8> {
    let mut builder = builder();
    builder.region(DATA, 256, Access::READ_WRITE, RegionKind::Data);
    let outputs: Vec<_> = (0..count)
        .map(|index| {
            let name = format!("o{index}");
            let tensor =
                Tensor::dense(&name, TensorKind::Output, ElementType::U8, &[1 << 20], DATA);
            builder.tensor(tensor)
        })
        .collect();
    builder.segment("run", SegmentKind::Run);
    null_chain(&mut builder);
    outputs
        .iter()
        .for_each(|output| builder.bind_output(*output));
    finished(builder)
}

fn layers(count: u32) -> Vec<u8> {
    let mut builder = with_data();
    let tensors: Vec<_> = (0..count)
        .map(|index| builder.tensor(byte(&format!("t{index}"), TensorKind::Intermediate)))
        .collect();
    let output = builder.tensor(byte("y", TensorKind::Output));
    for chunk in tensors.chunks(100) {
        builder.segment("run", SegmentKind::Run);
        for tensor in chunk {
            builder.bind_input(*tensor);
            builder.bind_output(*tensor);
        }
        null_chain(&mut builder);
        builder.bind_output(output);
    }
    finished(builder)
}
