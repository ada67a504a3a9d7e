// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages, and counts of a process.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::guard;
use crate::say::say;
use crate::settings::{Mode, settings};

/// Without those of graphs.
pub(crate) static LAUNCHES: AtomicU64 = AtomicU64::new(0);
/// Launches into captures; `LAUNCHES` counts them, too.
pub(crate) static CAPTURED: AtomicU64 = AtomicU64::new(0);
pub(crate) static GRAPHS: AtomicU64 = AtomicU64::new(0);
pub(crate) static GRAPH_KERNELS: AtomicU64 = AtomicU64::new(0);
pub(crate) static RECORDED: AtomicU64 = AtomicU64::new(0);

/// Bytes, nanoseconds.
pub(crate) static COPIED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

static REFUSED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

fn verb() -> &'static str {
    match settings().mode {
        Mode::Durations(_) => "timed",
        _ => "recorded",
    }
}

pub(crate) fn refuse(kernel: &str, reason: &str) {
    let line = format!("{kernel} is not {}: {reason}", verb());
    let mut refused = guard::lock(&REFUSED);
    let count = refused.entry(line.clone()).or_insert(0);
    *count += 1;
    if *count == 1 {
        say(&line);
    }
}

pub(crate) fn summary() {
    let refused = guard::lock(&REFUSED);
    let not_recorded: u64 = refused.values().sum();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    if settings().verbose || not_recorded > 0 {
        say(&format!(
            "{} launches, {} of them in {} graph launches, {} into a capture, {} recorded, {not_recorded} wanted but not {}",
            (count(&LAUNCHES) + count(&GRAPH_KERNELS)).saturating_sub(count(&CAPTURED)),
            count(&GRAPH_KERNELS),
            count(&GRAPHS),
            count(&CAPTURED),
            count(&RECORDED),
            verb(),
        ));
        let [bytes, nanoseconds] = [&COPIED[0], &COPIED[1]].map(count);
        if bytes > 0 {
            #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
            let speed = bytes as f64 / nanoseconds.max(1) as f64;
            say(&format!(
                "{bytes} bytes of device memory copied in {} ms: {speed:.2} GB/s",
                nanoseconds / 1_000_000
            ));
        }
    }
}
