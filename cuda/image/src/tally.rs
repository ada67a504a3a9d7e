// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one part may hold. Its tables can name the same bytes many times, so its size alone bounds nothing.

use std::collections::HashSet;

use crate::{ImageError, Kernel};

/// Kernels of a part, and likewise variables: the largest libraries have some ten thousand.
pub const MAX_KERNELS: usize = 1 << 18;
/// A name in a part, in bytes: mangled names of templates have some thousand.
pub const MAX_NAME: usize = 64 << 10;
/// Names of all kernels and variables of a part together, in bytes.
pub const MAX_NAMES: usize = 64 << 20;
/// Parameters of all kernels of a part together.
pub const MAX_PARAMETERS: usize = 1 << 22;
/// Parameters of one kernel: one for each byte that it may have.
const MAX_KERNEL_PARAMETERS: usize = 32_764;
/// Bytes of a name that an error shows.
const SHOWN: usize = 80;

/// The first characters of a text that an error shows.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Something of which only so much is taken.
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

/// A name that is no longer than it may be.
pub(crate) fn name(bytes: &[u8]) -> Result<&[u8], ImageError> {
    Tally::new("bytes of a name", MAX_NAME)
        .take(bytes.len())
        .map(|()| bytes)
}

/// What a part has held so far.
#[derive(Debug)]
pub(crate) struct Held {
    kernels: Tally,
    variables: Tally,
    names: Tally,
    parameters: Tally,
    seen: HashSet<String>,
}

impl Held {
    pub(crate) fn new() -> Self {
        Self {
            kernels: Tally::new("kernels", MAX_KERNELS),
            variables: Tally::new("variables", MAX_KERNELS),
            names: Tally::new("bytes of names of kernels and variables", MAX_NAMES),
            parameters: Tally::new("parameters of all kernels", MAX_PARAMETERS),
            seen: HashSet::new(),
        }
    }

    /// The name of another kernel or variable, before it is copied.
    pub(crate) fn name(&mut self, bytes: &[u8]) -> Result<(), ImageError> {
        self.names.take(name(bytes)?.len())
    }

    /// One more kernel of a name that no other has.
    pub(crate) fn kernel(&mut self, kernel: &Kernel) -> Result<(), ImageError> {
        self.kernels.take(1)?;
        match self.seen.insert(kernel.name.clone()) {
            true => Ok(()),
            false => Err(ImageError::Twice(shown(&kernel.name))),
        }
    }

    /// Whether there is a kernel of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.seen.contains(name)
    }

    /// One more variable.
    pub(crate) fn variable(&mut self) -> Result<(), ImageError> {
        self.variables.take(1)
    }

    /// One more parameter of a kernel that has so many.
    pub(crate) fn parameter(&mut self, count: usize) -> Result<(), ImageError> {
        if count >= MAX_KERNEL_PARAMETERS {
            return Err(ImageError::TooMany {
                what: "parameters of a kernel",
                limit: MAX_KERNEL_PARAMETERS,
            });
        }
        self.parameters.take(1)
    }
}
