// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes to a shipped recording: verified ones run inside their own pages, end in time, and leave the GPU reset.
#![no_main]

use std::sync::LazyLock;

use gpureplay_trials::soundness::{Source, check, mutate};
use gpureplay_trials::{Parts, shipped};

static RECORDINGS: LazyLock<Vec<Parts>> = LazyLock::new(|| {
    // The long ones take seconds under AddressSanitizer; `soundness` changes them too.
    let all = shipped::all().expect("shipped recordings");
    let short = all.iter().filter(|shipped| !shipped.is_long());
    short.filter_map(|shipped| Parts::of(&shipped.bytes)).collect()
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = bytes.split_first() else {
        return;
    };
    let mut parts = RECORDINGS[usize::from(*which) % RECORDINGS.len()].clone();
    mutate(&mut parts, &mut Source(rest));
    if let Err(broken) = check(&parts.file()) {
        panic!("{broken}");
    }
});
