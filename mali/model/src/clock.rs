// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU's two clocks, from the host's.

use std::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock {
            start: Instant::now(),
        }
    }

    fn nanoseconds(self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Cycles at 800 MHz.
    pub(crate) fn cycles(self) -> u64 {
        self.nanoseconds() / 5 * 4
    }

    /// Ticks at 62.5 MHz, the frequency of QEMU's counter.
    pub(crate) fn timestamp(self) -> u64 {
        self.nanoseconds() / 16
    }
}
