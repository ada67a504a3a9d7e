// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what writes descriptors' words.

use std::collections::{BTreeMap, BTreeSet};

use mali_drive::Verified;
use mali_facts::Memory;

use crate::walk::{Event, Full, events};

/// Word of at most eight bytes: address, recorded bytes, new bytes.
pub type Word = (u64, Vec<u8>, Vec<u8>);

/// GPU address and bytes.
pub type Patch = (u64, Vec<u8>);

/// Actions after which words must be written.
///
/// # Errors
/// Too much is uploaded.
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
