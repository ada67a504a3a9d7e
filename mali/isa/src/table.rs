// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data of each operation, built from `table/*.isa`.

use crate::info::*;
use crate::names::{Mnemonic, Modifier, Op};
use crate::product::{Product, ProductEvidence, Products};

include!(concat!(env!("OUT_DIR"), "/table.rs"));

impl Op {
    /// Its row of the table.
    pub fn info(self) -> &'static OpInfo {
        &OPS[self as usize]
    }

    /// What it computes on any unit.
    pub fn mnemonic(self) -> Mnemonic {
        self.info().mnemonic
    }

    /// Where it executes.
    pub fn unit(self) -> Unit {
        self.info().unit
    }

    /// Finds an operation by unit and name.
    pub fn find(unit: Unit, name: &str) -> Option<Op> {
        OPS.iter()
            .find(|info| info.unit == unit && info.name == name)
            .map(|info| info.op)
    }
}
