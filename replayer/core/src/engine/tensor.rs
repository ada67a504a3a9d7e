// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies tensors into and out of GPU memory.

use gpureplay_format::layout::AxisEntry;
use gpureplay_format::{ElementType, MAX_AXES};

use super::{Session, Tensors};
use crate::error::ErrorKind;
use crate::gpu::Gpu;

/// A stretch of a tensor that lies in one piece on both sides.
struct Run {
    /// Offset in the dense array in bytes.
    offset: usize,
    /// GPU virtual address.
    va: u64,
    /// Length in bytes.
    length: usize,
}

impl<G: Gpu> Session<'_, '_, G> {
    /// Replaces the value of a weight or an intermediate tensor, outside of a run.
    ///
    /// # Errors
    /// The tensor does not exist or has another size, or the device fails.
    pub fn write_tensor(
        &mut self,
        tensor: u32,
        bytes: &[u8],
    ) -> Result<(), crate::error::ReplayError> {
        let result = self.copy_in(tensor, bytes);
        self.outside_of_actions(result)
    }

    /// Reads the value that a tensor has in GPU memory now, outside of a run.
    ///
    /// # Errors
    /// The tensor does not exist or has another size, or the device fails.
    pub fn read_tensor(
        &mut self,
        tensor: u32,
        bytes: &mut [u8],
    ) -> Result<(), crate::error::ReplayError> {
        let result = self.copy_out(tensor, bytes);
        self.outside_of_actions(result)
    }

    /// A failed copy changes nothing about the GPU, so it is not reset.
    fn outside_of_actions(
        &self,
        result: Result<(), ErrorKind>,
    ) -> Result<(), crate::error::ReplayError> {
        result.map_err(|kind| crate::error::ReplayError {
            action: crate::error::NO_ACTION,
            submits: self.submits,
            kind,
        })
    }

    pub(super) fn bind_input(
        &mut self,
        tensor: u32,
        tensors: &mut impl Tensors,
    ) -> Result<(), ErrorKind> {
        if let Some(bytes) = tensors.input(tensor) {
            return self.copy_in(tensor, bytes);
        }
        let entry = self.recording.recording().tensors().get(tensor as usize);
        match entry {
            Some(entry) if !Self::is_required(entry.kind, entry.flags) => Ok(()),
            _ => Err(ErrorKind::Unbound { tensor }),
        }
    }

    pub(super) fn bind_output(
        &mut self,
        tensor: u32,
        tensors: &mut impl Tensors,
    ) -> Result<(), ErrorKind> {
        match tensors.output(tensor) {
            Some(bytes) => self.copy_out(tensor, bytes),
            None => Ok(()),
        }
    }

    fn copy_in(&mut self, tensor: u32, bytes: &[u8]) -> Result<(), ErrorKind> {
        self.for_each_run(tensor, bytes.len(), |gpu, run| {
            let part = bytes
                .get(run.offset..)
                .and_then(|rest| rest.get(..run.length));
            Ok(gpu.write_memory(run.va, part.ok_or(ErrorKind::Internal)?)?)
        })
    }

    fn copy_out(&mut self, tensor: u32, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        self.for_each_run(tensor, bytes.len(), |gpu, run| {
            let part = bytes
                .get_mut(run.offset..)
                .and_then(|rest| rest.get_mut(..run.length));
            Ok(gpu.read_memory(run.va, part.ok_or(ErrorKind::Internal)?)?)
        })
    }

    fn for_each_run(
        &mut self,
        tensor: u32,
        found: usize,
        mut copy: impl FnMut(&mut G, Run) -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let recording = self.recording.recording();
        let entry = recording
            .tensors()
            .get(tensor as usize)
            .ok_or(ErrorKind::Internal)?;
        let element = ElementType::from_code(entry.element.into()).ok_or(ErrorKind::Internal)?;
        let expected = recording.tensor_bytes(entry).ok_or(ErrorKind::Internal)?;
        if found != expected as usize {
            return Err(ErrorKind::TensorSize {
                tensor,
                expected,
                found,
            });
        }
        let size = element.size();
        for piece in recording.pieces(entry).unwrap_or(&[]) {
            let axes = recording.axes(piece).unwrap_or(&[]);
            let (outer, length) = split_run(axes, size);
            let mut steps = [0u32; MAX_AXES];
            let mut run = Run {
                offset: piece.element.get() as usize * size as usize,
                va: piece.va.get(),
                length,
            };
            loop {
                copy(&mut self.gpu, Run { ..run })?;
                if !advance(&mut run, outer, &mut steps, size) {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Takes the innermost axis off when its elements are neighbours on both sides; returns the other axes and the
/// length of a run in bytes.
fn split_run(axes: &[AxisEntry], size: u32) -> (&[AxisEntry], usize) {
    match axes.split_last() {
        Some((inner, outer)) if inner.element_stride == 1 && inner.byte_stride == size => {
            (outer, inner.extent.get() as usize * size as usize)
        }
        _ => (axes, size as usize),
    }
}

/// Moves to the next run; false after the last one.
fn advance(run: &mut Run, axes: &[AxisEntry], steps: &mut [u32; MAX_AXES], size: u32) -> bool {
    for (axis, step) in axes.iter().zip(steps).rev() {
        let element = axis.element_stride.get() as usize * size as usize;
        let bytes = u64::from(axis.byte_stride.get());
        *step += 1;
        if *step < axis.extent.get() {
            run.offset = run.offset.wrapping_add(element);
            run.va = run.va.wrapping_add(bytes);
            return true;
        }
        let back = *step - 1;
        run.offset = run.offset.wrapping_sub(element.wrapping_mul(back as usize));
        run.va = run.va.wrapping_sub(bytes.wrapping_mul(back.into()));
        *step = 0;
    }
    false
}
