// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks up a tensor's bit patterns in pages of memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use gpureplay_tensors::{Element, Tensor};
use gpureplay_trace::PAGE_SIZE;

use crate::pages::{Memory, Moment};

/// Places noted of one element; with more, the pattern is no tag.
const MAX_PLACES: usize = 64;

/// No adversary chooses the keys.
#[derive(Default)]
pub(crate) struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

type Map<V> = HashMap<u64, V, BuildHasherDefault<Multiply>>;

/// Patterns of `length` bytes.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Bytes: one element of four or eight, or several smaller ones side by side.
    length: usize,
    alignment: usize,
    elements: Map<Option<u32>>,
    /// One bit per hash, to reject most patterns.
    filter: Vec<u64>,
}

impl std::fmt::Debug for Multiply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

const FILTER_BITS: u32 = 20;

fn filter_slot(key: u64) -> (usize, u64) {
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS);
    ((hash / 64) as usize, 1 << (hash % 64))
}

impl Keys {
    /// Patterns that occur twice or are zero are left out. Elements of one or two bytes form groups of eight bytes,
    /// along any one dimension.
    pub(crate) fn new(tensor: &Tensor) -> Keys {
        let size = tensor.dtype().bytes();
        let mut keys = Keys {
            length: size,
            alignment: size,
            elements: Map::default(),
            filter: vec![0; 1 << (FILTER_BITS - 6)],
        };
        if size >= 4 {
            for element in 0..tensor.len() {
                keys.insert(tensor.bits(element), element);
            }
        } else {
            keys.length = 8;
            (0..tensor.len()).for_each(|element| keys.insert_groups(tensor, element));
        }
        keys
    }

    fn insert_groups(&mut self, tensor: &Tensor, element: usize) {
        let size = tensor.dtype().bytes();
        let group = 8 / size;
        let mut stride = 1usize;
        for extent in tensor.shape().iter().rev() {
            let extent = *extent as usize;
            let last = element + (group - 1) * stride;
            // Along the innermost dimension a group may go on in the next row.
            let same_line = stride == 1 || element / (extent * stride) == last / (extent * stride);
            if last < tensor.len() && same_line {
                let key = (0..group).fold(0, |key, i| {
                    key | tensor.bits(element + i * stride) << (8 * size * i)
                });
                self.insert(key, element);
            }
            stride *= extent;
        }
    }

    /// A few elements and their neighbours, enough to find strides. `None` for small tensors.
    pub(crate) fn sampled(tensor: &Tensor) -> Option<Keys> {
        const ENOUGH: usize = 1 << 14;
        const ANCHORS: usize = 16;
        const NEIGHBOURS: usize = 32;
        let size = tensor.dtype().bytes();
        if tensor.len() < ENOUGH {
            return None;
        }
        let mut chosen = BTreeSet::new();
        for anchor in 0..ANCHORS {
            let element = tensor.len() / ANCHORS * anchor;
            chosen.insert(element);
            let mut stride = 1usize;
            for extent in tensor.shape().iter().rev() {
                let extent = *extent as usize;
                let position = element / stride % extent;
                let line = element - position * stride;
                let first = position.saturating_sub(NEIGHBOURS);
                chosen
                    .extend((first..extent.min(position + NEIGHBOURS)).map(|i| line + i * stride));
                stride *= extent;
            }
        }
        let mut keys = Keys {
            length: if size < 4 { 8 } else { size },
            alignment: size,
            elements: Map::default(),
            filter: vec![0; 1 << (FILTER_BITS - 6)],
        };
        for element in chosen {
            if size < 4 {
                keys.insert_groups(tensor, element);
            } else {
                keys.insert(tensor.bits(element), element);
            }
        }
        Some(keys)
    }

    fn insert(&mut self, key: u64, element: usize) {
        if key == 0 {
            return;
        }
        let (slot, bit) = filter_slot(key);
        self.filter[slot] |= bit;
        let new = Some(element as u32);
        // Two dimensions of extent 1 reach the same group.
        self.elements
            .entry(key)
            .and_modify(|old| {
                if *old != new {
                    *old = None
                }
            })
            .or_insert(new);
    }

    fn find(&self, key: u64) -> Option<u32> {
        let (slot, bit) = filter_slot(key);
        if self.filter[slot] & bit == 0 {
            return None;
        }
        self.elements.get(&key).copied().flatten()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Hits {
    places: BTreeMap<u32, Vec<u64>>,
}

impl Hits {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn elements(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn of(&self, element: u64) -> &[u64] {
        u32::try_from(element)
            .ok()
            .and_then(|e| self.places.get(&e))
            .map_or(&[], Vec::as_slice)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.places
            .iter()
            .map(|(e, places)| (u64::from(*e), places.as_slice()))
    }
}

pub(crate) fn scan(memory: &Memory, moment: Moment, pages: &BTreeSet<u64>, keys: &Keys) -> Hits {
    let mut hits = Hits::default();
    let mut window = vec![0u8; PAGE_SIZE + 8];
    for va in pages {
        if memory
            .at(moment, *va)
            .is_none_or(|c| c == crate::pages::Content::ZERO)
        {
            continue;
        }
        // A key may go on in the next page.
        let tail = keys.length - keys.alignment;
        window[..PAGE_SIZE].copy_from_slice(memory.page(moment, *va));
        window[PAGE_SIZE..PAGE_SIZE + tail]
            .copy_from_slice(&memory.page(moment, *va + PAGE_SIZE as u64)[..tail]);
        for offset in (0..PAGE_SIZE).step_by(keys.alignment) {
            let key = read_key(&window[offset..], keys.length);
            if let Some(element) = keys.find(key) {
                let places = hits.places.entry(element).or_default();
                if places.len() < MAX_PLACES {
                    places.push(*va + offset as u64);
                }
            }
        }
    }
    hits
}

fn read_key(bytes: &[u8], length: usize) -> u64 {
    match (length, bytes) {
        (4, [a, b, c, d, ..]) => u64::from(u32::from_le_bytes([*a, *b, *c, *d])),
        (_, [a, b, c, d, e, f, g, h, ..]) => u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
        _ => 0,
    }
}
