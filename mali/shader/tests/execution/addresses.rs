// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores of every width at any address.

use crate::support::*;
use fastrand::Rng;
use gpureplay_memory::{Bus, Vectors};
use gpureplay_shader::{Control, Threads};
use mali_isa::*;
use mali_shader::Dispatch;

use Source::{FauHigh, FauLow, Port0, Port1};

const ID: u8 = 60;
const WIDTHS: [(&str, usize); 8] = [
    ("i8", 1),
    ("i16", 2),
    ("i24", 3),
    ("i32", 4),
    ("i48", 6),
    ("i64", 8),
    ("i96", 12),
    ("i128", 16),
];
/// Below a warp, a batch, and more.
const SIZES: [usize; 4] = [3, 20, 64, 130];
const MOST: usize = 130;
const REGION: usize = 72 * 4096;
const CASES: usize = 2000;

fn push(code: &mut Vec<u8>, slot: u8, reads: [u8; 2], staging_register: u8, add: Instruction) {
    let block = block(0x80 | slot, [reads[0], reads[1], 3], None);
    code.extend(alone(message(&add, staging_register), block, add));
}

/// Each thread reads two addresses at (its number) * 16, ends if the first is zero, and copies from it to the
/// second. Uniforms: table and 16; the table's high word; zero.
fn copy(width: &str) -> Vec<u8> {
    let entry = instruction(Unit::Fma, "IMAD.i32", &[Port1, FauHigh, FauLow]);
    let registers = block(0x80, [0, ID, 3], Some((Unit::Fma, 5)));
    let mut code = alone(HEADER, registers, entry);
    let addresses = instruction(Unit::Add, "LOAD.i128", &[Port0, FauHigh]);
    push(&mut code, 1, [5, 6], 8, addresses);
    let end = instruction(Unit::Add, "BRANCHZ.i32", &[Port0, FauLow]);
    let end = with(end, &[(Modifier::Compare, Compare::Eq as u8)]);
    push(&mut code, 2, [8, 9], 0, end);
    let load = instruction(Unit::Add, &format!("LOAD.{width}"), &[Port0, Port1]);
    push(&mut code, 2, [8, 9], 12, load);
    let store = instruction(Unit::Add, &format!("STORE.{width}"), &[Port0, Port1]);
    push(&mut code, 2, [10, 11], 12, store);
    let registers = block(0x82, [1, 2, 3], None);
    code.extend(alone(last(HEADER), registers, nop(Unit::Add)));
    code
}

fn with_table(space: &Flat, table: u64, threads: u32) -> Dispatch {
    let [low, high] = halves(table);
    dispatch(space, 0, &[low, 16, 0, high, 0, 0], threads)
}

/// For stores no two overlap.
fn offsets(random: &mut Rng, threads: usize, width: usize, stores: bool) -> Vec<usize> {
    let start = match random.usize(..3) {
        0 => random.usize(..64),
        1 => 4096 - random.usize(..width * threads + 1).min(4095),
        _ => 4096 - random.usize(..width + 2),
    };
    let shared = [0, 1, 2, width / 2];
    let apart = [
        width,
        width,
        width + 1,
        width + 3,
        width.next_multiple_of(8),
        64,
        500,
    ];
    let stride = if !stores && random.usize(..3) == 0 {
        shared[random.usize(..shared.len())]
    } else {
        apart[random.usize(..apart.len())]
    };
    let period = if stores {
        1000
    } else {
        [1000, 1000, 8, 4, 16, 32, 64][random.usize(..7)]
    };
    let together = if stores {
        1
    } else {
        [1, 1, 8, 4, 16][random.usize(..5)]
    };
    let mut offsets: Vec<usize> = (0..threads)
        .map(|thread| start + thread / together % period * stride)
        .collect();
    if random.usize(..3) == 0 {
        for at in (1..threads).rev() {
            offsets.swap(at, random.usize(..at + 1));
        }
    }
    offsets
}

#[test]
fn any_width_at_any_address() {
    let space = Flat::new(256);
    let mut random = Rng::with_seed(1);
    let from: Vec<u8> = (0..REGION).map(|_| random.u8(..)).collect();
    let source = space.put(&from);
    let target = space.put(&vec![0; REGION]);
    let table = space.put(&[0; MOST * 16]);
    let mut dispatch = with_table(&space, table, 0);
    let shaders = WIDTHS.map(|(name, _)| space.put(&copy(name)));
    let threads_of_host = Threads::new(1);
    for case in 0..CASES {
        Vectors::limit(Vectors::ALL[case % Vectors::ALL.len()]);
        let kind = random.usize(..WIDTHS.len());
        let (name, width) = WIDTHS[kind];
        let threads = SIZES[random.usize(..SIZES.len())];
        let loads = offsets(&mut random, threads, width, false);
        let stores = offsets(&mut random, threads, width, true);
        let gone = random.usize(..5);
        let mut expected = vec![0x5a; REGION];
        space.0.write(target, &expected).unwrap();
        let mut entries = Vec::new();
        for (thread, (&load, &store)) in loads.iter().zip(&stores).enumerate() {
            let ends = match gone {
                0 => random.usize(..5) == 0,
                1 => thread % 2 == 1,
                2 => thread >= threads / 2,
                _ => false,
            };
            if !ends {
                expected[store..store + width].copy_from_slice(&from[load..load + width]);
            }
            let load = if ends { 0 } else { source + load as u64 };
            entries.extend(load.to_le_bytes());
            entries.extend((target + store as u64).to_le_bytes());
        }
        space.0.write(table, &entries).unwrap();
        dispatch.grid.shader = shaders[kind];
        dispatch.grid.workgroup_size[0] = threads as u32;
        mali_shader::run(&dispatch, &space, &threads_of_host, &Control::new(10_000)).unwrap();
        let mut found = vec![0; REGION];
        space.0.read(target, &mut found).unwrap();
        if let Some(at) = (0..REGION).find(|&at| found[at] != expected[at]) {
            panic!(
                "case {case}: {name}, {threads} threads, gone {gone}: byte {at:#x} is {:#x}, expected {:#x}; \
                 from {loads:x?} to {stores:x?}",
                found[at], expected[at]
            );
        }
    }
}

type Order = fn(usize) -> usize;

#[test]
fn a_fault_names_the_first_thread_that_raises_it() {
    const PAGES: usize = 64;
    let space = Flat::new(PAGES);
    let table = space.put(&[0; 64 * 16]);
    let target = space.put(&[0; 4096]);
    let mut dispatch = with_table(&space, table, 64);
    let end = gpureplay_memory::Ram::BASE + (PAGES * 4096) as u64;
    // In units of 16 bytes; the memory ends at 32.
    let orders: [Order; 8] = [
        |thread| thread,
        |thread| 63 - thread,
        |thread| thread % 16 + 24,
        |thread| thread / 8 + 28,
        |thread| 40 - thread / 16,
        |_| 32,
        |thread| if thread == 21 { 33 } else { thread % 32 },
        |thread| thread * 37 % 64,
    ];
    for (name, _) in WIDTHS {
        dispatch.grid.shader = space.put(&copy(name));
        for (number, order) in orders.into_iter().enumerate() {
            for stores in [false, true] {
                let place = |thread| end - 32 * 16 + 16 * order(thread) as u64;
                let mut entries = Vec::new();
                for thread in 0..64 {
                    let other = target + 16 * thread as u64;
                    let places = [place(thread), other];
                    let [from, to] = if stores {
                        [places[1], places[0]]
                    } else {
                        places
                    };
                    entries.extend(from.to_le_bytes());
                    entries.extend(to.to_le_bytes());
                }
                space.0.write(table, &entries).unwrap();
                let fault = launch(&dispatch, &space);
                let first = (0..64).map(place).find(|&place| place >= end).unwrap();
                let what = format!("{name}, order {number}, stores {stores}");
                assert_eq!(fault.unwrap_err().address, first, "{what}");
            }
        }
    }
}
