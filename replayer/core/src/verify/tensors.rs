// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for tensors.

use gpureplay_format::layout::{AxisEntry, PieceEntry, TENSOR_EXTERNAL, TensorEntry};
use gpureplay_format::{ElementType, MAX_AXES, MAX_RANK, RegionKind, Section, TensorKind};

use super::{Checker, Rule};

impl Checker<'_, '_> {
    #[inline(never)]
    pub(super) fn check_tensors(&mut self) -> Result<(), Rule> {
        self.section = Section::Tensors;
        let recording = self.recording;
        let (mut pieces, mut axes) = (0u32, 0u32);
        for (index, tensor) in (0..).zip(recording.tensors()) {
            self.index = index;
            let element = ElementType::from_code(tensor.element.into());
            let sound = self.shape_is_sound(tensor);
            self.value = tensor.element.into();
            let (Some(element), Some(bytes), true) =
                (element, recording.tensor_bytes(tensor), sound)
            else {
                return Err(Rule::TensorShape);
            };
            let elements = bytes / element.size();
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
                let Some(loops) = loops else {
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
        rank <= MAX_RANK
            && TensorKind::from_code(tensor.kind.into()).is_some()
            && tensor.flags & !TENSOR_EXTERNAL == 0
            && self.recording.has_name(tensor.name.get())
            && tensor
                .shape
                .iter()
                .enumerate()
                .all(|(at, extent)| (extent.get() != 0) == (at < rank))
    }

    /// Returns visited elements.
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
        // At least the visited elements: a bounded span cannot overflow the product.
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
        // `size` is a power of two.
        let aligned = strides & (size - 1) == 0;
        self.ensure(aligned && data, Rule::TensorRegion, va)?;
        Ok(visited)
    }
}

/// Length of a loop nest in elements or bytes. Without overlap: smaller movements end within each axis's extent.
#[inline(never)]
fn span(axes: &[AxisEntry], size: u64, bytes: bool) -> Option<u64> {
    let stride = |axis: &AxisEntry| {
        u64::from(if bytes {
            axis.byte_stride.get()
        } else {
            axis.element_stride.get()
        })
    };
    let mut all = size;
    for axis in axes {
        let extent = u64::from(axis.extent.get());
        let reach = extent.checked_sub(1)?.wrapping_mul(stride(axis));
        let mut below = size;
        for other in axes {
            if stride(other) <= stride(axis) {
                // An extent of 0 ends the loop outside.
                let steps = other.extent.get().wrapping_sub(1);
                below = below.saturating_add(u64::from(steps).wrapping_mul(stride(other)));
            }
        }
        if extent > 1 && below > reach + stride(axis) {
            return None;
        }
        all = all.checked_add(reach)?;
    }
    Some(all)
}
