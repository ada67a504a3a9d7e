// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sessions: bind, run, read.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::sync::{Mutex, TryLockError};

use gpureplay_library::{ElementType as LibraryElement, Options, Replay, Tensor, TensorInfo};

use crate::guard::{Failure, guarded, handle, put, text};
use crate::recording::RecordingHandle;
use crate::types::{ElementType, RunTiming, SessionOptions, Status};

/// A recording on a device, for one thread at a time; another one gets an error.
pub struct SessionHandle(Mutex<Box<dyn Replay>>);

/// Opens a session; null options are the defaults. Fails if the GPU is not the recorded one, unless options allow
/// it.
///
/// # Safety
/// `recording` comes from gpureplay_open; `options` is null or points to options; `session` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_session_open(
    recording: *const RecordingHandle,
    options: *const SessionOptions,
    session: *mut *mut SessionHandle,
) -> Status {
    guarded(|| {
        // SAFETY: our contract.
        let recording = unsafe { handle(recording, "recording") }?;
        // SAFETY: our contract.
        let given = unsafe { options.as_ref() };
        let mut options = Options::default();
        if let Some(given) = given {
            options.model.threads = (given.threads != 0).then_some(given.threads as usize);
            options.model.verbose = u8::try_from(given.verbose).unwrap_or(u8::MAX);
            options.retries = given.retries;
            options.ignore_identity = given.any_gpu != 0;
            if !given.device.is_null() {
                // SAFETY: our contract.
                let device = unsafe { text(given.device, "device") }?;
                options.device = device.parse().map_err(Failure::usage)?;
            }
        }
        if session.is_null() {
            return Err(Failure::usage("session is a null pointer"));
        }
        let opened = recording.recording.replay(options)?;
        let opened = Box::new(SessionHandle(Mutex::new(opened)));
        // SAFETY: our contract.
        unsafe { put(session, Box::into_raw(opened), "session") }
    })
}

/// Closes a session and resets its GPU. Null is ignored.
///
/// # Safety
/// `session` comes from gpureplay_session_open and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_session_close(session: *mut SessionHandle) {
    guarded(|| {
        if !session.is_null() {
            // SAFETY: made by `Box::into_raw`, and our contract.
            drop(unsafe { Box::from_raw(session) });
        }
        Ok(())
    });
}

/// Runs `work` if no other thread uses the session.
///
/// # Safety
/// `session` is null or comes from gpureplay_session_open.
unsafe fn with(
    session: *const SessionHandle,
    work: impl FnOnce(&mut dyn Replay) -> Result<(), Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: our contract.
        let session = unsafe { handle(session, "session") }?;
        match session.0.try_lock() {
            Ok(mut session) => work(&mut **session),
            Err(TryLockError::WouldBlock) => Err(Failure::usage(
                "another thread uses this session; open one for each thread",
            )),
            Err(TryLockError::Poisoned(_)) => Err(Failure::usage(
                "an earlier call panicked in this session; close it and open another",
            )),
        }
    })
}

fn fits(name: &str, info: &TensorInfo, element: u32, bytes: usize) -> Result<(), Failure> {
    let Some(stated) = ElementType::from_number(element) else {
        return Err(Failure::usage(format!(
            "there is no element type {element}"
        )));
    };
    let stated = LibraryElement::from(stated);
    if stated != info.dtype {
        return Err(Failure::usage(format!(
            "expected elements of {} for {name} {info}, got {}",
            info.dtype.name(),
            stated.name()
        )));
    }
    if bytes != info.bytes {
        return Err(Failure::usage(format!(
            "{name} {info} has {} bytes, {bytes} were given",
            info.bytes
        )));
    }
    Ok(())
}

/// Gives an input, weight or intermediate a value for all later runs, or a state its value for the next run. The
/// bytes are copied. `element` is the data's gpureplay_element_type and must be the tensor's.
///
/// # Safety
/// `session` comes from gpureplay_session_open; `name` is a string; `data` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_bind(
    session: *mut SessionHandle,
    name: *const c_char,
    element: u32,
    data: *const c_void,
    bytes: usize,
) -> Status {
    let work = |session: &mut dyn Replay| {
        // SAFETY: our contract.
        let name = unsafe { text(name, "name") }?;
        if data.is_null() {
            return Err(Failure::usage("data is a null pointer"));
        }
        let info = session.tensor(name)?;
        fits(name, info, element, bytes)?;
        let (dtype, shape) = (info.dtype, info.shape.clone());
        // SAFETY: our contract; the size is that of a tensor of the recording.
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
        let value = Tensor::new(dtype, &shape, data.to_vec())
            .map_err(|error| Failure::usage(error.to_string()))?;
        Ok(session.bind(name, value)?)
    };
    // SAFETY: our contract.
    unsafe { with(session, work) }
}

/// Binds a file: .npy, .bin, .safetensors (FILE#NAME), .png or .jpg.
///
/// # Safety
/// `session` comes from gpureplay_session_open; `name` and `path` are strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_bind_file(
    session: *mut SessionHandle,
    name: *const c_char,
    path: *const c_char,
) -> Status {
    let work = |session: &mut dyn Replay| {
        // SAFETY: our contract.
        let (name, path) = unsafe { (text(name, "name")?, text(path, "path")?) };
        Ok(session.bind_file(name, Path::new(path))?)
    };
    // SAFETY: our contract.
    unsafe { with(session, work) }
}

/// Replaces every weight from a .safetensors file, or a directory with a NAME.npy for each.
///
/// # Safety
/// `session` comes from gpureplay_session_open; `path` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_bind_weights(
    session: *mut SessionHandle,
    path: *const c_char,
) -> Status {
    // SAFETY: our contract.
    unsafe {
        with(session, |session| {
            Ok(session.bind_weights(Path::new(text(path, "path")?))?)
        })
    }
}

/// Takes a value away: weights and states get the recording's, intermediates their layer's.
///
/// # Safety
/// `session` comes from gpureplay_session_open; `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_unbind(
    session: *mut SessionHandle,
    name: *const c_char,
) -> Status {
    // SAFETY: our contract.
    unsafe { with(session, |session| Ok(session.unbind(text(name, "name")?)?)) }
}

/// Resets every state to its value at opening.
///
/// # Safety
/// `session` comes from gpureplay_session_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_reset_states(session: *mut SessionHandle) -> Status {
    // SAFETY: our contract.
    unsafe { with(session, |session| Ok(session.reset_states()?)) }
}

/// Runs the whole network. The first run loads the recording.
///
/// # Safety
/// `session` comes from gpureplay_session_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_run(session: *mut SessionHandle) -> Status {
    // SAFETY: our contract.
    unsafe { with(session, |session| Ok(session.run()?)) }
}

/// Runs the layers from `first` up to and without `end`. A range that begins at 0 begins a new inference. Layers
/// between the one that ran last and `first` are skipped; what they would compute for these layers must be bound:
/// if not, the call fails and gpureplay_last_error names it.
///
/// # Safety
/// `session` comes from gpureplay_session_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_run_layers(
    session: *mut SessionHandle,
    first: usize,
    end: usize,
) -> Status {
    // SAFETY: our contract.
    unsafe { with(session, |session| Ok(session.run_layers(first..end)?)) }
}

/// Whether layers may read what was neither computed nor bound (1) or not (0, the default): they find the
/// recording's own memory.
///
/// # Safety
/// `session` comes from gpureplay_session_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_use_recorded_values(
    session: *mut SessionHandle,
    yes: c_int,
) -> Status {
    // SAFETY: our contract.
    unsafe {
        with(session, |session| {
            session.use_recorded_values(yes != 0);
            Ok(())
        })
    }
}

/// Keeps an intermediate's value when its layer ends, for gpureplay_read: later layers may reuse its memory.
///
/// # Safety
/// `session` comes from gpureplay_session_open; `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_keep(
    session: *mut SessionHandle,
    name: *const c_char,
) -> Status {
    // SAFETY: our contract.
    unsafe { with(session, |session| Ok(session.keep(text(name, "name")?)?)) }
}

/// Copies an output's value after a run, a state's for the next run, or any other tensor as it is in GPU memory
/// now. `element` is the expected gpureplay_element_type and must be the tensor's.
///
/// # Safety
/// `session` comes from gpureplay_session_open; `name` is a string; `data` points to room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_read(
    session: *mut SessionHandle,
    name: *const c_char,
    element: u32,
    data: *mut c_void,
    bytes: usize,
) -> Status {
    let work = |session: &mut dyn Replay| {
        // SAFETY: our contract.
        let name = unsafe { text(name, "name") }?;
        if data.is_null() {
            return Err(Failure::usage("data is a null pointer"));
        }
        let info = session.tensor(name)?;
        fits(name, info, element, bytes)?;
        let value = session.read(name)?;
        let from = value.bytes();
        // SAFETY: our contract; `from` is a tensor of the recording, whose size was compared with `bytes`.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), data.cast::<u8>(), from.len().min(bytes))
        };
        Ok(())
    };
    // SAFETY: our contract.
    unsafe { with(session, work) }
}

/// Times of the last run.
///
/// # Safety
/// `session` comes from gpureplay_session_open; `timing` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_timing(
    session: *mut SessionHandle,
    timing: *mut RunTiming,
) -> Status {
    // SAFETY: our contract.
    unsafe {
        with(session, |session| {
            put(timing, RunTiming::from(session.timing()), "timing")
        })
    }
}
