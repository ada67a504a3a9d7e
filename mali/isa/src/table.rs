// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each operation of the instruction table is: data, made by the build script from `table/*.isa`.

use crate::info::*;
use crate::names::{Mnemonic, Modifier, Op};
use crate::product::{Product, ProductEvidence, Products};

include!(concat!(env!("OUT_DIR"), "/table.rs"));

impl Op {
    /// What the table says about the operation.
    pub fn info(self) -> &'static OpInfo {
        &OPS[self as usize]
    }

    /// What it computes, whichever unit executes it.
    pub fn mnemonic(self) -> Mnemonic {
        self.info().mnemonic
    }

    /// The unit that executes it.
    pub fn unit(self) -> Unit {
        self.info().unit
    }

    /// The operation with this name on this unit.
    pub fn find(unit: Unit, name: &str) -> Option<Op> {
        OPS.iter()
            .find(|info| info.unit == unit && info.name == name)
            .map(|info| info.op)
    }
}
