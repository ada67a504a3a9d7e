// SPDX-License-Identifier: MIT OR Apache-2.0
//! Four files of an original recording: converted and well formed, or refused.
#![no_main]

use gpureplay_format::Recording;
use gpureplay_import::{Options, convert, read_files};

fn part<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return &[];
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (part, rest) = rest.split_at(length);
    *bytes = rest;
    part
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    let (history, tables, ranges) = (part(&mut rest), part(&mut rest), part(&mut rest));
    let Ok(original) = read_files(history, tables, rest.to_vec(), ranges) else {
        return;
    };
    if let Ok(imported) = convert(&original, &Options::default()) {
        assert!(Recording::parse(&imported.recording).is_ok());
    }
});
