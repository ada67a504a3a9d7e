// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains: no panic, no hang, no access outside mapped pages.
#![no_main]

#[path = "support/machine.rs"]
mod support;

use mali_facts::walk::walk_chain;
use mali_facts::{Profile, Text};
use support::{FRAGMENT_JOB, Format, GPUS, JOBS, Watched};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [how, chain @ ..] = bytes else {
        return;
    };
    let mut watched = Watched::new(how >> 1, Format::Lpae);
    let draws = how >> 7 == 1;
    if draws {
        watched.draw(how >> 1);
    }
    let memory = &watched.machine.memory;
    let chain = &chain[..chain.len().min(0x4000)];
    if how & 1 == 0 {
        memory.write(JOBS, chain);
    } else {
        // A good job (or two that draw), descriptors and uniforms, with words replaced: where, what.
        for change in chain.chunks_exact(6) {
            let at = u64::from(change[0]) | u64::from(change[1] & 3) << 8;
            let word = u32::from_le_bytes([change[2], change[3], change[4], change[5]]);
            memory.write32(JOBS + 4 * at, word);
        }
    }
    if let Some(profile) = Profile::by_name(GPUS[usize::from(how >> 1) % GPUS.len()]) {
        let mut text = String::new();
        let mut writer = Text::new(&mut text, profile.architecture);
        walk_chain(memory, profile, JOBS, &mut writer);
    }
    watched.submit_and_run();
    if draws {
        watched.run(0, JOBS + FRAGMENT_JOB);
    }
    watched.check_canary();
});
