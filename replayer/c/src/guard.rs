// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panics, error texts, and pointers at the C boundary.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use gpureplay_library::{Class, Error, escaped};

use crate::types::Status;

thread_local! {
    /// This thread's last error.
    static LAST: RefCell<CString> = RefCell::default();
}

pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self {
            status: Status::Usage,
            text: text.into(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.class() {
            Class::Usage => Status::Usage,
            Class::Recording => Status::Recording,
            Class::Input => Status::Input,
            Class::Device => Status::Device,
            Class::Output => Status::Output,
        };
        Self {
            status,
            text: error.to_string(),
        }
    }
}

/// Turns failures of a call into a status and a text.
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> Status {
    let Failure { status, text } = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(_) => Failure {
            status: Status::Panic,
            text: "a bug in gpureplay: it panicked; please report it with the recording".to_owned(),
        },
    };
    answered((), || {
        // Texts of files may hold zero bytes.
        let text = CString::new(escaped(&text).into_owned()).unwrap_or_default();
        // An ending thread has no last error any more, and its destructors may still call.
        let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = text));
    });
    status
}

/// `otherwise` is the answer after a panic.
pub(crate) fn answered<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// This thread's last error: what, where, and what to do. Empty without one, and in an ended thread's destructors.
///
/// Valid until this thread's next failing call, and no longer than the thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpureplay_last_error() -> *const c_char {
    let none = c"".as_ptr();
    answered(none, || {
        let last = LAST.try_with(|last| last.try_borrow().map_or(none, |text| text.as_ptr()));
        last.unwrap_or(none)
    })
}

/// Version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn gpureplay_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// # Safety
/// `pointer` is null, or points to bytes that end with a zero and do not change during the call.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::usage(format!("{what} is a null pointer")));
    }
    // SAFETY: not null, and the caller vouches for the rest.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::usage(format!("{what} is not UTF-8")))
}

/// # Safety
/// `pointer` is null, or an open handle of this kind.
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: null is checked by `as_ref`, the caller vouches for the rest.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::usage(format!("{what} is a null pointer")))
}

/// # Safety
/// `pointer` is null, or points to memory for a `T`.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::usage(format!("{what} is a null pointer")));
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { pointer.write(value) };
    Ok(())
}
