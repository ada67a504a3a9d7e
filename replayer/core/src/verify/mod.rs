// SPDX-License-Identifier: MIT OR Apache-2.0
//! Static rules before a recording touches a device.
//!
//! Errors show [`Rule::name`]. Verification reads each table once, decodes no upload, and takes linear time.

mod program;
mod regions;
pub(crate) mod rules;
mod tensors;

use core::marker::PhantomData;

use gpureplay_format::{Recording, Section};

pub use rules::Rule;

use crate::family::Family;

/// Bounds for recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// GPU memory with page tables.
    pub pages: u64,
    /// Longest single wait in microseconds.
    pub wait_us: u32,
    /// Of waits in one pass, in microseconds.
    pub total_us: u64,
    /// Per pass, by uploads, fills and tensors (once for each piece).
    pub moved_bytes: u64,
}

impl Limits {
    /// Outputs may share memory; a host keeps each apart.
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

/// The broken rule, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// Section of the entry.
    pub section: Section,
    /// Index in its section.
    pub index: u32,
    /// Address, offset, register, time or sum: see the rule.
    pub value: u64,
}

/// Keeps all rules; the engine accepts nothing else.
#[derive(Debug)]
pub struct Verified<'a, F> {
    recording: &'a Recording<'a>,
    family: PhantomData<F>,
}

// Derived ones would need the family's.
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

/// # Errors
/// The first broken rule: family, regions, identity, tensors, program.
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

/// Keeps a broken rule's place, so that checks stay small.
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

    fn ensure(&mut self, holds: bool, rule: Rule, value: u64) -> Result<(), Rule> {
        self.value = value;
        if holds { Ok(()) } else { Err(rule) }
    }
}
