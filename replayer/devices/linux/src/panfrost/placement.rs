// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory at chosen GPU addresses, though the driver chooses them.
//!
//! A file's address space starts as one hole, from 32 MiB to 4 GiB. A new object gets the lower end of the smallest
//! hole that it fits. So creating objects in address order, with fillers between, fixes their places. Alignment: an
//! executable object lies at a multiple of its size, any other of 2 MiB or more at a multiple of 2 MiB. Ranges are
//! cut so that no object leaves a hole below it. Source: `panfrost_gem_open` and `panfrost_drm_mm_color_adjust`,
//! the same in Linux 5.10 to 7.3.

use gpureplay_format::PAGE_SIZE;

use super::abi::{HEAP, NO_EXECUTE};
use crate::misfit::Misfit;

pub(crate) const FIRST: u64 = 32 << 20;
pub(crate) const END: u64 = 4 << 30;
/// Code does not begin from here on: the driver keeps it away from the end.
pub(crate) const END_OF_CODE: u64 = END - SEGMENT;
/// Most objects of a recording; each submission names all of them.
pub(crate) const MOST_OBJECTS: usize = 4096;

const PAGE: u64 = PAGE_SIZE as u64;
/// Objects from this size on are aligned to it; heap objects are a multiple of it.
const BIG: u64 = 2 << 20;
/// The program counter has 24 bits: no executable object crosses a multiple of this.
const SEGMENT: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) va: u64,
    pub(crate) bytes: u64,
    pub(crate) executable: bool,
}

impl Range {
    fn end(&self) -> u64 {
        self.va + self.bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) va: u64,
    pub(crate) bytes: u64,
    pub(crate) flags: u32,
    /// Keeps later addresses, and goes when all is in place.
    pub(crate) filler: bool,
}

/// Objects to create, in order, in an empty address space. Ranges ascend without overlap.
///
/// # Errors
/// The driver has no such addresses.
pub(crate) fn plan(ranges: &[Range]) -> Result<Vec<Step>, Misfit> {
    let mut steps = Vec::new();
    let mut at = FIRST;
    for range in joined(ranges) {
        if range.va < at || range.end() > END {
            return Err(Misfit::OutOfRange {
                va: range.va,
                first: FIRST,
                end: END,
            });
        }
        if range.executable && range.end() > END_OF_CODE {
            return Err(Misfit::HighCode {
                va: range.va,
                end: END_OF_CODE,
            });
        }
        fill(at, range.va, &mut steps);
        cut(range, &mut steps)?;
        at = range.end();
    }
    Ok(steps)
}

/// Joins neighbours of one kind.
fn joined(ranges: &[Range]) -> Vec<Range> {
    let mut joined: Vec<Range> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end() == range.va && last.executable == range.executable => {
                last.bytes += range.bytes;
            }
            _ => joined.push(*range),
        }
    }
    joined
}

/// Mostly heap objects, which have no pages.
fn fill(mut at: u64, to: u64, steps: &mut Vec<Step>) {
    while at < to {
        let left = to - at;
        let (bytes, flags) = if at.is_multiple_of(BIG) && left >= BIG {
            (left / BIG * BIG, NO_EXECUTE | HEAP)
        } else {
            (left.min(BIG - at % BIG), NO_EXECUTE)
        };
        steps.push(Step {
            va: at,
            bytes,
            flags,
            filler: true,
        });
        at += bytes;
    }
}

/// Each object is as large as the alignment of its size permits.
fn cut(range: Range, steps: &mut Vec<Step>) -> Result<(), Misfit> {
    let mut at = range.va;
    while at < range.end() {
        let left = range.end() - at;
        let (bytes, flags) = if range.executable {
            (code_at(at, left), 0)
        } else if left < BIG || at.is_multiple_of(BIG) {
            (left, NO_EXECUTE)
        } else {
            (BIG - at % BIG, NO_EXECUTE)
        };
        if steps.len() >= MOST_OBJECTS {
            return Err(Misfit::TooManyObjects(MOST_OBJECTS));
        }
        steps.push(Step {
            va: at,
            bytes,
            flags,
            filler: false,
        });
        at += bytes;
    }
    Ok(())
}

/// Largest executable object at `at`: its size divides the address.
fn code_at(at: u64, left: u64) -> u64 {
    let page = at / PAGE;
    let most = left.min(SEGMENT - at % SEGMENT) / PAGE;
    let largest = (1..=most).rev().find(|pages| page.is_multiple_of(*pages));
    largest.unwrap_or(1) * PAGE
}

#[cfg(test)]
mod tests;
