// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies tensors into and out of GPU memory.

use gpureplay_format::layout::{AxisEntry, TENSOR_EXTERNAL};
use gpureplay_format::{ElementType, MAX_AXES, TensorKind};

use super::{Session, Tensors};
use crate::error::{DeviceError, ErrorKind, NO_ACTION, ReplayError};
use crate::family::{Failed, Family};
use crate::gpu::Gpu;

/// Contiguous in the dense array and in GPU memory.
struct Run {
    /// Bytes into the dense array.
    offset: usize,
    va: u64,
    /// Bytes.
    length: usize,
}

enum Side<'b> {
    In(&'b [u8]),
    Out(&'b mut [u8]),
}

impl Side<'_> {
    fn len(&self) -> usize {
        match self {
            Side::In(bytes) => bytes.len(),
            Side::Out(bytes) => bytes.len(),
        }
    }

    /// `None`: outside of the caller's bytes.
    fn copy(&mut self, gpu: &mut impl Gpu, run: &Run) -> Option<Result<(), DeviceError>> {
        let end = run.offset.checked_add(run.length)?;
        Some(match self {
            Side::In(bytes) => gpu.write_memory(run.va, bytes.get(run.offset..end)?),
            Side::Out(bytes) => gpu.read_memory(run.va, bytes.get_mut(run.offset..end)?),
        })
    }
}

impl<G: Gpu, F: Family> Session<'_, '_, G, F> {
    /// Current value, outside of a run.
    ///
    /// # Errors
    /// No such tensor (0 bytes), another size, or the device fails.
    pub fn read_tensor(&mut self, tensor: u32, bytes: &mut [u8]) -> Result<(), ReplayError> {
        let result = self.copy(tensor, Side::Out(bytes));
        self.outside_of_actions(result)
    }

    /// Errors outside of a run need no reset.
    fn outside_of_actions(&self, result: Result<(), Failed>) -> Result<(), ReplayError> {
        let (submits, kind) = (self.submits, self.driver.error);
        result.map_err(|Failed| ReplayError {
            action: NO_ACTION,
            submits,
            kind,
        })
    }

    pub(super) fn bind_input(
        &mut self,
        tensor: u32,
        tensors: &mut dyn Tensors,
    ) -> Result<(), Failed> {
        if let Some(bytes) = tensors.input(tensor) {
            return self.copy(tensor, Side::In(bytes));
        }
        let entry = self.recording.recording().tensors().get(tensor as usize);
        let optional = entry.is_some_and(|entry| {
            entry.kind != TensorKind::Input.code() && entry.flags & TENSOR_EXTERNAL == 0
        });
        if optional {
            Ok(())
        } else {
            self.driver.fail(ErrorKind::Unbound { tensor })
        }
    }

    pub(super) fn bind_output(
        &mut self,
        tensor: u32,
        tensors: &mut dyn Tensors,
    ) -> Result<(), Failed> {
        match tensors.output(tensor) {
            Some(bytes) => self.copy(tensor, Side::Out(bytes)),
            None => Ok(()),
        }
    }

    fn copy(&mut self, tensor: u32, mut side: Side<'_>) -> Result<(), Failed> {
        let recording = self.recording.recording();
        let entry = recording.tensors().get(tensor as usize);
        let expected = entry
            .and_then(|entry| recording.tensor_bytes(entry))
            .unwrap_or(0);
        let found = side.len();
        let (Some(entry), true) = (entry, found == expected as usize) else {
            return self.driver.fail(ErrorKind::TensorSize {
                tensor,
                expected,
                found,
            });
        };
        let size = ElementType::from_code(entry.element.into()).map_or(1, ElementType::size);
        for piece in recording.pieces(entry).unwrap_or(&[]) {
            let (outer, length) = split_run(recording.axes(piece).unwrap_or(&[]), size);
            let mut steps = [0u32; MAX_AXES];
            let mut run = Run {
                offset: piece.element.get() as usize * size as usize,
                va: piece.va.get(),
                length,
            };
            loop {
                match side.copy(&mut self.driver.gpu, &run) {
                    Some(result) => self.driver.take(result)?,
                    None => return self.driver.fail(ErrorKind::Internal),
                }
                if !advance(&mut run, outer, &mut steps, size) {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Takes off a contiguous innermost axis; returns the others and the run's bytes.
fn split_run(axes: &[AxisEntry], size: u32) -> (&[AxisEntry], usize) {
    match axes.split_last() {
        Some((inner, outer)) if inner.element_stride == 1 && inner.byte_stride == size => {
            (outer, inner.extent.get() as usize * size as usize)
        }
        _ => (axes, size as usize),
    }
}

/// False after the last run.
fn advance(run: &mut Run, axes: &[AxisEntry], steps: &mut [u32; MAX_AXES], size: u32) -> bool {
    for (axis, step) in axes.iter().zip(steps).rev() {
        let element = (axis.element_stride.get() as usize).wrapping_mul(size as usize);
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
