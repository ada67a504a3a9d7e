// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw traces: read to the end or to an error. Readable notes are written as meant.
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

fn check(text: &str) {
    if let Some(Ok(note)) = Note::parse(text) {
        assert_eq!(Note::parse(&note.to_string()), Some(Ok(note)));
    }
}
