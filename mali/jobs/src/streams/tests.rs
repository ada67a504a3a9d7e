// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches that keep or break rules.

use gpureplay_format::layout::Platform;
use gpureplay_format::{Builder, SegmentKind};

use super::*;
use crate::walk::{DeepRule, check_streams};

const GPU: u32 = 0xa867_0005;
const MEMORY: u64 = 0x10_0000;

fn mov(pair: u64, value: u64) -> u64 {
    1 << 56 | pair << 48 | value
}

fn mov32(register: u64, value: u64) -> u64 {
    2 << 56 | register << 48 | value
}

const WAIT_ALL: u64 = 3 << 56 | 0xff << 16;
const RUN: u64 = 4 << 56;
const FLUSH: u64 = 0x24 << 56 | 74 << 40 | 0x11;
const REQUEST_COMPUTE: u64 = 0x22 << 56 | 1;

fn mesa_words() -> Vec<u64> {
    let mut words = vec![REQUEST_COMPUTE, 0x17 << 56];
    words.extend([
        mov(0, MEMORY | 1),
        mov32(8, MEMORY + 0x100),
        mov32(9, 2 << 24),
        mov(16, MEMORY + 0x200),
        mov(24, MEMORY + 0x240),
        mov32(32, 0),
        mov32(33, 63),
    ]);
    words.extend((34..37).map(|register| mov32(register, 0)));
    words.extend((37..40).map(|register| mov32(register, 1)));
    words.extend([RUN, WAIT_ALL, mov32(74, 0), FLUSH, WAIT_ALL]);
    words
}

fn recording(queue: u8, words: &[u32]) -> Vec<u8> {
    let mut builder = Builder::new(GPU);
    builder.platform(Platform {
        family: FAMILY_STREAMS,
        ..Platform::of(GPU)
    });
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(MEMORY, 1, Access::READ_WRITE, RegionKind::Data);
    builder.segment("run", SegmentKind::Run);
    builder.launch(queue, words, 1000);
    builder.finish().unwrap()
}

fn halves(words: &[u64]) -> Vec<u32> {
    let both = |word: &u64| [*word as u32, (*word >> 32) as u32];
    words.iter().flat_map(both).collect()
}

fn verdict(file: &[u8]) -> Result<(), (Rule, Option<Broken>)> {
    let view = Recording::parse(file).unwrap();
    let verified = verify(&view, &Limits::DEFAULT);
    verified
        .map(drop)
        .map_err(|violation| (violation.rule, broken(&view).map(|(_, broken)| broken)))
}

#[test]
fn a_dispatch_of_mesa_is_accepted_and_by_no_other_family() {
    let file = recording(0, &halves(&mesa_words()));
    assert_eq!(verdict(&file), Ok(()));
    let view = Recording::parse(&file).unwrap();
    let violation = mali_drive::verify(&view, &Limits::DEFAULT).unwrap_err();
    assert_eq!(violation.rule, Rule::Family);
}

fn with(change: impl FnOnce(&mut Vec<u64>)) -> Option<Broken> {
    let mut words = mesa_words();
    change(&mut words);
    match verdict(&recording(0, &halves(&words))) {
        Ok(()) => None,
        Err((rule, broken)) => {
            assert_eq!(rule, Rule::JobConfiguration);
            broken
        }
    }
}

#[test]
fn each_rule_refuses_the_launch_that_breaks_it() {
    let refused = |file: Vec<u8>| verdict(&file).unwrap_err().1.unwrap();
    let words = halves(&mesa_words());
    assert_eq!(refused(recording(1, &words)), Broken::Queue(1));
    assert_eq!(refused(recording(0, &[])), Broken::Length(0));
    assert_eq!(
        refused(recording(0, &words[1..])),
        Broken::Length(words.len() * 4 - 4)
    );
    let no_dispatch = with(|words| words.retain(|word| *word != RUN));
    assert_eq!(no_dispatch, Some(Broken::NoDispatch));
    let endpoint = with(|words| words[0] |= 6);
    assert_eq!(endpoint, Some(Broken::Endpoint { at: 0 }));
    for register in [92, 94, 95] {
        let kernels = with(|words| words[2] = mov32(register, 0));
        let register = register as u8;
        assert_eq!(kernels, Some(Broken::KernelRegister { at: 2, register }));
    }
    // Register without a value, unknown register, bit without a meaning.
    let undefined = with(|words| {
        words.remove(2);
    });
    let fault = Fault::Undefined(0);
    let run = mesa_words().iter().position(|word| *word == RUN).unwrap();
    assert_eq!(undefined, Some(Broken::Fault { at: run - 1, fault }));
    assert!(matches!(
        with(|words| words[5] = mov(17, 0)),
        Some(Broken::Fault { at: 5, .. })
    ));
    assert!(matches!(
        with(|words| words[run] |= 1 << 36),
        Some(Broken::Fault { .. })
    ));
}

#[test]
fn only_the_instructions_of_the_list_are_accepted() {
    let accepted = |op: Op| with(|words| words.insert(2, u64::from(op.row().opcode) << 56));
    for op in Op::ALL {
        let found = accepted(*op);
        match op {
            Op::Nop | Op::Move | Op::Move32 | Op::Wait | Op::SetSbEntry => {
                assert_eq!(found, None, "{op:?}");
            }
            Op::RunCompute | Op::FlushCache2 => {
                assert!(matches!(found, Some(Broken::Fault { at: 2, .. })), "{op:?}");
            }
            Op::ReqResource => assert_eq!(found, Some(Broken::Endpoint { at: 2 })),
            _ => {
                let refused = matches!(found, Some(Broken::Instruction { at: 2, .. }));
                assert!(refused, "{op:?}: {found:?}");
            }
        }
    }
}

#[test]
fn what_a_dispatch_names_lies_in_regions() {
    let outside = MEMORY + 0x1000;
    let cases: [(usize, u64, &str); 5] = [
        (2, mov(0, outside | 1), "a list of resources"),
        (3, mov32(8, outside), "uniforms"),
        (5, mov(16, outside), "a program"),
        (5, mov(16, MEMORY + 0x208), "a program"),
        (6, mov(24, outside), "storage"),
    ];
    for (at, word, what) in cases {
        let found = with(|words| words[at] = word);
        let named = matches!(found, Some(Broken::Memory { what: found, .. }) if found == what);
        assert!(named, "{what}: {found:?}");
    }
    let long = with(|words| words[2] = mov(0, (MEMORY + 0xfc0) | 5));
    assert!(matches!(long, Some(Broken::Memory { .. })));
    assert_eq!(
        with(|words| (words[3], words[4]) = (mov32(8, 0), mov32(9, 0))),
        None
    );
}

fn deep(program: ShaderProgram, storage: LocalStorage) -> Result<usize, DeepRule> {
    let mut builder = Builder::new(GPU);
    builder.platform(Platform {
        family: FAMILY_STREAMS,
        ..Platform::of(GPU)
    });
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(MEMORY, 1, Access::READ_WRITE, RegionKind::Data);
    builder.region(CODE, 1, Access::READ_EXECUTE, RegionKind::Code);
    builder.segment("run", SegmentKind::Run);
    builder.upload(MEMORY + 0x200, &program.to_bytes());
    builder.upload(MEMORY + 0x240, &storage.to_bytes());
    builder.launch(0, &halves(&mesa_words()), 1000);
    let file = builder.finish().unwrap();
    let view = Recording::parse(&file).unwrap();
    let verified = verify(&view, &Limits::DEFAULT).unwrap();
    let checked = check_streams(&verified).map_err(|violation| violation.rule);
    checked.map(|report| report.jobs().count())
}

const CODE: u64 = 0x20_0000;

#[test]
fn the_deep_check_follows_what_a_dispatch_names() {
    let program = || {
        let program = ShaderProgram { words: [0; 8] };
        let program = program.with("Type", 8).with("Stage", 1);
        program.with("Binary", CODE)
    };
    let storage = || LocalStorage { words: [0; 8] };
    assert_eq!(deep(program(), storage()), Ok(1));
    let data = program().with("Binary", MEMORY);
    assert_eq!(deep(data, storage()), Err(DeepRule::ShaderRegion));
    let other = program().with("Type", 7);
    assert_eq!(deep(other, storage()), Err(DeepRule::DescriptorForm));
    let code = storage().with("TLS base pointer", CODE);
    assert_eq!(deep(program(), code), Err(DeepRule::BufferRegion));
}

#[test]
fn a_stream_is_recorded_without_jumps_and_heaps() {
    let first = [
        mov(72, 0x8000_0000_0000 >> 1),
        0x30 << 56 | 72 << 40,
        mov(90, 0x2000),
        mov32(89, (mesa_words().len() * 8) as u64),
        0x21 << 56 | 90 << 40 | 89 << 32,
    ];
    let mut second = mesa_words();
    second[0] |= 0xe;
    let read = |at: u64| match at {
        0x1000.. if at < 0x2000 => first.get((at as usize - 0x1000) / 8).copied(),
        _ => second.get((at as usize).checked_sub(0x2000)? / 8).copied(),
    };
    let flat = flatten(0x1000, 40, 100, read).unwrap();
    assert_eq!(flat.dispatches.len(), 1);
    assert_eq!(flat.words[3..], mesa_words());
    assert_eq!(verdict(&recording(0, &halves(&flat.words))), Ok(()));
    assert_eq!(flatten(0x1000, 40, 10, read), Err(WalkError::TooLong(10)));
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn dispatched(bytes: &[u8]) -> Vec<(u64, u32, [u32; 3])> {
    let mut found = Vec::new();
    dispatches(bytes, |at, compute| {
        found.push((at, compute.size, compute.count));
    })
    .unwrap();
    found
}

#[test]
fn a_dispatch_is_taken_alone_and_gets_other_sizes() {
    let mut words = mesa_words();
    let run = words.iter().position(|word| *word == RUN).unwrap();
    words.insert(run + 1, RUN);
    words.push(RUN);
    let stream = bytes(&words);
    let places: Vec<u64> = dispatched(&stream).iter().map(|found| found.0).collect();
    let [first, second, third] = places[..] else {
        panic!("{places:x?}");
    };
    assert_eq!(first, LAUNCHED_AT + 8 * run as u64);
    assert_eq!(waits(&stream).collect::<Vec<_>>(), [true, false, true]);
    let only = alone(&stream, second);
    assert_eq!(dispatched(&only), [(second, 63, [1, 1, 1])]);
    assert_eq!(only.len(), stream.len());
    let (changed, at) = resized(&stream, second, 31, [2, 3, 1]).unwrap();
    let found = dispatched(&changed);
    let sizes: Vec<_> = found
        .iter()
        .map(|(_, size, count)| (*size, *count))
        .collect();
    assert_eq!(sizes, [(63, [1; 3]), (31, [2, 3, 1]), (63, [1; 3])]);
    assert_eq!(found[1].0, at);
    let file = recording(0, &halves(&super::words(&changed).collect::<Vec<_>>()));
    assert_eq!(verdict(&file), Ok(()));
    assert_eq!(resized(&stream, third + 8, 31, [1; 3]), None);
}
