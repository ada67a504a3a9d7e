// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same job recorded on two drivers: panfrost, and Arm's kbase by `cargo xtask guest kbase`. What the recordings
//! do must be the same but for what docs/kbase.md explains.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use gpureplay_format::lz4::History;
use gpureplay_format::{Access, Action, PAGE_SIZE, Payload, Recording};

/// Code moves by whole windows of 16 MiB.
const WINDOW: u64 = 1 << 24;
/// Registers that kbase sets and panfrost leaves: SHADER_CONFIG and L2_MMU_CONFIG.
const ONLY_KBASE: [u16; 2] = [0xf04, 0xf0c];

type Page = [u8; PAGE_SIZE as usize];

/// What a recording does, with memory followed rather than uploads listed.
#[derive(Default)]
struct Course {
    writes: Vec<(u16, u32)>,
    /// Actions other than register writes, uploads and fills.
    steps: Vec<String>,
    /// Pages that are not zero after all uploads.
    memory: BTreeMap<u64, Page>,
}

fn read(name: &str) -> Vec<u8> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    std::fs::read(top.join(name).join("recording.gpr")).unwrap()
}

fn course(recording: &Recording<'_>) -> Course {
    let mut out = Course::default();
    let mut memory: BTreeMap<u64, Page> = BTreeMap::new();
    let mut put = |va: u64, bytes: &[u8]| {
        for (at, byte) in (va..).zip(bytes) {
            let page = memory.entry(at - at % u64::from(PAGE_SIZE));
            page.or_insert([0; PAGE_SIZE as usize])[(at % u64::from(PAGE_SIZE)) as usize] = *byte;
        }
    };
    for segment in recording.segments() {
        let mut history = Box::new(History::new());
        for action in recording.segment_actions(segment) {
            match action.unwrap() {
                Action::Write { register, value } => out.writes.push((register, value)),
                Action::Upload { va, payload, .. } if matches!(payload, Payload::Raw(_)) => {
                    let Payload::Raw(bytes) = payload else {
                        continue;
                    };
                    put(va, bytes);
                }
                Action::Upload {
                    va,
                    length,
                    payload,
                } => {
                    let Payload::Lz4(block) = payload else {
                        continue;
                    };
                    put(va, history.decode(block, length as usize).unwrap());
                }
                Action::Fill { va, length, byte } => put(va, &vec![byte; length as usize]),
                Action::Seek { .. } => {}
                other => out.steps.push(format!("{other:x?}")),
            }
        }
    }
    // Pages of zeroes are there or not: the same to the GPU.
    memory.retain(|_, page| page.iter().any(|&byte| byte != 0));
    out.memory = memory;
    out
}

fn is_code(recording: &Recording<'_>, va: u64) -> bool {
    let region = recording.region_of(va, 1);
    region.is_some_and(|region| Access(region.access).contains(Access::EXECUTE))
}

#[test]
fn a_job_on_kbase_is_the_job_on_panfrost() {
    let (a, b) = (read("saxpy-g52"), read("saxpy-kbase-g52"));
    let (panfrost, kbase) = (Recording::parse(&a).unwrap(), Recording::parse(&b).unwrap());
    let (first, second) = (course(&panfrost), course(&kbase));

    let only: Vec<_> = second
        .writes
        .iter()
        .filter(|write| !first.writes.contains(write))
        .collect();
    let registers: Vec<u16> = only.iter().map(|(register, _)| *register).collect();
    assert_eq!(registers, ONLY_KBASE);
    let common: Vec<_> = second
        .writes
        .iter()
        .filter(|write| first.writes.contains(write))
        .collect();
    assert_eq!(common, first.writes.iter().collect::<Vec<_>>());

    assert_eq!(first.steps, second.steps);
    assert_eq!(panfrost.tensors().len(), kbase.tensors().len());

    // One distance for all code, a multiple of what the program counter counts.
    let code = |recording: &Recording<'_>| {
        let found = recording
            .regions()
            .iter()
            .find(|region| is_code(recording, region.va.get()));
        found.map(|region| region.va.get() & !(WINDOW - 1)).unwrap()
    };
    let distance = code(&kbase) - code(&panfrost);
    assert_ne!(distance, 0);
    let (mut moved, mut pages) = (0, 0);
    assert_eq!(first.memory.len(), second.memory.len());
    for (va, page) in &first.memory {
        let place = if is_code(&panfrost, *va) {
            va + distance
        } else {
            *va
        };
        let other = second
            .memory
            .get(&place)
            .unwrap_or_else(|| panic!("nothing at {place:#x}"));
        for (x, y) in page.chunks(8).zip(other.chunks(8)).filter(|(x, y)| x != y) {
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
            assert!(is_code(&panfrost, word(x)), "at {va:#x}: {:#x}", word(x));
            assert_eq!(word(x) + distance, word(y));
            moved += 1;
        }
        pages += 1;
    }
    // The renderer state's pointer to the shader, and nothing else.
    assert_eq!(moved, 1);
    assert!(pages >= 5);
}
