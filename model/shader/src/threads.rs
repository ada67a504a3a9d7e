// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's threads that work on a dispatch, and what they remember from one dispatch to the next.

use std::num::NonZeroUsize;

/// How many host threads run work groups. Results do not depend on the number.
#[derive(Debug)]
pub struct Threads {
    count: NonZeroUsize,
}

impl Default for Threads {
    /// One thread for each processor that this process may use.
    fn default() -> Threads {
        Threads {
            count: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }
}

impl Threads {
    /// `count` threads, at least one.
    pub fn new(count: usize) -> Threads {
        Threads {
            count: NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN),
        }
    }

    /// How many threads there are.
    pub fn count(&self) -> usize {
        self.count.get()
    }
}
