// SPDX-License-Identifier: MIT OR Apache-2.0
//! PTX that gets probes: no panic, bounded output, unchanged without calls.
#![no_main]

use gpureplay_cuda_launch::probe::{Calls, MAX_SITES, instrument};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let calls = Calls {
        accesses: true,
        blocks: true,
        races: true,
        own: Some("probe"),
    };
    let Ok(found) = instrument(text.as_bytes(), "k", &calls, "") else {
        return;
    };
    assert!(found.sites.len() <= MAX_SITES);
    assert!(found.text.len() < text.len() * 400 + 4096);
    if !found.sites.is_empty() {
        assert!(instrument(found.text.as_bytes(), "k", &calls, "").is_err());
    }
    let Ok(plain) = instrument(text.as_bytes(), "k", &Calls::default(), "") else {
        panic!("it was taken with calls");
    };
    assert!(plain.sites.is_empty());
    assert!(plain.text.split_whitespace().all(|word| text.contains(word)));
});
