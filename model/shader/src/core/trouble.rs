// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a micro-operation did not complete.

use crate::FaultKind;

/// Why a micro-operation did not complete; the clause adds its place.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) kind: FaultKind,
    /// Address of the data, or 0 when the instruction itself is meant.
    pub(crate) address: u64,
    /// What is wrong, for people.
    pub(crate) text: String,
}

/// What a micro-operation gives that only changes rows and memory.
pub(crate) type Done = Result<(), Trouble>;

impl Trouble {
    pub(crate) fn new(kind: FaultKind, address: u64, text: impl Into<String>) -> Trouble {
        Trouble {
            kind,
            address,
            text: text.into(),
        }
    }
}

impl From<crate::MmuFault> for Trouble {
    fn from(fault: crate::MmuFault) -> Trouble {
        Trouble::new(FaultKind::Mmu(fault), fault.va, fault.to_string())
    }
}
