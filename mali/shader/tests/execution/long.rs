// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders longer than what is decoded ahead.

use crate::support::*;
use mali_isa::*;

const CLAUSES: u32 = 3000;

const THREADS: u32 = 100;

fn step(name: &str, flow_control: FlowControl) -> Vec<u8> {
    let header = ClauseHeader {
        flow_control,
        ..HEADER
    };
    let add = instruction(Unit::Add, name, &[Source::Port0, Source::Port1]);
    let registers = block(0x80, [0, 1, 2], Some((Unit::Add, 0)));
    alone(header, registers, add)
}

#[test]
fn every_clause_is_executed_once_by_every_thread() {
    let space = Flat::new(256);
    let mut code = step("IADD.u32", FlowControl::Continue).repeat(CLAUSES as usize - 1);
    code.extend(step("IADD.u32", FlowControl::End));
    let statistics = run(&space, &code, &[], THREADS).unwrap();
    let batches = u64::from(THREADS.div_ceil(64));
    assert_eq!(statistics.clauses, u64::from(CLAUSES) * batches);
    assert_eq!(statistics.add, u64::from(CLAUSES * THREADS));
}

#[test]
fn registers_that_only_far_code_reads_have_their_first_values() {
    let space = Flat::new(256);
    let (to, shift) = (space.put(&[0; 4096]), 2);
    let mut code = step("IADD.u32", FlowControl::Continue).repeat(CLAUSES as usize);
    // u0: shift; u1: address; r60: the thread's number, which only far code reads.
    use Source::{FauHigh, FauLow, Port1, Port2, Stage};
    let mov = instruction(Unit::Fma, "MOV.i32", &[FauLow]);
    let shift_to = block(0x80, [0, 1, 2], Some((Unit::Fma, 59)));
    code.extend(alone(HEADER, shift_to, mov));
    let address = instruction(Unit::Fma, "LSHIFT_ADD.i32", &[Port1, FauLow, Port2]);
    let store = instruction(Unit::Add, "STORE.i32", &[Stage, FauHigh]);
    let registers = block(0x81, [0, 60, 59], None);
    code.extend(coded(last(message(&store, 60)), registers, address, store));
    let [low, high] = halves(to);
    run(&space, &code, &[shift, 0, low, high], THREADS).unwrap();
    let numbers: Vec<u32> = (0..THREADS).collect();
    assert_eq!(space.words(to, THREADS as usize), numbers);
}
