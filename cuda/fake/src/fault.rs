// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures on purpose, and traces.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use gpureplay_cuda_launch::abi::Status;

static CALLS: AtomicU64 = AtomicU64::new(0);

fn number(name: &str) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

pub(crate) fn check(function: &str) -> Result<(), Status> {
    static FAIL: LazyLock<u64> = LazyLock::new(|| number("GPUREPLAY_FAKE_FAIL"));
    if *FAIL != 0 && CALLS.fetch_add(1, Ordering::SeqCst) + 1 == *FAIL {
        eprintln!("[fake] {function} fails on purpose");
        return Err(Status::UNKNOWN);
    }
    Ok(())
}

pub(crate) fn collides() -> bool {
    number("GPUREPLAY_CUDA_ATTEMPT") < number("GPUREPLAY_FAKE_COLLIDE")
}

pub(crate) fn free_memory() -> usize {
    if number("GPUREPLAY_FAKE_FULL") > 0 {
        1 << 20
    } else {
        8 << 30
    }
}

pub(crate) fn trace(what: impl FnOnce() -> String) {
    static TRACE: LazyLock<bool> = LazyLock::new(|| number("GPUREPLAY_FAKE_TRACE") > 0);
    if *TRACE {
        eprintln!("[fake] {}", what());
    }
}
