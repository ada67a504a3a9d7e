// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's threads that work on a dispatch, and the shaders that they remember from one dispatch to the next.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use mali_isa::Product;

use crate::core::Tlb;
use crate::ir::Program;
use crate::load::Cache;

/// How many host threads run work groups, and decoded shaders. Results do not depend on the number of threads.
#[derive(Debug)]
pub struct Threads {
    count: NonZeroUsize,
    shaders: Mutex<Cache>,
}

impl Default for Threads {
    /// One thread for each processor that this process may use.
    fn default() -> Threads {
        Threads::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }
}

impl Threads {
    /// `count` threads, at least one.
    pub fn new(count: usize) -> Threads {
        Threads {
            count: NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN),
            shaders: Mutex::default(),
        }
    }

    /// How many threads there are.
    pub fn count(&self) -> usize {
        self.count.get()
    }

    /// The shader at `entry`, and how many of its clauses had to be decoded.
    pub(crate) fn shader(
        &self,
        entry: u64,
        product: Option<Product>,
        fetch: &mut Tlb<'_>,
    ) -> (Arc<Program>, usize) {
        let mut shaders = self.shaders.lock().unwrap_or_else(PoisonError::into_inner);
        shaders.shader(entry, product, fetch)
    }
}
