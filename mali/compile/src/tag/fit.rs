// SPDX-License-Identifier: MIT OR Apache-2.0
//! From places of single elements to strides.

use gpureplay_format::{Axis, Piece};
use gpureplay_tensors::{Element, Tensor};
use gpureplay_trace::PAGE_SIZE;

use super::scan::Hits;
use super::{AXES, Role, element_bits};
use crate::pages::{Memory, Moment};

const ANCHORS: usize = 48;
/// Tried per dimension.
const STRIDES: usize = 6;
/// Asked for a stride, along a dimension.
const NEIGHBOURS: u64 = 64;
const COMBINATIONS: usize = 256;

pub(crate) struct Search<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) moment: Moment,
    pub(crate) tensor: &'a Tensor,
    pub(crate) hits: &'a Hits,
    pub(crate) role: Role,
}

#[derive(Clone, Copy, Debug)]
struct Dimension {
    extent: u64,
    stride: u64,
}

impl Search<'_> {
    pub(crate) fn layouts(&self) -> Vec<Piece> {
        let mut out = self.strided();
        if out.is_empty() {
            out = self.tiled();
        }
        out.sort_by_key(|p| p.va);
        out.dedup();
        out
    }

    fn size(&self) -> u64 {
        self.tensor.dtype().bytes() as u64
    }

    fn elements(&self) -> u64 {
        self.tensor.len() as u64
    }

    fn dimensions(&self) -> Vec<Dimension> {
        let mut stride = 1;
        let mut out = Vec::new();
        for extent in self.tensor.shape().iter().rev() {
            if *extent > 1 {
                out.push(Dimension {
                    extent: *extent,
                    stride,
                });
            }
            stride *= extent;
        }
        out.reverse();
        out
    }

    /// Layouts with one stride per dimension: dense, padded, permuted.
    fn strided(&self) -> Vec<Piece> {
        let dimensions = self.dimensions();
        let mut out: Vec<Piece> = Vec::new();
        // Rare elements are the best tags.
        let mut anchors: Vec<(u64, &[u64])> = self.hits.iter().collect();
        anchors.sort_by_key(|(element, places)| (places.len(), *element));
        for (element, places) in anchors.into_iter().take(ANCHORS) {
            for place in places {
                if out.iter().any(|p| address_of(p, element) == Some(*place)) {
                    continue;
                }
                out.extend(self.strided_at(&dimensions, element, *place));
            }
            if !out.is_empty() {
                // One anchor sees every whole copy.
                break;
            }
        }
        out
    }

    fn strided_at(&self, dimensions: &[Dimension], element: u64, place: u64) -> Option<Piece> {
        let candidates: Vec<Vec<u64>> = dimensions
            .iter()
            .map(|d| self.strides(*d, element, place))
            .collect();
        let mut choice = vec![0usize; dimensions.len()];
        for _ in 0..COMBINATIONS {
            if let Some(piece) = self.try_strides(dimensions, &candidates, &choice, element, place)
            {
                return Some(piece);
            }
            // Index 0 of an empty list means "as dense as the inner dimensions allow".
            let mut at = choice.len();
            loop {
                at = at.checked_sub(1)?;
                choice[at] += 1;
                if choice[at] < candidates[at].len().max(1) {
                    break;
                }
                choice[at] = 0;
            }
        }
        None
    }

    fn try_strides(
        &self,
        dimensions: &[Dimension],
        candidates: &[Vec<u64>],
        choice: &[usize],
        element: u64,
        place: u64,
    ) -> Option<Piece> {
        let mut axes = vec![
            Axis {
                extent: 1,
                element_stride: 0,
                byte_stride: 0
            };
            dimensions.len()
        ];
        let mut dense = self.size();
        let mut base = place;
        for i in (0..dimensions.len()).rev() {
            let d = dimensions[i];
            let stride = candidates[i].get(choice[i]).copied().unwrap_or(dense);
            base = base.checked_sub((element / d.stride % d.extent).checked_mul(stride)?)?;
            dense = stride.checked_mul(d.extent)?;
            axes[i] = Axis {
                extent: u32::try_from(d.extent).ok()?,
                element_stride: u32::try_from(d.stride).ok()?,
                byte_stride: u32::try_from(stride).ok()?,
            };
        }
        let piece = Piece {
            va: base,
            element: 0,
            axes,
        };
        self.holds(&piece).then_some(piece)
    }

    /// Most frequent first.
    fn strides(&self, d: Dimension, element: u64, place: u64) -> Vec<u64> {
        let position = element / d.stride % d.extent;
        let mut votes: Vec<(u64, u32)> = Vec::new();
        let mut asked = 0;
        for distance in 1..d.extent {
            for (steps, other) in [
                (
                    distance as i64,
                    position.checked_add(distance).filter(|p| *p < d.extent),
                ),
                (-(distance as i64), position.checked_sub(distance)),
            ] {
                let Some(other) = other else { continue };
                let neighbour = element - position * d.stride + other * d.stride;
                let places = self.hits.of(neighbour);
                asked += u64::from(!places.is_empty());
                for seen in places {
                    let difference = i128::from(*seen) - i128::from(place);
                    if difference % i128::from(steps) != 0 {
                        continue;
                    }
                    let Ok(stride) = u64::try_from(difference / i128::from(steps)) else {
                        continue;
                    };
                    if stride < self.size() || stride % self.size() != 0 {
                        continue;
                    }
                    match votes.iter().position(|(s, _)| *s == stride) {
                        Some(known) => votes[known].1 += 1,
                        None if votes.len() < 256 => votes.push((stride, 1)),
                        None => {}
                    }
                }
            }
            if asked >= NEIGHBOURS {
                break;
            }
        }
        votes.sort_by_key(|(stride, count)| (std::cmp::Reverse(*count), *stride));
        votes.truncate(STRIDES);
        votes.into_iter().map(|(stride, _)| stride).collect()
    }

    /// The element after a block of known layout gives the next stride; the block repeats while memory agrees.
    fn tiled(&self) -> Vec<Piece> {
        let mut out = Vec::new();
        for place in self.hits.of(0) {
            let mut axes = Vec::new();
            if self.grow(*place, 1, &mut axes) {
                axes.reverse();
                out.push(Piece {
                    va: *place,
                    element: 0,
                    axes,
                });
            }
        }
        out
    }

    /// Extends axes from the first `block` elements to all; innermost axis first.
    fn grow(&self, base: u64, block: u64, axes: &mut Vec<Axis>) -> bool {
        if block == self.elements() {
            return true;
        }
        if axes.len() == AXES {
            return false;
        }
        let mut places: Vec<u64> = self
            .hits
            .of(block)
            .iter()
            .copied()
            .filter(|p| *p > base)
            .collect();
        places.sort_unstable();
        for place in places.into_iter().take(STRIDES) {
            let stride = place - base;
            let (Ok(element_stride), Ok(byte_stride)) =
                (u32::try_from(block), u32::try_from(stride))
            else {
                continue;
            };
            let most = self.elements() / block;
            let mut repeats = 1;
            while repeats < most && self.block_holds(base + repeats * stride, repeats * block, axes)
            {
                repeats += 1;
            }
            // It may go on by coincidence: also try shorter repetitions that divide the rest.
            for extent in (2..=repeats)
                .rev()
                .filter(|e| self.elements().is_multiple_of(block * e))
                .take(4)
            {
                axes.push(Axis {
                    extent: extent as u32,
                    element_stride,
                    byte_stride,
                });
                if self.grow(base, block * extent, axes) {
                    return true;
                }
                axes.pop();
            }
        }
        false
    }

    /// Innermost axis first.
    fn block_holds(&self, va: u64, element: u64, axes: &[Axis]) -> bool {
        let axes: Vec<Axis> = axes.iter().rev().copied().collect();
        let Ok(element) = u32::try_from(element) else {
            return false;
        };
        self.holds(&Piece { va, element, axes })
    }

    /// Also checks who wrote the elements.
    fn holds(&self, piece: &Piece) -> bool {
        let dtype = self.tensor.dtype();
        let size = dtype.bytes();
        let mut index = vec![0u32; piece.axes.len()];
        let (mut element, mut va) = (u64::from(piece.element), piece.va);
        let mut page: Option<(u64, &[u8; PAGE_SIZE])> = None;
        loop {
            let start = va - va % PAGE_SIZE as u64;
            let bytes = match page {
                Some((known, bytes)) if known == start => bytes,
                _ => {
                    if !self.written_by_role(start) {
                        return false;
                    }
                    let bytes = self.memory.page(self.moment, start);
                    page = Some((start, bytes));
                    bytes
                }
            };
            let offset = (va - start) as usize;
            let Some(at) = bytes.get(offset..offset + size) else {
                return false;
            };
            if element_bits(at, dtype) != self.tensor.bits(element as usize) {
                return false;
            }
            let mut axis = piece.axes.len();
            loop {
                let Some(i) = axis.checked_sub(1) else {
                    return true;
                };
                let a = piece.axes[i];
                index[i] += 1;
                if index[i] < a.extent {
                    element += u64::from(a.element_stride);
                    let Some(next) = va.checked_add(u64::from(a.byte_stride)) else {
                        return false;
                    };
                    va = next;
                    break;
                }
                let back = u64::from(a.extent - 1);
                element -= back * u64::from(a.element_stride);
                va -= back * u64::from(a.byte_stride);
                index[i] = 0;
                axis = i;
            }
        }
    }

    fn written_by_role(&self, page: u64) -> bool {
        let last = self.memory.last_change(self.moment, page);
        match self.role {
            Role::Input | Role::Weight | Role::State => last.is_some_and(|m| !m.is_after()),
            // No dump has pages that keep their values.
            Role::Output | Role::Intermediate => last.is_some(),
        }
    }

    /// First and last element outside all layouts, and the first one's address.
    ///
    /// Single patterns may occur by chance; sixteen bytes of neighbours in a row do not.
    pub(crate) fn leftover(&self, copies: &[Piece]) -> Option<(u64, u64, u64)> {
        let size = self.size();
        let enough = (16 / size).max(2);
        let explained =
            |element, place| copies.iter().any(|c| address_of(c, element) == Some(place));
        for (element, places) in self.hits.iter() {
            for place in places {
                if explained(element, *place) {
                    continue;
                }
                let mut last = element;
                while self
                    .hits
                    .of(last + 1)
                    .iter()
                    .any(|p| *p == place + (last + 1 - element) * size && !explained(last + 1, *p))
                {
                    last += 1;
                }
                if last + 1 - element >= enough {
                    return Some((element, last, *place));
                }
            }
        }
        None
    }

    pub(crate) fn describe(&self) -> String {
        let mut out: Vec<String> = Vec::new();
        for (element, places) in self.hits.iter().take(4) {
            let at: Vec<String> = places.iter().take(3).map(|p| format!("{p:#x}")).collect();
            let index = self.tensor.coordinates(element as usize);
            out.push(format!("element {index:?} at {}", at.join(" and ")));
        }
        out.join(", ")
    }
}

/// The piece starts with element 0.
fn address_of(piece: &Piece, element: u64) -> Option<u64> {
    let mut axes: Vec<&Axis> = piece.axes.iter().collect();
    axes.sort_by_key(|a| std::cmp::Reverse(a.element_stride));
    let (mut rest, mut va) = (element, piece.va);
    for axis in axes {
        let stride = u64::from(axis.element_stride).max(1);
        let steps = (rest / stride).min(u64::from(axis.extent) - 1);
        rest -= steps * stride;
        va = va.checked_add(steps * u64::from(axis.byte_stride))?;
    }
    (rest == 0).then_some(va)
}

#[cfg(test)]
mod tests {
    use super::super::scan::{Keys, scan};
    use super::*;
    use gpureplay_tensors::{ElementType, Layout, LayoutError, tag_tensor};

    fn axis(extent: u32, element_stride: u32, byte_stride: u32) -> Axis {
        Axis {
            extent,
            element_stride,
            byte_stride,
        }
    }

    fn search(tensor: &Tensor, pieces: &[Piece], role: Role) -> Vec<Piece> {
        search_with(tensor, pieces, role, &Keys::new(tensor))
    }

    fn search_with(tensor: &Tensor, pieces: &[Piece], role: Role, keys: &Keys) -> Vec<Piece> {
        let layout = Layout {
            dtype: tensor.dtype(),
            pieces: pieces.to_vec(),
        };
        let (low, high) = layout.address_range().unwrap();
        let first = low - low % PAGE_SIZE as u64;
        let mut bytes = vec![0; (high - first).next_multiple_of(PAGE_SIZE as u64) as usize];
        layout
            .scatter(tensor, |va, b| {
                let at = (va - first) as usize;
                bytes[at..at + b.len()].copy_from_slice(b);
                Ok::<(), LayoutError>(())
            })
            .unwrap();
        let mut memory = Memory::default();
        let moment = if role == Role::Output {
            Moment::after(0)
        } else {
            Moment::before(0)
        };
        for (i, page) in bytes.chunks_exact(PAGE_SIZE).enumerate() {
            memory.set(
                moment,
                first + (i * PAGE_SIZE) as u64,
                Some(page.try_into().unwrap()),
            );
        }
        let hits = scan(&memory, moment, memory.changed(moment), keys);
        let search = Search {
            memory: &memory,
            moment,
            tensor,
            hits: &hits,
            role,
        };
        let found = search.layouts();
        if !found.is_empty() {
            assert_eq!(search.leftover(&found), None);
        }
        found
    }

    fn piece(va: u64, axes: &[Axis]) -> Piece {
        Piece {
            va,
            element: 0,
            axes: axes.to_vec(),
        }
    }

    #[test]
    fn dense_padded_and_permuted_layouts_are_found() {
        for dtype in [
            ElementType::F32,
            ElementType::F16,
            ElementType::U8,
            ElementType::I32,
            ElementType::F64,
        ] {
            let t = tag_tensor(dtype, &[3, 24, 40], 1).unwrap();
            let s = dtype.size();
            let dense = piece(
                0x1_0040,
                &[axis(3, 960, 960 * s), axis(24, 40, 40 * s), axis(40, 1, s)],
            );
            let padded = piece(
                0x1_0040,
                &[axis(3, 960, 2000 * s), axis(24, 40, 64 * s), axis(40, 1, s)],
            );
            // First dimension innermost, as NHWC from NCHW; then the second.
            let channels = piece(
                0x1_0040,
                &[axis(3, 960, s), axis(24, 40, 120 * s), axis(40, 1, 3 * s)],
            );
            let columns = piece(
                0x1_0040,
                &[axis(3, 960, 960 * s), axis(24, 40, s), axis(40, 1, 24 * s)],
            );
            for (name, layout) in [
                ("dense", dense),
                ("padded", padded),
                ("channels", channels),
                ("columns", columns),
            ] {
                // Small types need longer lines.
                if name == "channels" && s < 4 {
                    continue;
                }
                assert_eq!(
                    search(&t, std::slice::from_ref(&layout), Role::Input),
                    [layout],
                    "{dtype:?} {name}"
                );
            }
        }
    }

    #[test]
    fn all_copies_are_found() {
        let t = tag_tensor(ElementType::F32, &[16, 16], 1).unwrap();
        let a = piece(0x1_0000, &[axis(16, 16, 64), axis(16, 1, 4)]);
        let b = piece(0x1_2010, &[axis(16, 16, 80), axis(16, 1, 4)]);
        assert_eq!(search(&t, &[a.clone(), b.clone()], Role::Input), [a, b]);
    }

    #[test]
    fn tiles_are_found() {
        let t = tag_tensor(ElementType::F32, &[8, 12], 1).unwrap();
        // Tiles of 4 x 4, three in a row.
        let tiled = piece(
            0x1_0000,
            &[
                axis(2, 48, 192),
                axis(4, 12, 16),
                axis(3, 4, 64),
                axis(4, 1, 4),
            ],
        );
        assert_eq!(
            search(&t, std::slice::from_ref(&tiled), Role::Input),
            [tiled]
        );
    }

    #[test]
    fn outputs_with_zeros_and_repeated_values_are_found() {
        let values = tag_tensor(ElementType::F32, &[20, 30], 3).unwrap();
        let relu =
            Tensor::from_fn(ElementType::F32, &[20, 30], |i| values.value(i).max(0.0)).unwrap();
        let padded = piece(0x2_0080, &[axis(20, 30, 160), axis(30, 1, 4)]);
        assert_eq!(
            search(&relu, std::slice::from_ref(&padded), Role::Output),
            [padded]
        );
    }

    #[test]
    fn a_sample_of_the_patterns_finds_large_tensors() {
        for dtype in [ElementType::F32, ElementType::F16] {
            let t = tag_tensor(dtype, &[64, 16, 3, 9], 1).unwrap();
            let size = dtype.bytes() as u32;
            let padded = piece(
                0x4_0040,
                &[
                    axis(64, 432, 576 * size),
                    axis(16, 27, 36 * size),
                    axis(3, 9, 12 * size),
                    axis(9, 1, size),
                ],
            );
            let keys = Keys::sampled(&t).unwrap();
            assert_eq!(
                search_with(&t, std::slice::from_ref(&padded), Role::Weight, &keys),
                [padded]
            );
        }
        assert!(Keys::sampled(&tag_tensor(ElementType::F32, &[64], 1).unwrap()).is_none());
    }

    #[test]
    fn a_tensor_of_equal_values_is_not_found() {
        let ones = Tensor::from_fn(ElementType::F32, &[64], |_| 1.0).unwrap();
        assert_eq!(
            search(&ones, &[piece(0x1_0000, &[axis(64, 1, 4)])], Role::Input),
            []
        );
    }
}
