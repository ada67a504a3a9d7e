// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings: open, list tensors and layers, close.

use std::ffi::{CString, c_char};

use gpureplay_library::Recording;

use crate::guard::{Failure, guarded, handle, put, text};
use crate::types::{Status, TensorDescription};

/// A recording that was read and verified. Threads may share it.
pub struct RecordingHandle {
    pub(crate) recording: Recording,
    tensors: Vec<CString>,
    layers: Vec<CString>,
}

/// Reads and verifies a recording: a directory with a recording.gpr, or such a file. Nothing touches a device.
///
/// # Safety
/// `path` is a string; `recording` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_open(
    path: *const c_char,
    recording: *mut *mut RecordingHandle,
) -> Status {
    guarded(|| {
        // SAFETY: this function's own contract.
        let path = unsafe { text(path, "path") }?;
        if recording.is_null() {
            return Err(Failure::usage("recording is a null pointer"));
        }
        let opened = Recording::open(path)?;
        // Names in a recording are printable ASCII.
        let name = |name: &String| CString::new(name.as_str()).unwrap_or_default();
        let tensors = opened.tensors().iter().map(|t| name(&t.name)).collect();
        let layers = opened.layers().iter().map(|l| name(&l.name)).collect();
        let opened = Box::new(RecordingHandle {
            recording: opened,
            tensors,
            layers,
        });
        // SAFETY: this function's own contract.
        unsafe { put(recording, Box::into_raw(opened), "recording") }
    })
}

/// Closes a recording. Sessions that are open keep what they need. Null is ignored.
///
/// # Safety
/// `recording` comes from gpureplay_open and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_close(recording: *mut RecordingHandle) {
    guarded(|| {
        if !recording.is_null() {
            // SAFETY: made by `Box::into_raw`, and this function's own contract.
            drop(unsafe { Box::from_raw(recording) });
        }
        Ok(())
    });
}

/// Number of tensors; 0 for a null pointer.
///
/// # Safety
/// `recording` comes from gpureplay_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_io_count(recording: *const RecordingHandle) -> usize {
    // SAFETY: this function's own contract.
    unsafe { recording.as_ref() }.map_or(0, |it| it.tensors.len())
}

/// Describes a tensor, by its index from 0.
///
/// # Safety
/// `recording` comes from gpureplay_open; `tensor` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_io(
    recording: *const RecordingHandle,
    index: usize,
    tensor: *mut TensorDescription,
) -> Status {
    guarded(|| {
        // SAFETY: this function's own contract.
        let it = unsafe { handle(recording, "recording") }?;
        let known = it.recording.tensors().get(index).zip(it.tensors.get(index));
        let Some((info, name)) = known else {
            return Err(Failure::usage(format!(
                "tensor {index}: the recording has {}",
                it.tensors.len()
            )));
        };
        let mut shape = [0; 6];
        for (slot, extent) in shape.iter_mut().zip(&info.shape) {
            *slot = *extent;
        }
        let description = TensorDescription {
            name: name.as_ptr(),
            kind: info.kind.into(),
            element: info.dtype.into(),
            bytes: info.bytes,
            rank: info.shape.len(),
            shape,
        };
        // SAFETY: this function's own contract.
        unsafe { put(tensor, description, "tensor") }
    })
}

/// Number of layers, the parts that gpureplay_run_layers runs; 0 for a null pointer.
///
/// # Safety
/// `recording` comes from gpureplay_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_layer_count(recording: *const RecordingHandle) -> usize {
    // SAFETY: this function's own contract.
    unsafe { recording.as_ref() }.map_or(0, |it| it.layers.len())
}

/// Name of a layer, by its index from 0; null if there is none. Valid until the recording is closed.
///
/// # Safety
/// `recording` comes from gpureplay_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_layer_name(
    recording: *const RecordingHandle,
    index: usize,
) -> *const c_char {
    // SAFETY: this function's own contract.
    let name = unsafe { recording.as_ref() }.and_then(|it| it.layers.get(index));
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}
