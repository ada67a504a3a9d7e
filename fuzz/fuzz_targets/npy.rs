// SPDX-License-Identifier: MIT OR Apache-2.0
//! .npy files: reading what was written gives the same.
#![no_main]

use gpureplay_tensors::{encode_npy, parse_npy};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(tensor) = parse_npy(bytes) {
        let again = parse_npy(&encode_npy(&tensor)).expect("what we write, we read");
        assert_eq!(encode_npy(&again), encode_npy(&tensor));
    }
});
