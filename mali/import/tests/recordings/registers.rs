// SPDX-License-Identifier: MIT OR Apache-2.0
//! Silicon's register history on the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gpureplay_import::{Direction, read_directory};
use gpureplay_memory::Ram;
use mali_model::{Gpu, Options, Profile};

/// Replays of networks cover job slots and address spaces.
const CONTROL: std::ops::Range<u32> = 0x0000..0x1000;

/// By register: (silicon, model).
fn differences(name: &str) -> Option<BTreeMap<u32, BTreeSet<(u32, u32)>>> {
    let original = read_directory(&crate::common::directory(name)?).unwrap();
    let profile = Profile::by_name("g71").unwrap();
    let bus = Arc::new(Ram::new(1 << 12).unwrap());
    let mut gpu = Gpu::new(profile, bus, Options::default());
    let mut different: BTreeMap<u32, BTreeSet<(u32, u32)>> = BTreeMap::new();
    let accesses = &original.history.accesses;
    for (at, access) in accesses.iter().enumerate() {
        if !CONTROL.contains(&access.register) {
            continue;
        }
        match access.direction {
            Direction::Write => gpu.write32(access.register, access.value),
            Direction::Read => {
                let found = gpu.read32(access.register);
                let again = accesses[at + 1..]
                    .iter()
                    .take_while(|a| a.direction == Direction::Read)
                    .find(|a| a.register == access.register);
                let polled = again.is_some_and(|a| a.value == found);
                if found != access.value && !polled {
                    different
                        .entry(access.register)
                        .or_default()
                        .insert((access.value, found));
                }
            }
        }
    }
    Some(different)
}

#[test]
fn what_differs_is_known() {
    // docs/reference/descriptors.md has the table.
    let known: BTreeMap<u32, &str> = BTreeMap::from([
        (
            0x038,
            "LATEST_FLUSH_ID counts cache flushes since power-up; replays never use the recorded one",
        ),
        (
            0x140,
            "SHADER_READY: silicon takes some microseconds, the model switches at once",
        ),
        (0x150, "TILER_READY: as above"),
        (0x160, "L2_READY: as above"),
        (0x200, "SHADER_PWRTRANS: as above"),
        (0x210, "TILER_PWRTRANS: as above"),
        (0x220, "L2_PWRTRANS: as above"),
        (
            0x300,
            "COHERENCY_FEATURES: the board answers 3 before the first reset and 2 after it, the model always 3",
        ),
    ]);
    for name in ["mnist", "alexnet"] {
        let Some(different) = differences(name) else {
            return;
        };
        for (register, values) in &different {
            let name = mali_facts::registers::gpu::TABLE
                .iter()
                .find(|r| r.offset == *register)
                .map_or("?", |r| r.name);
            eprintln!("{register:#05x} {name}: {values:x?}");
        }
        let unknown: Vec<_> = different
            .keys()
            .filter(|r| !known.contains_key(r))
            .collect();
        assert!(unknown.is_empty(), "{name}: {unknown:x?}");
    }
}
