// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a recorder's raw trace: read to the end or to an error.
#![no_main]

use gpureplay_trace::Reader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    while let Ok(Some(_)) = reader.next_record() {}
});
