// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a micro-operation did not complete.

use crate::FaultKind;

/// A fault without its place, which the clause adds.
#[derive(Debug)]
pub struct Trouble {
    /// What happened.
    pub kind: FaultKind,
    /// 0: the instruction itself is meant.
    pub address: u64,
    /// For people.
    pub text: String,
}

/// What operations return.
pub type Done = Result<(), Trouble>;

impl Trouble {
    /// With its text.
    pub fn new(kind: FaultKind, address: u64, text: impl Into<String>) -> Trouble {
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
