// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of large shaders is bounded.
#![allow(clippy::unwrap_used)]

use gpureplay_memory::{Bus, Page, Ram};

use super::super::decode::{self, AHEAD};
use super::*;
use crate::ir::micro::MicroOp;
use crate::testing::{Copies, copies, last};
use crate::{Access, AddressSpace, MmuFault};

struct Flat(Ram);

impl AddressSpace for Flat {
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault> {
        let code = 0xc3;
        self.0.page(va).ok_or(MmuFault { va, access, code })
    }
}

#[test]
fn shaders_take_up_bounded_memory_and_are_decoded_once() {
    const ENTRIES: usize = 60;
    let (short, long) = (copies(1), copies(18));
    // Each first clause is an entry; all fall through into the same long code.
    let mut code = short.repeat(ENTRIES);
    code.extend(long.repeat(2 * AHEAD));
    let space = Flat(Ram::new(code.len() / 4096 + 2).unwrap());
    let start = space.0.allocate_contiguous(code.len() / 4096 + 1).unwrap();
    space.0.write(start, &code).unwrap();
    let mut fetch = Tlb::new(&space, Access::Execute);
    let mut cache = Cache::default();
    let mut largest = 0;
    for entry in 0..ENTRIES {
        let entry = start + (entry * short.len()) as u64;
        let (program, decoded) = cache.shader(entry, &Copies, &mut fetch);
        assert_eq!(decoded, AHEAD);
        assert!(program.is_open(), "most of the code was not looked at");
        assert!(cache.bytes() <= MOST_BYTES);
        largest = largest.max(program.bytes());
        let (again, decoded) = cache.shader(entry, &Copies, &mut fetch);
        assert!(decoded == 0 && Arc::ptr_eq(&program, &again));
    }
    assert!(
        largest * ENTRIES > MOST_BYTES,
        "{largest} bytes are too few for this test"
    );
    let (_, decoded) = cache.shader(start, &Copies, &mut fetch);
    assert_eq!(decoded, AHEAD, "the first made room for others");
    let last = start + ((ENTRIES - 1) * short.len()) as u64;
    assert_eq!(
        cache.shader(last, &Copies, &mut fetch).1,
        0,
        "the last is kept"
    );
    let before = cache.bytes();
    space.0.write(last + 8 * 1024, &short).unwrap();
    assert!(cache.shader(last, &Copies, &mut fetch).1 > 0);
    assert!(cache.bytes().abs_diff(before) < largest);
}

fn loaded(code: &[u8]) -> (Flat, u64) {
    let pages = code.len() / 4096 + 1;
    let space = Flat(Ram::new(pages + 1).unwrap());
    let start = space.0.allocate_contiguous(pages).unwrap();
    space.0.write(start, code).unwrap();
    (space, start)
}

#[test]
fn a_shader_has_as_many_clauses_as_it_may() {
    let decoded = |count: usize| {
        let code = [copies(1).repeat(count - 1), last(1)].concat();
        let (space, start) = loaded(&code);
        let mut fetch = Tlb::new(&space, Access::Execute);
        let (mut program, _) = decode::shader(start, &Copies, &mut fetch);
        for number in AHEAD..count {
            decode::clause(&mut program, number as u32, &Copies, &mut fetch);
        }
        assert!(program.clauses[count - 2].ending().is_ok());
        program.clauses[count - 1].ending()
    };
    assert!(decoded(decode::MOST_CLAUSES).is_ok());
    let (trouble, _) = decoded(decode::MOST_CLAUSES + 1).unwrap_err();
    assert!(trouble.text.contains("larger than"), "{}", trouble.text);
}

#[test]
fn a_shader_has_as_many_micro_operations_as_it_may() {
    let (space, start) = loaded(&copies(8).repeat(AHEAD + 2));
    let mut fetch = Tlb::new(&space, Access::Execute);
    let (program, _) = decode::shader(start, &Copies, &mut fetch);
    let (op, each) = (program.ops[0], program.ops.len() / AHEAD);
    assert!(each > 1);
    let most = decode::MOST_BYTES / size_of::<MicroOp>();
    let mut decoded = |room: usize| {
        let mut program = Program::clone(&program);
        program.ops.resize(most - room, op);
        decode::clause(&mut program, AHEAD as u32, &Copies, &mut fetch);
        let ended = program.clauses[AHEAD].ending();
        (program.ops.len(), ended.map_err(|(trouble, _)| trouble))
    };
    let (ops, ended) = decoded(each);
    assert!(ended.is_ok() && ops == most);
    let (ops, ended) = decoded(each - 1);
    assert_eq!(ops, most - (each - 1));
    let trouble = ended.unwrap_err();
    assert!(trouble.text.contains("larger than"), "{}", trouble.text);
}

#[test]
fn what_is_made_for_push_uniforms_is_kept_with_the_shader() {
    let code = copies(1).repeat(2);
    let space = Flat(Ram::new(4).unwrap());
    let start = space.0.allocate_contiguous(1).unwrap();
    space.0.write(start, &code).unwrap();
    let mut fetch = Tlb::new(&space, Access::Execute);
    let mut cache = Cache::default();
    let (program, _) = cache.shader(start, &Copies, &mut fetch);
    let empty = cache.bytes();
    let uniforms = |n: u32| -> Arc<[u32]> { vec![n; 8].into() };
    assert!(cache.own(&program, &uniforms(1)).is_none());
    cache.keep_own(&program, &uniforms(1), None);
    assert!(matches!(cache.own(&program, &uniforms(1)), Some(Own::Seen)));
    let own = Arc::new(Program::clone(&program));
    cache.keep_own(&program, &uniforms(1), Some(Arc::clone(&own)));
    let known = cache.own(&program, &uniforms(1));
    assert!(matches!(known, Some(Own::Made(made)) if Arc::ptr_eq(&made, &own)));
    assert!(cache.own(&program, &uniforms(2)).is_none());
    assert!(cache.bytes() > empty + own.bytes());
    for n in 0..2 * MOST_OWN as u32 {
        cache.keep_own(&program, &uniforms(n), Some(Arc::clone(&own)));
        assert!(cache.bytes() <= MOST_BYTES);
    }
    let known = (0..2 * MOST_OWN as u32).filter(|n| cache.own(&program, &uniforms(*n)).is_some());
    assert_eq!(known.count(), MOST_OWN);
    space.0.write(start, &copies(2)).unwrap();
    let (other, _) = cache.shader(start, &Copies, &mut fetch);
    assert!(!Arc::ptr_eq(&program, &other));
    assert!(cache.own(&program, &uniforms(1)).is_none());
    assert!(cache.own(&other, &uniforms(1)).is_none());
    assert!(cache.bytes() < 2 * empty);
}
