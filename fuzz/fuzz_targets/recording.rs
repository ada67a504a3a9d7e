// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings: refused or verified, never a panic. Checksums are corrected first, to reach what follows them.
#![no_main]

use gpureplay_core::Limits;
use mali_drive::verify;
use gpureplay_format::Recording;
use gpureplay_trials::Parts;

fn check(bytes: &[u8]) {
    if let Ok(recording) = Recording::parse(bytes) {
        if let Ok(verified) = verify(&recording, &Limits::DEFAULT) {
            let _ = mali_jobs::walk::check(&verified);
        }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if let Some(parts) = Parts::of(bytes) {
        check(&parts.file());
    }
});
