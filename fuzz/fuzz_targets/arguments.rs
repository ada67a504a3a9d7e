// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command lines: understood, or refused with a message.
#![no_main]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let words = bytes.split(|&byte| byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    if let Err(message) = gpureplay_command::check(std::iter::once("gpureplay".into()).chain(words)) {
        assert!(!message.is_empty());
    }
});
