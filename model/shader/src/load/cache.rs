// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoded shaders, kept between dispatches.

use std::collections::HashMap;
use std::sync::Arc;

use super::decode::{Code, shader};
use crate::core::Tlb;
use crate::ir::{Program, Translate};

/// Code and decoded form together.
pub(crate) const MOST_BYTES: usize = 32 << 20;

const MOST_OWN: usize = 256;

#[derive(Debug)]
struct Known {
    isa: &'static dyn Translate,
    program: Arc<Program>,
    code: Code,
    /// By push uniforms; `None`: seen once.
    own: HashMap<Arc<[u32]>, Option<Arc<Program>>>,
    bytes: usize,
    used: u64,
}

/// By entry, at most [`MOST_BYTES`]; drops the least recently used.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    shaders: HashMap<u64, Known>,
    bytes: usize,
    questions: u64,
}

impl Cache {
    /// A shader, and how many clauses were decoded: none if memory holds the same code.
    pub(crate) fn shader(
        &mut self,
        entry: u64,
        isa: &'static dyn Translate,
        fetch: &mut Tlb<'_>,
    ) -> (Arc<Program>, usize) {
        self.questions += 1;
        if let Some(known) = self.shaders.get_mut(&entry)
            && known.isa.is(isa)
            && known.code.is_current(fetch)
        {
            known.used = self.questions;
            return (Arc::clone(&known.program), 0);
        }
        self.take(entry);
        let (program, code) = shader(entry, isa, fetch);
        let pending = program.clauses.iter().filter(|clause| clause.is_pending());
        let decoded = program.clauses.len() - pending.count();
        let known = Known {
            isa,
            bytes: size_of::<Known>() + program.bytes() + code.bytes(),
            program: Arc::new(program),
            code,
            own: HashMap::new(),
            used: self.questions,
        };
        let program = Arc::clone(&known.program);
        self.keep(entry, known);
        (program, decoded)
    }

    /// `None`: new push uniforms.
    pub(crate) fn own(&mut self, program: &Arc<Program>, uniforms: &[u32]) -> Option<Own> {
        let known = self.of(program)?;
        Some(match known.own.get(uniforms)? {
            Some(own) => Own::Made(Arc::clone(own)),
            None => Own::Seen,
        })
    }

    pub(crate) fn keep_own(
        &mut self,
        program: &Arc<Program>,
        uniforms: &Arc<[u32]>,
        own: Option<Arc<Program>>,
    ) {
        let Some(known) = self.of(program) else {
            return;
        };
        let entry = program.entry;
        if known.own.len() >= MOST_OWN && !known.own.contains_key(uniforms) {
            return;
        }
        let more = own_bytes(uniforms, own.as_ref());
        let Some(mut known) = self.take(entry) else {
            return;
        };
        let before = known.own.insert(Arc::clone(uniforms), own);
        known.bytes += more;
        if let Some(before) = before {
            known.bytes -= own_bytes(uniforms, before.as_ref());
        }
        self.keep(entry, known);
    }

    fn of(&mut self, program: &Arc<Program>) -> Option<&mut Known> {
        let known = self.shaders.get_mut(&program.entry);
        known.filter(|known| Arc::ptr_eq(&known.program, program))
    }

    fn keep(&mut self, entry: u64, known: Known) {
        while self.bytes + known.bytes > MOST_BYTES {
            let oldest = self.shaders.iter().min_by_key(|(_, known)| known.used);
            let Some((&oldest, _)) = oldest else { return };
            self.take(oldest);
        }
        self.bytes += known.bytes;
        self.shaders.insert(entry, known);
    }

    fn take(&mut self, entry: u64) -> Option<Known> {
        let known = self.shaders.remove(&entry)?;
        self.bytes -= known.bytes;
        Some(known)
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Own {
    Seen,
    Made(Arc<Program>),
}

fn own_bytes(uniforms: &[u32], own: Option<&Arc<Program>>) -> usize {
    // Tables have twice the room; two reference counts of 8 bytes come before the words.
    2 * size_of::<(Arc<[u32]>, Option<Arc<Program>>)>()
        + 16
        + size_of_val(uniforms)
        + own.map_or(0, |program| program.bytes())
}

#[cfg(test)]
mod tests;
