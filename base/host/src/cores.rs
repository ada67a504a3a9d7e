// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many threads this process runs at once.

use std::sync::LazyLock;

static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// At least one; asks the system once, which reads several files.
#[must_use]
pub fn cores() -> usize {
    *CORES
}
