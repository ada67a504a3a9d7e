// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings: open, list tensors and layers, close.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;

#[cfg(not(feature = "cuda"))]
use crate::no_cuda::{from_bytes, open};
#[cfg(feature = "cuda")]
use gpureplay_cuda_replay::embed::{from_bytes, open};
use gpureplay_library::{Recorded, Trust, layer_named};

use crate::guard::{Failure, answered, guarded, handle, put, text};
use crate::types::{Status, TensorDescription};

/// A verified recording. Threads may share it.
pub struct RecordingHandle {
    pub(crate) recording: Box<dyn Recorded>,
    tensors: Vec<CString>,
    layers: Vec<CString>,
}

/// # Safety
/// `recording` is null or points to a pointer.
unsafe fn hand_over(
    recording: *mut *mut RecordingHandle,
    open: impl FnOnce() -> Result<Box<dyn Recorded>, Failure>,
) -> Result<(), Failure> {
    if recording.is_null() {
        return Err(Failure::usage("recording is a null pointer"));
    }
    let opened = open()?;
    // Names in a recording are printable ASCII.
    let name = |name: &String| CString::new(name.as_str()).unwrap_or_default();
    let tensors = opened.tensors().iter().map(|t| name(&t.name)).collect();
    let layers = opened.layers().iter().map(|l| name(&l.name)).collect();
    let opened = Box::new(RecordingHandle {
        recording: opened,
        tensors,
        layers,
    });
    // SAFETY: our contract.
    unsafe { put(recording, Box::into_raw(opened), "recording") }
}

/// Reads and verifies a directory with a recording.gpr, such a file, a pack, or a recording of a CUDA run (DIR, or
/// DIR#runK of several). Touches no device.
///
/// # Safety
/// `path` is a string; `recording` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_open(
    path: *const c_char,
    recording: *mut *mut RecordingHandle,
) -> Status {
    guarded(|| {
        // SAFETY: our contract.
        let path = unsafe { text(path, "path") }?;
        // SAFETY: our contract.
        unsafe { hand_over(recording, || Ok(open(Path::new(path), &Trust::default())?)) }
    })
}

/// As gpureplay_open, but demands a signature by `key` with a counter of at least `minimum_counter`. The key is 64
/// hexadecimal digits, the text of a PEM file, or the path of one.
///
/// # Safety
/// `path` and `key` are strings; `recording` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_open_signed(
    path: *const c_char,
    key: *const c_char,
    minimum_counter: u64,
    recording: *mut *mut RecordingHandle,
) -> Status {
    guarded(|| {
        // SAFETY: our contract.
        let (path, key) = unsafe { (text(path, "path")?, text(key, "key")?) };
        let trust = Trust {
            minimum_counter,
            ..Trust::with_key(key)?
        };
        // SAFETY: our contract.
        unsafe { hand_over(recording, || Ok(open(Path::new(path), &trust)?)) }
    })
}

/// Verifies a recording or a pack in memory. The bytes are copied.
///
/// # Safety
/// `data` points to `bytes` bytes; `recording` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_open_bytes(
    data: *const c_void,
    bytes: usize,
    recording: *mut *mut RecordingHandle,
) -> Status {
    guarded(|| {
        if data.is_null() || isize::try_from(bytes).is_err() {
            return Err(Failure::usage(
                "data is a null pointer, or larger than memory",
            ));
        }
        // SAFETY: our contract; the size is one that memory can have.
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
        // SAFETY: our contract.
        unsafe { hand_over(recording, || Ok(from_bytes(data.to_vec())?)) }
    })
}

/// Closes a recording. Open sessions keep what they need. Null is ignored.
///
/// # Safety
/// `recording` comes from gpureplay_open and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_close(recording: *mut RecordingHandle) {
    guarded(|| {
        if !recording.is_null() {
            // SAFETY: made by `Box::into_raw`, and our contract.
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
pub unsafe extern "C" fn gpureplay_tensor_count(recording: *const RecordingHandle) -> usize {
    answered(0, || {
        // SAFETY: our contract.
        unsafe { recording.as_ref() }.map_or(0, |it| it.tensors.len())
    })
}

/// Describes a tensor, by its index from 0.
///
/// # Safety
/// `recording` comes from gpureplay_open; `tensor` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_tensor(
    recording: *const RecordingHandle,
    index: usize,
    tensor: *mut TensorDescription,
) -> Status {
    guarded(|| {
        // SAFETY: our contract.
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
        // SAFETY: our contract.
        unsafe { put(tensor, description, "tensor") }
    })
}

/// Number of layers for gpureplay_run_layers; 0 for a null pointer.
///
/// # Safety
/// `recording` comes from gpureplay_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_layer_count(recording: *const RecordingHandle) -> usize {
    answered(0, || {
        // SAFETY: our contract.
        unsafe { recording.as_ref() }.map_or(0, |it| it.layers.len())
    })
}

/// Layer name by index from 0; null if there is none. Valid until the recording is closed.
///
/// # Safety
/// `recording` comes from gpureplay_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_layer_name(
    recording: *const RecordingHandle,
    index: usize,
) -> *const c_char {
    answered(std::ptr::null(), || {
        // SAFETY: our contract.
        let name = unsafe { recording.as_ref() }.and_then(|it| it.layers.get(index));
        name.map_or(std::ptr::null(), |name| name.as_ptr())
    })
}

/// Index of a layer for gpureplay_run_layers, by name or by number from 1 as in `gpureplay info`.
///
/// # Safety
/// `recording` comes from gpureplay_open; `name` is a string; `index` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_layer(
    recording: *const RecordingHandle,
    name: *const c_char,
    index: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: our contract.
        let it = unsafe { handle(recording, "recording") }?;
        // SAFETY: our contract.
        let name = unsafe { text(name, "name") }?;
        let found = layer_named(it.recording.layers(), name)?;
        // SAFETY: our contract.
        unsafe { put(index, found, "index") }
    })
}
