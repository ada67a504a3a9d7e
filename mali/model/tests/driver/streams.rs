// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command streams on a Mali-G610.

use std::sync::Arc;

use gpureplay_memory::Ram;
use mali_facts::{StreamGpu, StreamStatus};
use mali_model::{Options, Sequencer, StreamFault, Streams};

use crate::machine::{DATA, Format, JOBS, Machine, NOWHERE};

const STREAM: u64 = JOBS + 0x1000;

struct Queue {
    streams: Streams<Ram>,
    machine: Machine,
    registers: Sequencer,
}

impl Queue {
    fn new(options: Options) -> Queue {
        let machine = Machine::with("g57", Format::AArch64, Options::default());
        let gpu = StreamGpu::by_name("g610").unwrap();
        let options = Options {
            threads: 1,
            ..options
        };
        let bus: Arc<Ram> = machine.memory.ram().clone();
        Queue {
            streams: Streams::new(gpu, bus, options),
            machine,
            registers: Sequencer::new(),
        }
    }

    fn run(&mut self, words: &[u64]) -> Result<(), StreamFault> {
        for (at, word) in (STREAM..).step_by(8).zip(words) {
            self.machine.memory.write64(at, *word);
        }
        let root = self.machine.memory.root();
        let bytes = 8 * words.len() as u32;
        self.streams.run(&mut self.registers, root, STREAM, bytes)
    }

    fn status(&mut self, words: &[u64]) -> (StreamStatus, u64) {
        let fault = self.run(words).unwrap_err();
        (fault.status, fault.at)
    }
}

pub(crate) fn pair(register: u64, value: u64) -> u64 {
    1 << 56 | register << 48 | value
}

/// MOVE32.
pub(crate) fn word(register: u64, value: u32) -> u64 {
    2 << 56 | register << 48 | u64::from(value)
}

/// As [`PageMemory::compute_job`](crate::machine::PageMemory::compute_job), by the second register set.
pub(crate) fn dispatch(count: u32) -> Vec<u64> {
    let mut words = vec![
        pair(10, JOBS + 0x180),
        word(11, 3 << 24),
        pair(18, JOBS + 0x100),
    ];
    words.extend((32..40).map(|register| word(register, 0)));
    words.extend([word(33, 15), word(37, count / 16), word(38, 1), word(39, 1)]);
    // FAU and program of set 1.
    words.push(4 << 56 | 1 << 46 | 1 << 42 | 0x8001);
    words.push(3 << 56 | 0xff << 16);
    words
}

#[test]
fn a_dispatch_adds_what_its_uniforms_name() {
    for seed in [0, 7] {
        let mut queue = Queue::new(Options {
            seed,
            ..Options::default()
        });
        queue.machine.memory.compute_job(JOBS, 256, 0);
        assert_eq!(queue.run(&dispatch(256)), Ok(()));
        queue.machine.memory.expect_sums(256);
    }
}

#[test]
fn counts_of_an_indirect_dispatch_come_from_memory() {
    let mut queue = Queue::new(Options::default());
    queue.machine.memory.compute_job(JOBS, 256, 0);
    for (at, count) in [(0, 16), (4, 1), (8, 1)] {
        queue.machine.memory.write32(DATA + 0x3000 + at, count);
    }
    let mut words = dispatch(16);
    let run = words.len() - 2;
    words.insert(run, pair(40, DATA + 0x3000 - 8));
    // LOAD_MULTIPLE r37 to r39, 8 bytes on; scoreboard 0.
    words.insert(run + 1, 0x14 << 56 | 37 << 48 | 40 << 40 | 7 << 16 | 8);
    let unwaited = words.clone();
    words.insert(run + 2, 3 << 56 | 1 << 16);
    let (status, at) = queue.status(&unwaited);
    assert_eq!(status, StreamStatus::CS_CONFIG_FAULT);
    assert_eq!(at, STREAM + 8 * (run as u64 + 2));
    assert_eq!(queue.run(&words), Ok(()));
    queue.machine.memory.expect_sums(256);
}

#[test]
fn registers_and_sync_objects_are_stored() {
    let mut queue = Queue::new(Options::default());
    let at = DATA + 0x3000;
    queue.machine.memory.write64(at, 40);
    let add = 0x33 << 56 | 6 << 40 | 4 << 32;
    let done = queue.run(&[
        pair(6, at),
        pair(4, 2),
        add,
        // SYNC_WAIT64: greater than 41.
        pair(2, 41),
        0x35 << 56 | 6 << 40 | 2 << 32 | 1 << 28,
        // STORE_MULTIPLE r4, r5, 16 bytes on; SYNC_SET32, 24 bytes on.
        0x15 << 56 | 4 << 48 | 6 << 40 | 3 << 16 | 16,
        0x11 << 56 | 8 << 48 | 6 << 40 | 24,
        0x26 << 56 | 8 << 40 | 2 << 32,
        // STORE_STATE: cycles, 32 bytes on.
        0x28 << 56 | 6 << 40 | 1 << 32 | 32,
    ]);
    assert_eq!(done, Ok(()));
    let memory = &queue.machine.memory;
    assert_eq!(memory.read64(at), 42);
    assert_eq!(memory.read64(at + 16), 2);
    assert_eq!(memory.read32(at + 24), 41);
    assert_ne!(memory.read64(at + 32), 0);
    // Registers outlive the stream, even the driver's call.
    assert_eq!(queue.registers.pair(6), Ok(at));
    assert_eq!(queue.registers.pair(92), Ok(STREAM));
    assert_eq!(queue.run(&[add]), Ok(()));
    assert_eq!(queue.machine.memory.read64(at), 44);
}

#[test]
fn waits_that_cannot_end_and_errors_are_faults() {
    let mut queue = Queue::new(Options::default());
    let at = DATA + 0x3000;
    let wait = |reject: u64| {
        [
            pair(6, at),
            pair(2, 5),
            0x35 << 56 | 6 << 40 | 2 << 32 | 1 << 28 | reject,
        ]
    };
    assert_eq!(
        queue.status(&wait(0)),
        (StreamStatus::CS_RES_TERM, STREAM + 16)
    );
    queue.machine.memory.write64(at, 6);
    assert_eq!(queue.run(&wait(1)), Ok(()));
    queue.machine.memory.write32(at + 8, 0x40);
    assert_eq!(queue.run(&wait(0)), Ok(()));
    assert_eq!(queue.status(&wait(1)).0, StreamStatus::CS_INHERIT_FAULT);
}

#[test]
fn wrong_words_end_with_their_code() {
    let mut queue = Queue::new(Options::default());
    queue.machine.memory.compute_job(JOBS, 256, 0);
    let mut wrong_program = dispatch(256);
    wrong_program[2] = pair(18, JOBS + 0x180);
    let mut no_program = dispatch(256);
    no_program[2] = pair(18, NOWHERE);
    let translation = StreamStatus(0xc1);
    let itself = [pair(2, STREAM), word(4, 24), 0x20 << 56 | 2 << 40 | 4 << 32];
    for (name, words, status) in [
        (
            "an opcode",
            vec![0xff << 56],
            StreamStatus::CS_INVALID_INSTRUCTION,
        ),
        (
            "drawing",
            vec![7 << 56],
            StreamStatus::CS_INVALID_INSTRUCTION,
        ),
        (
            "an odd pair",
            vec![pair(3, 0)],
            StreamStatus::CS_CONFIG_FAULT,
        ),
        (
            "calls without end",
            itself.to_vec(),
            StreamStatus::CS_CALL_STACK_OVERFLOW,
        ),
        (
            "a loop",
            vec![0x16 << 56 | 6 << 28 | 0xffff],
            StreamStatus::CS_RES_TERM,
        ),
        ("another descriptor", wrong_program, StreamStatus(0x58)),
        ("no descriptor", no_program, translation),
        (
            "a load of nothing",
            vec![pair(2, NOWHERE), 0x14 << 56 | 4 << 48 | 2 << 40 | 1 << 16],
            translation,
        ),
        (
            "a jump to nothing",
            vec![pair(2, NOWHERE), word(4, 8), 0x21 << 56 | 2 << 40 | 4 << 32],
            translation,
        ),
    ] {
        let fault = queue.run(&words).unwrap_err();
        assert_eq!(fault.status, status, "{name}: {fault}");
    }
    assert_eq!(queue.run(&dispatch(256)), Ok(()));
    queue.machine.memory.expect_sums(256);
}
