// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory at chosen GPU addresses, though the driver chooses them.
//!
//! A file of the driver has one address space. It is one hole at first, from 32 MiB to 4 GiB, and a new object gets the lower end of the
//! smallest hole that it fits into. So whoever creates objects in the order of their addresses, and fills what lies between, knows where each
//! will be. Only alignment is in the way: an executable object lies at a multiple of its size, any other of 2 MiB or more at a multiple of 2 MiB.
//! Ranges are cut where that asks for it, so that no object leaves a hole below it. Source: `panfrost_gem_open` and `panfrost_drm_mm_color_adjust`
//! of Linux 5.10 to 7.3, which are the same in all.

use gpureplay_format::PAGE_SIZE;

use super::abi::{HEAP, NO_EXECUTE};
use crate::misfit::Misfit;

/// First address of an address space.
pub(crate) const FIRST: u64 = 32 << 20;
/// End of an address space.
pub(crate) const END: u64 = 4 << 30;
/// Code does not begin from here on: the driver keeps it away from the end.
pub(crate) const END_OF_CODE: u64 = END - SEGMENT;
/// Most objects of a recording; each submission names all of them.
pub(crate) const MOST_OBJECTS: usize = 4096;

const PAGE: u64 = PAGE_SIZE as u64;
/// Objects of this size or more are aligned to it, and heap objects are a multiple of it.
const BIG: u64 = 2 << 20;
/// A shader's program counter has 24 bits: no executable object crosses a multiple of this.
const SEGMENT: u64 = 16 << 20;

/// Memory that the GPU must find at an address.
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

/// An object that is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Where it will be.
    pub(crate) va: u64,
    pub(crate) bytes: u64,
    /// As the driver takes them.
    pub(crate) flags: u32,
    /// It only keeps what follows from an address, and goes when all is in place.
    pub(crate) filler: bool,
}

/// The objects to create in an empty address space, in this order, so that the ranges are there. Ranges ascend and do not overlap.
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

/// Neighbours of one kind as one range.
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

/// Objects that occupy what lies between. Most of it are heap objects, which have no pages.
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

/// The objects of a range, each as large as the alignment that goes with its size permits.
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

/// Bytes of the largest executable object that lies at `at` by itself: its size divides the address.
fn code_at(at: u64, left: u64) -> u64 {
    let page = at / PAGE;
    let most = left.min(SEGMENT - at % SEGMENT) / PAGE;
    let largest = (1..=most).rev().find(|pages| page.is_multiple_of(*pages));
    largest.unwrap_or(1) * PAGE
}

#[cfg(test)]
mod tests;
