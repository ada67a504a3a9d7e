// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders in a job: no panic, no hang, no access outside mapped pages.
#![no_main]

#[path = "support/machine.rs"]
mod support;

use support::{CODE, Format, Watched};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [how, code @ ..] = bytes else {
        return;
    };
    let mut watched = Watched::new(how >> 1, Format::Lpae);
    let memory = &watched.machine.memory;
    if how & 1 == 0 {
        memory.write(CODE, &code[..code.len().min(4096)]);
    } else {
        for (at, turn) in (CODE..).step_by(4).zip(code.chunks(4)).take(0x44) {
            let word = turn.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
            memory.write32(at, memory.read32(at) ^ word);
        }
    }
    watched.submit_and_run();
    watched.check_canary();
});
