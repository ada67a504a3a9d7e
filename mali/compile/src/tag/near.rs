// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds intermediate tensors by a reference's values, which agree up to rounding.

use gpureplay_format::Piece;
use gpureplay_tensors::{Element, ElementType, Layout, Tensor};
use gpureplay_trace::PAGE_SIZE;

use super::TagError;
use crate::capture::Capture;
use crate::pages::Moment;

/// Relative to the larger of the element's and the tensor's mean magnitude.
fn tolerance(dtype: ElementType) -> f64 {
    if dtype.bytes() < 4 { 5e-2 } else { 1e-3 }
}

const MAX_COPIES: usize = 4;

/// The first job that wrote all elements.
pub(super) fn find(
    capture: &Capture,
    name: &str,
    tensor: &Tensor,
) -> Result<Option<(usize, Vec<Piece>)>, TagError> {
    let values: Vec<f64> = tensor.values().collect();
    let mean = values.iter().map(|v| v.abs()).sum::<f64>() / values.len() as f64;
    let largest = (0..values.len()).max_by(|a, b| values[*a].abs().total_cmp(&values[*b].abs()));
    let Some(anchor) = largest.filter(|at| values[*at] != 0.0 && mean.is_finite()) else {
        return Err(TagError::Unsupported {
            name: name.to_string(),
            why: "an intermediate tensor that is all zero is everywhere".to_string(),
        });
    };
    let search = Search {
        capture,
        dtype: tensor.dtype(),
        values: &values,
        mean,
        layouts: layouts(tensor),
        anchor,
    };
    for job in 0..capture.jobs.len() {
        let pieces = search.after(job);
        if !pieces.is_empty() {
            return Ok(Some((job, pieces)));
        }
    }
    Ok(None)
}

struct Search<'a> {
    capture: &'a Capture,
    dtype: ElementType,
    values: &'a [f64],
    mean: f64,
    /// As if the tensor began at address 0.
    layouts: Vec<Piece>,
    anchor: usize,
}

/// Frameworks move channels to the front and to the back.
fn layouts(tensor: &Tensor) -> Vec<Piece> {
    let shape: Vec<u32> = tensor.shape().iter().map(|e| *e as u32).collect();
    let long: Vec<usize> = (0..shape.len()).filter(|d| shape[*d] > 1).collect();
    // More long dimensions stay in order.
    let orders = if long.len() <= 4 {
        permutations(&long)
    } else {
        vec![long]
    };
    let size = tensor.dtype().size();
    let layout = |order: Vec<usize>| {
        let mut strides = vec![size; shape.len()];
        let mut stride = size;
        for dimension in order.iter().rev() {
            strides[*dimension] = stride;
            stride = stride.saturating_mul(shape[*dimension]);
        }
        Piece::strided(&shape, &strides, 0)
    };
    orders.into_iter().map(layout).collect()
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for (at, first) in of.iter().enumerate() {
        let mut rest = of.to_vec();
        rest.remove(at);
        for mut tail in permutations(&rest) {
            tail.insert(0, *first);
            out.push(tail);
        }
    }
    out
}

impl Search<'_> {
    fn after(&self, job: usize) -> Vec<Piece> {
        let moment = Moment::after(job);
        let size = self.dtype.bytes();
        let mut found: Vec<Piece> = Vec::new();
        for va in self.capture.memory.changed(moment) {
            let page = self.capture.memory.page(moment, *va);
            for offset in (0..PAGE_SIZE).step_by(size) {
                let bits = super::element_bits(&page[offset..], self.dtype);
                if !self.close(self.dtype.value(bits), self.anchor) {
                    continue;
                }
                let at = *va + offset as u64;
                for layout in &self.layouts {
                    let Some(start) = at.checked_sub(offset_of(layout, self.anchor)) else {
                        continue;
                    };
                    let piece = Piece {
                        va: start,
                        ..layout.clone()
                    };
                    if found.iter().all(|known| known.va != start) && self.holds(moment, &piece) {
                        found.push(piece);
                        if found.len() == MAX_COPIES {
                            return found;
                        }
                    }
                }
            }
        }
        found
    }

    fn close(&self, found: f64, element: usize) -> bool {
        let expected = self.values[element];
        let scale = expected.abs().max(self.mean);
        (found - expected).abs() <= tolerance(self.dtype) * scale
    }

    fn holds(&self, moment: Moment, piece: &Piece) -> bool {
        let size = self.dtype.bytes();
        let layout = Layout {
            dtype: self.dtype,
            pieces: vec![piece.clone()],
        };
        let mut bytes = Vec::new();
        layout.runs().all(|run| {
            bytes.resize(run.count as usize * size, 0);
            let known = self.capture.memory.read(moment, run.address, &mut bytes);
            known
                && bytes.chunks_exact(size).enumerate().all(|(i, element)| {
                    let bits = super::element_bits(element, self.dtype);
                    self.close(self.dtype.value(bits), run.element as usize + i)
                })
        })
    }
}

fn offset_of(piece: &Piece, element: usize) -> u64 {
    let axes = piece.axes.iter();
    axes.map(|axis| {
        let index = element as u64 / u64::from(axis.element_stride) % u64::from(axis.extent);
        index * u64::from(axis.byte_stride)
    })
    .sum()
}
