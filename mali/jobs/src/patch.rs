// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of descriptors that change: which actions of a recording put the recorded ones into memory.

use std::collections::{BTreeMap, BTreeSet};

use mali_drive::Verified;
use mali_facts::Memory;

use crate::walk::{Event, Full, events};

/// A word of at most eight bytes: its address, the recorded bytes, and the new ones.
pub type Word = (u64, Vec<u8>, Vec<u8>);

/// Bytes that go to an address of GPU memory.
pub type Patch = (u64, Vec<u8>);

/// After which actions the words have to be written: those that put the recorded ones there.
///
/// # Errors
/// More is uploaded than is kept of a recording's memory.
pub fn places(
    verified: &Verified<'_>,
    words: &BTreeSet<Word>,
) -> Result<BTreeMap<u32, Vec<Patch>>, Full> {
    let mut found: BTreeMap<u32, Vec<Patch>> = BTreeMap::new();
    events(verified, |event| {
        let Event::Changed {
            action,
            va,
            length,
            memory,
        } = event
        else {
            return Ok::<(), Full>(());
        };
        let end = va.saturating_add(*length);
        // No word is longer than a pointer.
        let from = (va.saturating_sub(8), Vec::new(), Vec::new());
        for (at, old, new) in words.range(from..) {
            if *at >= end {
                break;
            }
            let mut now = vec![0; old.len()];
            let reaches = at.saturating_add(old.len() as u64) > *va;
            if reaches && memory.read(*at, &mut now) && now == *old {
                found.entry(*action).or_default().push((*at, new.clone()));
            }
        }
        Ok(())
    })?;
    Ok(found)
}
