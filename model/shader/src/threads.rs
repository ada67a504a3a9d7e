// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host threads of a dispatch and their decoded shaders.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::Tlb;
use crate::engine::prepared::{Prepared, Purpose};
use crate::engine::tracks::Room;
use crate::ir::{Program, Translate};
use crate::load::{Cache, Own};
use crate::optimise::specialise::{WORTH_IT, specialised};
use crate::rows::Rows;

/// Results do not depend on their number.
#[derive(Debug)]
pub struct Threads {
    count: NonZeroUsize,
    shaders: Mutex<Cache>,
    rows: Mutex<Kept>,
    pub(crate) room: Room,
}

const MOST_ROWS: usize = 4 << 20;

impl Default for Threads {
    /// One thread per processor that this process may use.
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
            rows: Mutex::default(),
            room: Room::new(),
        }
    }

    /// Number of threads, at least one.
    pub fn count(&self) -> usize {
        self.count.get()
    }

    pub(crate) fn shader(
        &self,
        entry: u64,
        isa: &'static dyn Translate,
        fetch: &mut Tlb<'_>,
    ) -> (Arc<Program>, usize) {
        let mut shaders = self.shaders.lock().unwrap_or_else(PoisonError::into_inner);
        shaders.shader(entry, isa, fetch)
    }

    /// A specialised shader where that pays (repeated dispatches always), and micro-operations looked at.
    pub(crate) fn own_shader(
        &self,
        program: Arc<Program>,
        uniforms: &Arc<[u32]>,
        threads: u64,
    ) -> (Arc<Program>, usize) {
        let cache = || self.shaders.lock().unwrap_or_else(PoisonError::into_inner);
        let known = cache().own(&program, uniforms);
        let worth_it = match known {
            Some(Own::Made(own)) => return (own, 0),
            Some(Own::Seen) => true,
            None => threads >= WORTH_IT,
        };
        let own = match worth_it {
            true => specialised(&program, uniforms).map(Arc::new),
            false => None,
        };
        cache().keep_own(&program, uniforms, own.clone());
        match own {
            Some(own) => (own, program.ops.len()),
            None => (program, 0),
        }
    }

    pub(crate) fn take_rows(&self, purpose: &Purpose) -> Result<Prepared, Vec<Rows>> {
        let mut kept = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let same = kept
            .prepared
            .iter()
            .position(|other| other.purpose.is(purpose));
        match same.and_then(|at| kept.prepared.remove(at)) {
            Some(prepared) => Ok(prepared),
            None => {
                let rest = kept.others.len().saturating_sub(purpose.layout.batches());
                Err(kept.others.split_off(rest))
            }
        }
    }

    pub(crate) fn give_rows(&self, prepared: Prepared, comes_again: bool) {
        let mut kept = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        match comes_again {
            true => kept.prepared.push_back(prepared),
            false => kept.others.extend(prepared.rows),
        }
        while kept.bytes() > MOST_ROWS
            && (kept.others.pop().is_some() || kept.prepared.pop_front().is_some())
        {}
    }
}

#[derive(Debug, Default)]
struct Kept {
    /// The oldest first.
    prepared: VecDeque<Prepared>,
    others: Vec<Rows>,
}

impl Kept {
    fn bytes(&self) -> usize {
        let prepared: usize = self.prepared.iter().map(Prepared::bytes).sum();
        prepared + self.others.iter().map(Rows::bytes).sum::<usize>()
    }
}
