// SPDX-License-Identifier: MIT OR Apache-2.0
//! Manifests: reading what was written gives the same.
#![no_main]

use gpureplay_library::Manifest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    match Manifest::parse(text) {
        Ok(manifest) => {
            let written = manifest.to_text().expect("what was read can be written");
            let again = Manifest::parse(&written).expect("what we write, we read");
            assert_eq!(again.to_text().ok(), Some(written));
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
});
