// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of memory that belong to tensors.

use gpureplay_format::layout::TensorEntry;
use gpureplay_format::{ElementType, Recording as View};

use crate::footprint::Bytes;

const MOST_PLACES: usize = 1 << 24;

pub(crate) fn tensors(view: &View<'_>) -> Bytes {
    let mut all = Bytes::default();
    for tensor in view.tensors() {
        if !add(view, tensor, &mut all) {
            return all;
        }
    }
    all
}

/// False: too many places.
pub(crate) fn add(view: &View<'_>, tensor: &TensorEntry, all: &mut Bytes) -> bool {
    let size = ElementType::from_code(tensor.element.into()).map_or(1, ElementType::size);
    for piece in view.pieces(tensor).unwrap_or_default() {
        let axes = view.axes(piece).unwrap_or_default();
        let (outer, run) = match axes.split_last() {
            Some((last, outer)) if last.byte_stride.get() == size => {
                (outer, u64::from(last.extent.get()) * u64::from(size))
            }
            _ => (axes, size.into()),
        };
        let mut places = vec![piece.va.get()];
        for axis in outer {
            places = places
                .iter()
                .flat_map(|va| {
                    (0..axis.extent.get()).map(move |step| {
                        va.wrapping_add(u64::from(step) * u64::from(axis.byte_stride.get()))
                    })
                })
                .collect();
            if places.len() > MOST_PLACES {
                return false;
            }
        }
        for place in places {
            all.add(place, run);
        }
    }
    true
}
