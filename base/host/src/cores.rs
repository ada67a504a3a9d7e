// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many threads this process runs at once.

use std::sync::LazyLock;

static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// How many threads this process runs at once, at least one. The system is asked once: it reads several files for an answer.
#[must_use]
pub fn cores() -> usize {
    *CORES
}
