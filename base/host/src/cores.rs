// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads to run at once.

use std::sync::LazyLock;

static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// At least one; asked once, since the system reads files for it.
#[must_use]
pub fn cores() -> usize {
    *CORES
}
