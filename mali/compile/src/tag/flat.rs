// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds contiguous tensors with few distinct values, such as 8-bit pictures.

use std::collections::BTreeSet;

use gpureplay_format::Piece;
use gpureplay_tensors::{Element, Tensor};
use gpureplay_trace::PAGE_SIZE;

use crate::pages::{Memory, Moment};

/// In bytes.
const WINDOW: usize = 32;
/// Different elements of a window worth looking for.
const DISTINCT: usize = 4;
/// Windows tried: one may lie across two pages.
const WINDOWS: usize = 4;
const MAX_COPIES: usize = 64;

pub(super) fn find(
    memory: &Memory,
    moment: Moment,
    pages: &BTreeSet<u64>,
    tensor: &Tensor,
) -> Vec<Piece> {
    let bytes = tensor.bytes();
    let size = tensor.dtype().bytes();
    let Ok(elements) = u32::try_from(tensor.len()) else {
        return Vec::new();
    };
    let mut starts: Vec<u64> = Vec::new();
    let mut content = vec![0; bytes.len()];
    for at in windows(bytes, size) {
        let window = &bytes[at..at + WINDOW];
        for page in pages {
            let here = memory.page(moment, *page);
            for offset in (0..=PAGE_SIZE - WINDOW).step_by(size) {
                if here[offset..offset + WINDOW] != *window {
                    continue;
                }
                let Some(start) = (page + offset as u64).checked_sub(at as u64) else {
                    continue;
                };
                let new = !starts.contains(&start) && starts.len() < MAX_COPIES;
                if new && memory.read(moment, start, &mut content) && content == bytes {
                    starts.push(start);
                }
            }
        }
    }
    starts.sort_unstable();
    let piece = |va| Piece::dense(elements, tensor.dtype(), va);
    starts.into_iter().map(piece).collect()
}

/// Offsets of varied parts, at most [`WINDOWS`], far apart if there are many.
fn windows(bytes: &[u8], size: usize) -> Vec<usize> {
    let varied = |window: &[u8]| {
        let distinct: BTreeSet<&[u8]> = window.chunks(size).collect();
        distinct.len() >= DISTINCT
    };
    let all: Vec<usize> = (0..bytes.len() / WINDOW)
        .map(|index| index * WINDOW)
        .filter(|at| varied(&bytes[*at..*at + WINDOW]))
        .collect();
    let step = all.len().div_ceil(WINDOWS).max(1);
    all.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use gpureplay_tensors::ElementType;

    use super::*;

    fn memory(va: u64, bytes: &[u8]) -> (Memory, BTreeSet<u64>) {
        let now = Moment::before(0);
        let mut memory = Memory::default();
        let first = va - va % PAGE_SIZE as u64;
        let mut image = vec![0; (va - first) as usize];
        image.extend(bytes);
        image.resize(image.len().next_multiple_of(PAGE_SIZE), 0);
        let (pages, _) = image.as_chunks::<PAGE_SIZE>();
        let mut list = BTreeSet::new();
        for (page, at) in pages.iter().zip((first..).step_by(PAGE_SIZE)) {
            memory.set(now, at, Some(page));
            list.insert(at);
        }
        (memory, list)
    }

    #[test]
    fn pictures_of_few_values_are_found_across_pages() {
        let bytes: Vec<u8> = (0..9000usize).map(|i| (i / 7 * i % 5 * 40) as u8).collect();
        let picture = Tensor::new(ElementType::U8, &[90, 100], bytes.clone()).unwrap();
        for va in [0x1000, 0x1ff5] {
            let (memory, pages) = memory(va, &bytes);
            let found = find(&memory, Moment::before(0), &pages, &picture);
            assert_eq!(found.iter().map(|p| p.va).collect::<Vec<_>>(), [va]);
        }
        let mut other = bytes.clone();
        other[8999] ^= 1;
        let (memory, pages) = memory(0x1000, &other);
        assert!(find(&memory, Moment::before(0), &pages, &picture).is_empty());
    }

    #[test]
    fn one_value_everywhere_is_not_looked_for() {
        let bytes = vec![7; 4096];
        let picture = Tensor::new(ElementType::U8, &[4096], bytes.clone()).unwrap();
        let (memory, pages) = memory(0x1000, &bytes);
        assert!(find(&memory, Moment::before(0), &pages, &picture).is_empty());
    }
}
