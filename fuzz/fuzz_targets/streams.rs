// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command streams: text, walk, and a run whose loads find the bytes again. Steps are bounded.
#![no_main]

use mali_isa::valhall::streams::{Effect, REGISTERS, Sequencer, text, walk};

const STEPS: u32 = 4096;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let length = bytes.len() as u32 & !7;
    let word = |at: u64| {
        let at = usize::try_from(at).ok()?;
        let word = bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    };
    let _ = text(bytes).to_string();
    let mut dispatches = 0;
    let walked = walk(0, length, STEPS, word, |_, _| dispatches += 1);
    // A run does what a walk accepts, with the same dispatches.
    let mut queue = Sequencer::new();
    let (mut ran, mut fault) = (0, queue.start(0, length).err());
    for _ in 0..STEPS {
        let Some(next) = queue.address().and_then(word) else {
            break;
        };
        match queue.step(next) {
            Ok(Effect::Compute(_)) => ran += 1,
            Ok(Effect::Load(transfer)) => {
                for (register, at) in transfer.words() {
                    assert!(usize::from(register) < REGISTERS);
                    queue.load(register, word(at).unwrap_or_default() as u32);
                }
            }
            Ok(_) => {}
            Err(error) => {
                fault = Some(error);
                break;
            }
        }
    }
    if walked.is_ok() {
        assert_eq!((ran, fault), (dispatches, None));
    }
});
