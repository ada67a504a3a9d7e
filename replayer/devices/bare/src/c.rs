// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface: see `include/gpureplay_bare.h`.

use core::ffi::c_char;
use core::mem::MaybeUninit;

use mali_drive::{Session, verify};
use gpureplay_core::{DeviceError, ErrorKind, Limits, NO_ACTION, Options, ReplayError, Tensors, Workspace};
use gpureplay_format::Recording;

use crate::callbacks::Callbacks;
use crate::device::Device;

/// `gpureplay_session`; must not move until close: it points into itself.
pub struct State {
    recording: MaybeUninit<Recording<'static>>,
    session: MaybeUninit<Session<'static, 'static, Device>>,
    workspace: Workspace,
    open: bool,
}

/// Size of `gpureplay_session` in the header.
const SESSION_BYTES: usize = 36_864;
const _: () = assert!(size_of::<State>() <= SESSION_BYTES && align_of::<State>() <= 16);

/// `gpureplay_io` in C.
#[repr(C)]
pub struct Tensor {
    /// Index from [`gpureplay_find`].
    pub index: i32,
    /// Dense, C order, little-endian; read for inputs, written for outputs, both for states.
    pub bytes: *mut u8,
    /// In bytes.
    pub length: usize,
}

/// `gpureplay_error` in C.
#[repr(C)]
#[derive(Default)]
pub struct Error {
    /// 0 none, 1 damaged, 2 not allowed, 3 GPU or memory, 4 tensors, 5 cancelled.
    pub status: i32,
    /// Damaged: section. Not allowed: rule. Else: kind.
    pub code: u32,
    /// Not allowed: entry in its section. Else: action, or all ones.
    pub index: u32,
    /// Register, status or size.
    pub found: u32,
    /// Address or value.
    pub value: u64,
}

/// # Safety
/// Null, or `length` bytes that stay unchanged for `'a`.
unsafe fn bytes_at<'a>(pointer: *const u8, length: usize) -> &'a [u8] {
    if pointer.is_null() || isize::try_from(length).is_err() {
        return &[];
    }
    // SAFETY: neither null nor too long; the rest is the caller's promise.
    unsafe { core::slice::from_raw_parts(pointer, length) }
}

struct Bound<'b>(&'b mut [Tensor]);

impl Bound<'_> {
    fn of(&mut self, tensor: u32) -> Option<&mut Tensor> {
        self.0
            .iter_mut()
            .find(|bound| bound.index as u32 == tensor && !bound.bytes.is_null())
            .filter(|bound| isize::try_from(bound.length).is_ok())
    }
}

impl Tensors for Bound<'_> {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        let bound = self.of(tensor)?;
        // SAFETY: the caller of `gpureplay_run` gives `length` bytes for the time of the call.
        Some(unsafe { bytes_at(bound.bytes, bound.length) })
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        let bound = self.of(tensor)?;
        // SAFETY: as in `input`, and the bytes of an output are writable.
        Some(unsafe { core::slice::from_raw_parts_mut(bound.bytes, bound.length) })
    }
}

/// # Safety
/// `state` points at a `gpureplay_session`, `recording` at `length` bytes that outlive it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_open(
    state: *mut State,
    callbacks: &Callbacks,
    recording: *const u8,
    length: usize,
    error: &mut Error,
) -> i32 {
    *error = Error::default();
    // SAFETY: the caller's promise.
    let bytes: &'static [u8] = unsafe { bytes_at(recording, length) };
    // SAFETY: `state` is writable and large enough; nothing reads it before it is written.
    unsafe { (&raw mut (*state).open).write(false) };
    let recording = match Recording::parse(bytes) {
        Ok(recording) => recording,
        Err(found) => {
            error.status = 1;
            error.code = found.section.code().into();
            return 1;
        }
    };
    // SAFETY: the field is written before it is read, and stays as it is as long as the state is open.
    let recording: &'static Recording<'static> = unsafe { (*state).recording.write(recording) };
    let verified = match verify(recording, &Limits::DEFAULT) {
        Ok(verified) => verified,
        Err(violation) => {
            error.status = 2;
            error.code = violation.rule as u32;
            error.index = violation.index;
            error.value = violation.value;
            return 2;
        }
    };
    // SAFETY: the fields are written before they are read; only this session uses the workspace. A fresh workspace is
    // bytes and a length, all zero; it is made in place because many a stack is smaller.
    unsafe {
        (&raw mut (*state).workspace).write_bytes(0, 1);
        let workspace: &'static mut Workspace = &mut (*state).workspace;
        let device = Device::new(*callbacks);
        (*state).session.write(Session::new(
            device,
            verified,
            workspace,
            Options::default(),
        ));
        (*state).open = true;
    }
    0
}

/// # Safety
/// `state` was opened and has not moved since; `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_find(state: *const State, name: *const c_char) -> i32 {
    if name.is_null() {
        return -1;
    }
    // SAFETY: the caller's promise, and the name is not null.
    let (Some(session), name) = (unsafe {
        let open = (*state).open.then(|| (*state).session.assume_init_ref());
        (open, core::ffi::CStr::from_ptr(name))
    }) else {
        return -1;
    };
    let recording = session.recording().recording();
    let mut tensors = (0..).zip(recording.tensors());
    let named = |entry: u32| recording.name_bytes(entry) == Some(name.to_bytes());
    tensors
        .find(|(_, tensor)| named(tensor.name.get()))
        .map_or(-1, |(index, _)| index)
}

/// # Safety
/// `state` was opened and has not moved since; `tensors` points at `count` correct tensors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_run(
    state: *mut State,
    tensors: *mut Tensor,
    count: usize,
    error: &mut Error,
) -> i32 {
    let none = tensors.is_null() || isize::try_from(count).is_err();
    let tensors = match none {
        true => &mut [],
        // SAFETY: not null; the rest is the caller's promise.
        false => unsafe { core::slice::from_raw_parts_mut(tensors, count) },
    };
    // SAFETY: the caller's promise. No reference to the whole state is made: the session holds one to its workspace.
    if !unsafe { (*state).open } {
        *error = Error {
            status: 3,
            code: u32::MAX,
            ..Error::default()
        };
        return 3;
    }
    // SAFETY: it is open, and this borrows the session alone.
    let session = unsafe { (*state).session.assume_init_mut() };
    session.gpu().begin_run();
    let result = session.run(&mut Bound(tensors));
    let failed = result.is_err();
    conclude(result, error);
    if session.gpu().end_run() && failed {
        (error.status, error.code) = (5, 0);
    }
    error.status
}

/// # Safety
/// `state` was given to `gpureplay_open` and has not moved since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_close(state: *mut State, error: &mut Error) -> i32 {
    *error = Error::default();
    // SAFETY: the caller's promise; as in `gpureplay_run` only parts of the state are touched.
    if !unsafe { core::mem::replace(&mut (*state).open, false) } {
        return 0;
    }
    // SAFETY: it was open; nobody uses it afterwards, and closing left nothing for a drop to do.
    let session = unsafe { (*state).session.assume_init_mut() };
    conclude(session.close(), error)
}

fn conclude(result: Result<(), ReplayError>, error: &mut Error) -> i32 {
    *error = Error {
        index: NO_ACTION,
        ..Error::default()
    };
    let Err(failed) = result else { return 0 };
    let (status, code, found, value) = match failed.kind {
        ErrorKind::Device(DeviceError::OutOfMemory) => (3, 1, 1, 0),
        ErrorKind::Device(DeviceError::NotMapped(va)) => (3, 1, 2, va),
        ErrorKind::Device(DeviceError::ResetFailed) => (3, 1, 3, 0),
        ErrorKind::Device(DeviceError::AddressSpaceStuck) => (3, 1, 4, 0),
        ErrorKind::Device(DeviceError::Refused(_)) => (3, 1, 5, 0),
        ErrorKind::Identity {
            register, found, ..
        } => (3, 2, found, register.into()),
        ErrorKind::AddressRange(bits) => (3, 3, bits, 0),
        ErrorKind::NoSuchSlot(slot) => (3, 4, slot.into(), 0),
        ErrorKind::NoPower {
            register, found, ..
        } => (3, 5, found, register.into()),
        ErrorKind::JobTimeout { status, tail, .. } => (3, 6, status, tail),
        ErrorKind::JobFault { status, tail, .. } => (3, 7, status, tail),
        ErrorKind::JobNotDone { header, status } => (3, 8, status, header),
        ErrorKind::MmuFault { status, address } => (3, 9, status, address),
        ErrorKind::GpuFault { status, address } => (3, 10, status, address),
        ErrorKind::Unbound { tensor } => (4, 11, tensor, 0),
        ErrorKind::TensorSize {
            tensor, expected, ..
        } => (4, 12, tensor, expected.into()),
        ErrorKind::NoSuchSegment(segment) => (3, 13, segment, 0),
        ErrorKind::Internal => (3, 14, 0, 0),
    };
    *error = Error {
        status,
        code,
        index: failed.action,
        found,
        value,
    };
    status
}
