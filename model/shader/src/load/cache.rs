// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoded shaders, kept from one dispatch to the next.

use std::collections::HashMap;
use std::sync::Arc;

use mali_isa::Product;

use super::decode::{Code, shader};
use crate::core::Tlb;
use crate::ir::Program;

/// Most bytes of all shaders that are kept, code and decoded form together.
pub(crate) const MOST_BYTES: usize = 32 << 20;

/// A shader that was decoded before.
#[derive(Debug)]
struct Known {
    program: Arc<Program>,
    code: Code,
    bytes: usize,
    /// When it was last asked for, as a count of questions.
    used: u64,
}

/// Decoded shaders by address of the first clause, at most [`MOST_BYTES`] of them. Those go first that were not asked for
/// longest.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    shaders: HashMap<u64, Known>,
    bytes: usize,
    questions: u64,
}

impl Cache {
    /// The shader at `entry` and how many of its clauses were decoded for it: none if memory still holds the code of the last
    /// time.
    pub(crate) fn shader(
        &mut self,
        entry: u64,
        product: Option<Product>,
        fetch: &mut Tlb<'_>,
    ) -> (Arc<Program>, usize) {
        self.questions += 1;
        if let Some(known) = self.shaders.get_mut(&entry)
            && known.program.product == product
            && known.code.is_current(fetch)
        {
            known.used = self.questions;
            return (Arc::clone(&known.program), 0);
        }
        self.forget(entry);
        let (program, code) = shader(entry, product, fetch);
        let pending = program.clauses.iter().filter(|clause| clause.is_pending());
        let decoded = program.clauses.len() - pending.count();
        let known = Known {
            bytes: size_of::<Known>() + program.bytes() + code.bytes(),
            program: Arc::new(program),
            code,
            used: self.questions,
        };
        let program = Arc::clone(&known.program);
        self.keep(entry, known);
        (program, decoded)
    }

    fn keep(&mut self, entry: u64, known: Known) {
        while self.bytes + known.bytes > MOST_BYTES {
            let oldest = self.shaders.iter().min_by_key(|(_, known)| known.used);
            let Some((&oldest, _)) = oldest else { return };
            self.forget(oldest);
        }
        self.bytes += known.bytes;
        self.shaders.insert(entry, known);
    }

    fn forget(&mut self, entry: u64) {
        if let Some(known) = self.shaders.remove(&entry) {
            self.bytes -= known.bytes;
        }
    }

    /// Bytes of all shaders that are kept.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
