// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches from changed memory.

use crate::{Comparison, Loaded, Mask, Poison, Reaction, ReplayError, Session, Sizes, Verdict};

pub(crate) enum Evidence {
    Poison(Poison),
    Reaction(Reaction),
}

impl Evidence {
    pub(crate) fn run(
        &self,
        session: &Session,
        loaded: &Loaded,
        sizes: &Sizes,
        how: &Comparison,
        mask: &Mask,
    ) -> Result<Verdict, ReplayError> {
        match self {
            Self::Poison(poison) => session.run_poisoned(loaded, sizes, how, mask, poison),
            Self::Reaction(reaction) => session.run_reacting(loaded, sizes, how, mask, reaction),
        }
    }

    pub(super) fn bytes(&self) -> [u64; 2] {
        match self {
            Self::Poison(poison) => [poison.bytes(), poison.written()],
            Self::Reaction(reaction) => [reaction.bytes(), reaction.written()],
        }
    }

    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Poison(_) => "results",
            Self::Reaction(_) => "inputs",
        }
    }
}
