// SPDX-License-Identifier: MIT OR Apache-2.0
//! Manifests of CUDA launches: accepted ones keep the replay's rules.
#![no_main]

use gpureplay_cuda_launch::recording::Launch;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(launch) = Launch::parse(text) else {
        return;
    };
    let mut end = 0;
    for region in &launch.regions {
        assert!(region.size > 0 && region.address >= end);
        end = region.address + region.size;
        assert!(end <= 1 << 47);
    }
    for [offset, size] in &launch.layout {
        assert!(offset + size <= launch.parameters.len());
    }
});
