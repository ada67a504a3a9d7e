// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of a part, whose tables can name the same bytes many times.

use std::collections::HashSet;

use crate::image::{ImageError, Kernel, PARTS_OF_A_BYTE, PARTS_OF_ANY};

/// Per part, as variables; large libraries have some ten thousand.
pub const MAX_KERNELS: usize = 1 << 18;
/// In bytes; templates' have some thousand.
pub const MAX_NAME: usize = 64 << 10;
/// In bytes, of a part's kernels and variables.
pub const MAX_NAMES: usize = 64 << 20;
/// Of a part's kernels.
pub const MAX_PARAMETERS: usize = 1 << 22;
/// One per byte that parameters may have.
const MAX_KERNEL_PARAMETERS: usize = 32_764;
const SHOWN_BYTES: usize = 80;

pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= SHOWN_BYTES) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Units that short images have at least; see [`Allowance`].
const WORK_OF_ANY: u64 = 256 << 20;
/// Besides the name's bytes.
const WORK_OF_EACH: usize = 16;

/// Decompressed bytes, and parse work, of a recording's images.
///
/// Statements, parameters and symbols count 16, names their bytes. Limits grow by [`PARTS_OF_A_BYTE`] per image
/// byte.
#[derive(Debug)]
pub struct Allowance {
    bytes: Limited,
    work: Limited,
}

#[derive(Debug)]
struct Limited {
    what: &'static str,
    left: u64,
    limit: u64,
}

impl Limited {
    fn take(&mut self, count: u64) -> Result<(), ImageError> {
        let too_much = ImageError::TooMuch {
            what: self.what,
            limit: self.limit,
        };
        self.left = self.left.checked_sub(count).ok_or(too_much)?;
        Ok(())
    }

    fn add(&mut self, count: u64) {
        self.left = self.left.saturating_add(count);
        self.limit = self.limit.saturating_add(count);
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self::new(PARTS_OF_ANY, WORK_OF_ANY)
    }
}

impl Allowance {
    fn new(bytes: u64, work: u64) -> Self {
        let limited = |what, limit| Limited {
            what,
            left: limit,
            limit,
        };
        Self {
            bytes: limited("bytes after decompression", bytes),
            work: limited("units of parse work", work),
        }
    }

    /// For one part, which has limits of its own.
    pub(crate) fn unlimited() -> Self {
        Self::new(u64::MAX, u64::MAX)
    }

    /// Adds what an image of this length may need.
    pub fn add_image(&mut self, length: usize) {
        let more = PARTS_OF_A_BYTE.saturating_mul(length as u64);
        self.bytes.add(more);
        self.work.add(more);
    }

    /// Call before decompression.
    pub(crate) fn bytes(&mut self, count: u64) -> Result<(), ImageError> {
        self.bytes.take(count)
    }

    pub(crate) fn entry(&mut self, name_length: usize) -> Result<(), ImageError> {
        self.work
            .take(name_length.saturating_add(WORK_OF_EACH) as u64)
    }
}

#[derive(Debug)]
pub(crate) struct Tally {
    what: &'static str,
    limit: usize,
    left: usize,
}

impl Tally {
    pub(crate) fn new(what: &'static str, limit: usize) -> Self {
        Self {
            what,
            limit,
            left: limit,
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<(), ImageError> {
        self.left = self.left.checked_sub(count).ok_or(ImageError::TooMany {
            what: self.what,
            limit: self.limit,
        })?;
        Ok(())
    }
}

pub(crate) fn name(bytes: &[u8]) -> Result<&[u8], ImageError> {
    Tally::new("bytes of a name", MAX_NAME)
        .take(bytes.len())
        .map(|()| bytes)
}

#[derive(Debug)]
pub(crate) struct Held<'a> {
    pub(crate) allowance: &'a mut Allowance,
    kernels: Tally,
    variables: Tally,
    names: Tally,
    parameters: Tally,
    seen: HashSet<String>,
}

impl<'a> Held<'a> {
    pub(crate) fn new(allowance: &'a mut Allowance) -> Self {
        Self {
            allowance,
            kernels: Tally::new("kernels", MAX_KERNELS),
            variables: Tally::new("variables", MAX_KERNELS),
            names: Tally::new("bytes of names of kernels and variables", MAX_NAMES),
            parameters: Tally::new("parameters of all kernels", MAX_PARAMETERS),
            seen: HashSet::new(),
        }
    }

    /// Counts a name before it is copied.
    pub(crate) fn name(&mut self, bytes: &[u8]) -> Result<(), ImageError> {
        self.names.take(name(bytes)?.len())?;
        self.allowance.entry(bytes.len())
    }

    pub(crate) fn kernel(&mut self, kernel: &Kernel) -> Result<(), ImageError> {
        self.kernels.take(1)?;
        match self.seen.insert(kernel.name.clone()) {
            true => Ok(()),
            false => Err(ImageError::Twice(shown(&kernel.name))),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.seen.contains(name)
    }

    pub(crate) fn variable(&mut self) -> Result<(), ImageError> {
        self.variables.take(1)
    }

    pub(crate) fn parameter(&mut self, so_far: usize) -> Result<(), ImageError> {
        if so_far >= MAX_KERNEL_PARAMETERS {
            return Err(ImageError::TooMany {
                what: "parameters of a kernel",
                limit: MAX_KERNEL_PARAMETERS,
            });
        }
        self.parameters.take(1)?;
        self.allowance.entry(0)
    }
}
