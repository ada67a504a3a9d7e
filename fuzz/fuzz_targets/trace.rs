// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a recorder's raw trace: read to the end or to an error. Notes that can be read are written as they were meant.
#![no_main]

use gpureplay_trace::note::Note;
use gpureplay_trace::{Event, Reader};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    while let Ok(Some(record)) = reader.next_record() {
        if let Event::Note(text) = record.event {
            check(text);
        }
    }
    if let Ok(text) = core::str::from_utf8(bytes) {
        check(text);
    }
});

/// A note that is read comes back from its own text.
fn check(text: &str) {
    if let Some(Ok(note)) = Note::parse(text) {
        assert_eq!(Note::parse(&note.to_string()), Some(Ok(note)));
    }
}
