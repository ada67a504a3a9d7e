// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory at chosen GPU addresses.
//!
//! A file starts with one hole, from 32 MiB to 4 GiB. An object gets the lower end of the smallest sufficient hole.
//! So objects in address order, with fillers between, have known places. Executable objects are aligned to their
//! size, others of 2 MiB or more to 2 MiB; ranges are cut to leave no hole below an object. Source:
//! `panfrost_gem_open` and `panfrost_drm_mm_color_adjust`, equal in Linux 5.10 to 7.3.

use gpureplay_format::PAGE_SIZE;

use super::abi::{HEAP, NO_EXECUTE};
use crate::misfit::Misfit;

pub(crate) const FIRST: u64 = 32 << 20;
pub(crate) const END: u64 = 4 << 30;
/// The driver keeps code away from the end.
pub(crate) const END_OF_CODE: u64 = END - SEGMENT;
/// Each submission names all of them.
pub(crate) const MOST_OBJECTS: usize = 4096;

const PAGE: u64 = PAGE_SIZE as u64;
/// Alignment from this size on; heap objects are multiples.
const BIG: u64 = 2 << 20;
/// 24-bit program counter: no executable object crosses a multiple.
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
    /// Freed again: it only keeps later addresses.
    pub(crate) filler: bool,
}

/// Objects in the order of creation, in an empty address space. `ranges` ascend without overlap.
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

/// Heap objects take addresses without pages.
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

/// Bytes of the largest code object at `at`: its size divides the address.
fn code_at(at: u64, left: u64) -> u64 {
    let page = at / PAGE;
    let most = left.min(SEGMENT - at % SEGMENT) / PAGE;
    let largest = (1..=most).rev().find(|pages| page.is_multiple_of(*pages));
    largest.unwrap_or(1) * PAGE
}

#[cfg(test)]
mod tests;
