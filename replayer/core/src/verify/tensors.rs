// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for tensors.

use gpureplay_format::layout::{
    AxisEntry, PieceEntry, TENSOR_EXTERNAL, TENSOR_QUANTISED, TensorEntry,
};
use gpureplay_format::{
    ElementType, MAX_AXES, MAX_RANK, Recording, RegionKind, Section, TensorKind,
};

use super::{Rule, Violation, require};

pub(super) fn check(recording: &Recording<'_>) -> Result<(), Violation> {
    let (mut pieces, mut axes) = (0u32, 0u32);
    for (index, tensor) in (0u32..).zip(recording.tensors()) {
        let check = |holds, rule, value| require(holds, rule, Section::Tensors, index, value);
        let element = ElementType::from_code(tensor.element.into());
        let bytes = recording.tensor_bytes(tensor);
        let elements = recording.elements(tensor).unwrap_or(0);
        let (Some(element), Some(_)) =
            (element, bytes.filter(|_| shape_is_sound(recording, tensor)))
        else {
            return check(false, Rule::TensorShape, tensor.element.into());
        };
        let first = tensor.first_piece.get();
        let mine = recording
            .pieces(tensor)
            .filter(|mine| first == pieces && !mine.is_empty());
        let Some(mine) = mine else {
            return check(false, Rule::TensorTables, first.into());
        };
        pieces = pieces.wrapping_add(tensor.pieces.get());
        let mut covered = 0u64;
        for piece in mine {
            let first = piece.first_axis.get();
            let loops = recording
                .axes(piece)
                .filter(|loops| first == axes && loops.len() <= MAX_AXES && piece.zero == 0);
            let Some(loops) = loops else {
                return check(false, Rule::TensorTables, first.into());
            };
            axes = axes.wrapping_add(piece.axes.get());
            covered += check_piece(recording, index, piece, loops, element, elements)?;
        }
        check(covered >= elements.into(), Rule::TensorElements, covered)?;
    }
    let all = pieces as usize == recording.piece_entries().len()
        && axes as usize == recording.axis_entries().len();
    require(all, Rule::TensorTables, Section::Pieces, pieces, 0)
}

fn shape_is_sound(recording: &Recording<'_>, tensor: &TensorEntry) -> bool {
    let rank = usize::from(tensor.rank);
    rank <= MAX_RANK
        && TensorKind::from_code(tensor.kind.into()).is_some()
        && tensor.flags & !(TENSOR_QUANTISED | TENSOR_EXTERNAL) == 0
        && recording
            .name_bytes(tensor.name.get())
            .is_some_and(|name| !name.is_empty())
        && tensor
            .shape
            .iter()
            .enumerate()
            .all(|(at, extent)| (extent.get() != 0) == (at < rank))
}

/// Checks one loop nest and returns how many elements it visits.
fn check_piece(
    recording: &Recording<'_>,
    tensor: u32,
    piece: &PieceEntry,
    axes: &[AxisEntry],
    element: ElementType,
    elements: u32,
) -> Result<u64, Violation> {
    let va = piece.va.get();
    let check = |holds, rule| require(holds, rule, Section::Tensors, tensor, va);
    let size = u64::from(element.size());
    let spans = (
        span(axes, 1, |axis| axis.element_stride.get()),
        span(axes, size, |axis| axis.byte_stride.get()),
    );
    let (Some(element_span), Some(byte_span)) = spans else {
        check(false, Rule::TensorOverlap)?;
        return Ok(0);
    };
    // The span is at least the number of visited elements, so the product cannot overflow once the span is bounded.
    let inside = u64::from(piece.element.get()).saturating_add(element_span) <= elements.into();
    check(inside, Rule::TensorElements)?;
    let mut visited = 1u64;
    let mut aligned = va.is_multiple_of(size);
    for axis in axes {
        visited = visited.saturating_mul(axis.extent.get().into());
        aligned &= u64::from(axis.byte_stride.get()).is_multiple_of(size);
    }
    let region = recording.region_of(va, byte_span);
    let data = region.is_some_and(|region| region.kind == RegionKind::Data.code());
    check(aligned && data, Rule::TensorRegion)?;
    Ok(visited)
}

/// Distance from the first to the end of the last element of a loop nest, when no two steps overlap. Takes the
/// axes by ascending stride: each stride must be at least the span of all smaller ones.
fn span(axes: &[AxisEntry], size: u64, stride: impl Fn(&AxisEntry) -> u32) -> Option<u64> {
    let mut span = size;
    let mut taken = 0u32;
    for _ in axes {
        let (at, axis) = (0u32..)
            .zip(axes)
            .filter(|(at, _)| taken & (1 << at) == 0)
            .min_by_key(|(_, axis)| (stride(axis), axis.extent.get()))?;
        taken |= 1 << at;
        let steps = u64::from(axis.extent.get()).checked_sub(1)?;
        if steps > 0 {
            let stride = u64::from(stride(axis));
            if stride < span {
                return None;
            }
            span = span.checked_add(steps.checked_mul(stride)?)?;
        }
    }
    Some(span)
}
