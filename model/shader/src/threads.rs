// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's threads that work on a dispatch, and the shaders that they remember from one dispatch to the next.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use crate::engine::tlb::Tlb;
use crate::program::Program;

/// Most shaders to remember.
const SHADERS: usize = 256;

/// How many host threads run work groups, and decoded shaders. Results do not depend on the number of threads.
#[derive(Debug)]
pub struct Threads {
    count: NonZeroUsize,
    /// Shaders by address of the first clause.
    shaders: Mutex<HashMap<u64, Program>>,
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

    /// The shader at `entry`, decoded anew unless memory still holds the code of the last time.
    pub(crate) fn shader(&self, entry: u64, fetch: &mut Tlb<'_>) -> Program {
        let mut shaders = self.shaders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shaders.get(&entry).filter(|known| known.is_current(fetch)) {
            return known.clone();
        }
        let program = Program::new(entry, fetch);
        if shaders.len() >= SHADERS {
            shaders.clear();
        }
        shaders.insert(entry, program.clone());
        program
    }
}
