// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a recording: refused or verified, never a panic.
#![no_main]

use gpureplay_core::{Limits, verify};
use gpureplay_format::Recording;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(recording) = Recording::parse(bytes) {
        let _ = verify(recording, &Limits::DEFAULT);
    }
});
