// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for tensors.

use gpureplay_format::layout::{
    AxisEntry, PieceEntry, TENSOR_EXTERNAL, TENSOR_QUANTISED, TensorEntry,
};
use gpureplay_format::{ElementType, MAX_AXES, MAX_RANK, RegionKind, Section, TensorKind};

use super::{Checker, Rule};

impl Checker<'_, '_> {
    pub(super) fn check_tensors(&mut self) -> Result<(), Rule> {
        self.section = Section::Tensors;
        let recording = self.recording;
        let (mut pieces, mut axes) = (0u32, 0u32);
        for (index, tensor) in (0..).zip(recording.tensors()) {
            self.index = index;
            let element = ElementType::from_code(tensor.element.into());
            let sound = self.shape_is_sound(tensor) && recording.tensor_bytes(tensor).is_some();
            self.value = tensor.element.into();
            let Some(element) = element.filter(|_| sound) else {
                return Err(Rule::TensorShape);
            };
            let elements = recording.elements(tensor).unwrap_or(0);
            let mine = recording.pieces(tensor).unwrap_or(&[]);
            self.ensure(
                tensor.first_piece == pieces && !mine.is_empty(),
                Rule::TensorTables,
                pieces.into(),
            )?;
            pieces = pieces.wrapping_add(tensor.pieces.get());
            let mut covered = 0u64;
            for piece in mine {
                let first = piece.first_axis.get();
                let loops = recording.axes(piece);
                self.value = first.into();
                let loops = loops.filter(|loops| first == axes && loops.len() <= MAX_AXES);
                let Some(loops) = loops.filter(|_| piece.zero == 0) else {
                    return Err(Rule::TensorTables);
                };
                axes = axes.wrapping_add(piece.axes.get());
                covered += self.check_piece(piece, loops, element, elements)?;
            }
            self.ensure(covered >= elements.into(), Rule::TensorElements, covered)?;
        }
        self.section = Section::Pieces;
        let all = pieces as usize == recording.piece_entries().len()
            && axes as usize == recording.axis_entries().len();
        self.ensure(all, Rule::TensorTables, pieces.into())
    }

    fn shape_is_sound(&self, tensor: &TensorEntry) -> bool {
        let rank = usize::from(tensor.rank);
        let name = self.recording.name_bytes(tensor.name.get());
        rank <= MAX_RANK
            && TensorKind::from_code(tensor.kind.into()).is_some()
            && tensor.flags & !(TENSOR_QUANTISED | TENSOR_EXTERNAL) == 0
            && name.is_some_and(|name| !name.is_empty())
            && tensor
                .shape
                .iter()
                .enumerate()
                .all(|(at, extent)| (extent.get() != 0) == (at < rank))
    }

    /// Checks one loop nest and returns how many elements it visits.
    fn check_piece(
        &mut self,
        piece: &PieceEntry,
        axes: &[AxisEntry],
        element: ElementType,
        elements: u32,
    ) -> Result<u64, Rule> {
        let va = piece.va.get();
        self.value = va;
        let size = u64::from(element.size());
        let (Some(element_span), Some(byte_span)) = (span(axes, 1, false), span(axes, size, true))
        else {
            return Err(Rule::TensorOverlap);
        };
        // The span is at least the number of visited elements, so the product cannot overflow once the span is bounded.
        let inside = u64::from(piece.element.get()).saturating_add(element_span) <= elements.into();
        self.ensure(inside, Rule::TensorElements, va)?;
        let mut visited = 1u64;
        let mut strides = va;
        for axis in axes {
            visited = visited.wrapping_mul(axis.extent.get().into());
            strides |= u64::from(axis.byte_stride.get());
        }
        let region = self.recording.region_of(va, byte_span);
        let data = region.is_some_and(|region| region.kind == RegionKind::Data.code());
        // Sizes of elements are powers of two.
        let aligned = strides & (size - 1) == 0;
        self.ensure(aligned && data, Rule::TensorRegion, va)?;
        Ok(visited)
    }
}

/// Distance from the first to the end of the last element (or byte) of a loop nest, when no two steps overlap. Takes
/// the axes by ascending stride: each stride must be at least the span of all smaller ones.
#[inline(never)]
fn span(axes: &[AxisEntry], size: u64, bytes: bool) -> Option<u64> {
    let stride = |axis: &AxisEntry| {
        if bytes {
            axis.byte_stride.get()
        } else {
            axis.element_stride.get()
        }
    };
    let mut span = size;
    let mut taken = 0u32;
    for _ in axes {
        let (at, axis) = (0u32..)
            .zip(axes)
            .filter(|(at, _)| taken & (1 << at) == 0)
            .min_by_key(|(_, axis)| u64::from(stride(axis)) << 32 | u64::from(axis.extent.get()))?;
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
