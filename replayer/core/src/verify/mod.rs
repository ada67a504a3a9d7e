// SPDX-License-Identifier: MIT OR Apache-2.0
//! Static rules: what must hold before a recording may touch a device.
//!
//! Each rule has a name ([`Rule::name`]) that an error shows. Verification reads every table once, decodes no upload,
//! and takes time linear in the length of the file.

mod program;
mod regions;
pub(crate) mod rules;
mod tensors;

use core::marker::PhantomData;

use gpureplay_format::{Recording, Section};

pub use rules::Rule;

use crate::family::Family;

/// Bounds on what a recording may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Pages of GPU memory, those of page tables among them.
    pub pages: u64,
    /// Longest single wait in microseconds.
    pub wait_us: u32,
    /// Longest time of all waits of one pass over the recording in microseconds.
    pub total_us: u64,
    /// Bytes that uploads, fills and tensors (once for each piece) of one pass may move.
    pub moved_bytes: u64,
}

impl Limits {
    /// How many times its own memory a recording's outputs may have together: memory may be used again for another one, and a host keeps
    /// each apart.
    pub const OUTPUT_COPIES: u64 = 4;
    /// 4 GiB of memory, a minute per wait, an hour in total, 64 GiB moved.
    pub const DEFAULT: Self = Self {
        pages: 1 << 20,
        wait_us: 60_000_000,
        total_us: 3_600_000_000,
        moved_bytes: 1 << 36,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The rule that a recording breaks, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The section whose entry breaks it.
    pub section: Section,
    /// Index of the entry in its section.
    pub index: u32,
    /// The value that is not allowed: an address, an offset, a register, a time, a sum; see the rule.
    pub value: u64,
}

/// A recording that keeps all rules of a family. The engine accepts nothing else.
#[derive(Debug)]
pub struct Verified<'a, F> {
    recording: &'a Recording<'a>,
    family: PhantomData<F>,
}

// Derived, these would demand as much of the family.
impl<F> Clone for Verified<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Verified<'_, F> {}

impl<'a, F> Verified<'a, F> {
    /// The recording.
    pub const fn recording(&self) -> &'a Recording<'a> {
        self.recording
    }
}

/// Checks a recording against all rules.
///
/// # Errors
/// The first rule that is broken, in the order family, regions, identity, tensors, program.
pub fn verify<'a, F: Family>(
    recording: &'a Recording<'a>,
    limits: &Limits,
) -> Result<Verified<'a, F>, Violation> {
    let mut checker = Checker {
        recording,
        limits,
        section: Section::Header,
        index: 0,
        value: 0,
    };
    match checker.check_all::<F>() {
        Ok(()) => Ok(Verified {
            recording,
            family: PhantomData,
        }),
        Err(rule) => {
            let Checker {
                section,
                index,
                value,
                ..
            } = checker;
            Err(Violation {
                rule,
                section,
                index,
                value,
            })
        }
    }
}

/// What the checks share: the recording, and what is being looked at.
///
/// Checks return the bare rule, and leave here where it was broken; that keeps them small.
struct Checker<'r, 'a> {
    recording: &'r Recording<'a>,
    limits: &'r Limits,
    section: Section,
    index: u32,
    value: u64,
}

impl Checker<'_, '_> {
    fn check_all<F: Family>(&mut self) -> Result<(), Rule> {
        let family = self.recording.header().family.get();
        self.ensure(family == F::ID, Rule::Family, family.into())?;
        self.check_regions::<F>()?;
        self.check_identity::<F>()?;
        self.check_tensors()?;
        self.check_program::<F>()
    }

    /// Turns a condition on a value into a rule.
    fn ensure(&mut self, holds: bool, rule: Rule, value: u64) -> Result<(), Rule> {
        self.value = value;
        if holds { Ok(()) } else { Err(rule) }
    }
}
