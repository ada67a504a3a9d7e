// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the secure world did not replay.

use std::path::PathBuf;

use super::application::answer;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No TEE.
    #[error(
        "{path}: no such device; the kernel's OP-TEE driver finds no secure world (docs/optee.md)"
    )]
    NoDriver {
        /// First device tried.
        path: PathBuf,
    },
    /// The caller may not open it.
    #[error("{path}: permission denied; run as root, or as a member of the device's group")]
    Permission {
        /// Device.
        path: PathBuf,
    },
    /// Not OP-TEE.
    #[error("{path}: implementation {implementation} of a TEE, not OP-TEE")]
    NotOptee {
        /// Last device tried.
        path: PathBuf,
        /// Number in the kernel's header.
        implementation: u32,
    },
    /// No application, or no GPU for it.
    #[error(
        "OP-TEE has no trusted application that replays, or the GPU's pseudo-TA is not in it; install the .ta file of `cargo xtask guest optee build` in /lib/optee_armtz, and let tee-supplicant run"
    )]
    NoApplication,
    /// OP-TEE does not load the application.
    #[error(
        "OP-TEE has not opened the trusted application within {seconds} s; does tee-supplicant run? It gives OP-TEE the application's file"
    )]
    NoAnswer {
        /// Waited for.
        seconds: u64,
    },
    /// The secure world found no GPU.
    #[error("the secure world finds no GPU where its gpureplay_board.h says")]
    NoGpu,
    /// A pack or tensor block.
    #[error("{what}: {bytes} bytes, the secure world takes {most} at most")]
    TooLarge {
        /// Subject.
        what: &'static str,
        /// Size.
        bytes: usize,
        /// Limit.
        most: usize,
    },
    /// A run has too many tensors.
    #[error("{count} tensors in one run, the secure world takes {most} at most")]
    TooManyTensors {
        /// Tensors.
        count: usize,
        /// Limit.
        most: usize,
    },
    /// No signature.
    #[error(
        "the secure world refuses the recording: it has no signature (`gpureplay sign` makes one)"
    )]
    Unsigned,
    /// Another key signed the pack.
    #[error(
        "the secure world refuses the recording: it is signed with another key than the one in the trusted application"
    )]
    OtherKey,
    /// Older than one that ran.
    #[error(
        "the secure world refuses the recording: its counter is smaller than that of one that has run (`gpureplay sign --counter`)"
    )]
    Older,
    /// The signature does not fit.
    #[error(
        "the secure world refuses the recording: its signature does not fit, one of them was changed after signing"
    )]
    Forged,
    /// Damaged, or against a rule.
    #[error("the secure world refuses the recording (status {status}, code {code})")]
    NotAllowed {
        /// 1: damaged, 2: not allowed (`gpureplay_error` in `gpureplay_bare.h`).
        status: u32,
        /// Section, or rule.
        code: u32,
    },
    /// The GPU failed, or is another one.
    #[error("the replay failed in the secure world (code {code})")]
    Gpu {
        /// As in `gpureplay_bare.h`.
        code: u32,
    },
    /// Missing value, or wrong size.
    #[error("the secure world refuses the tensors (code {code})")]
    Tensors {
        /// As in `gpureplay_bare.h`.
        code: u32,
    },
    /// The GPU was reset, its memory cleared.
    #[error("the run was cancelled; the secure world has reset the GPU and cleared its memory")]
    Cancelled,
    /// Another client kept the GPU.
    #[error(
        "another client of the secure world has had the GPU for {seconds} s; end it, or try again"
    )]
    Busy {
        /// Waited for.
        seconds: u64,
    },
    /// The secure world lacks memory.
    #[error("the secure world has not enough memory for this")]
    OutOfMemory,
    /// Another answer.
    #[error("{what}: the secure world answers {result:#010x} (origin {origin})")]
    Other {
        /// What was tried.
        what: &'static str,
        /// GlobalPlatform's number.
        result: u32,
        /// 1 this side, 2 the way, 3 OP-TEE, 4 the application.
        origin: u32,
    },
    /// The driver failed.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// Cause.
        error: std::io::Error,
    },
}

pub(crate) fn io(what: &str) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |error| Error::Io {
        what: what.to_owned(),
        error,
    }
}

pub(crate) fn answered(
    what: &'static str,
    (result, origin): (u32, u32),
    (status, code): (u32, u32),
) -> Error {
    match (result, status) {
        (answer::NO_DATA, _) => Error::Unsigned,
        (answer::ACCESS_DENIED, _) => Error::OtherKey,
        (answer::UNSUPPORTED_VERSION, _) => Error::Older,
        (answer::SIGNATURE_INVALID, _) => Error::Forged,
        (answer::SECURITY, 1 | 2) => Error::NotAllowed { status, code },
        (answer::BAD_PARAMETERS, 4) => Error::Tensors { code },
        (answer::COMMUNICATION, 3) => Error::Gpu { code },
        (answer::CANCELLED, _) => Error::Cancelled,
        (answer::OUT_OF_MEMORY, _) => Error::OutOfMemory,
        (answer::ITEM_NOT_FOUND, _) => Error::NoGpu,
        _ => Error::Other {
            what,
            result,
            origin,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_names() {
        let named = |result, status| answered("a run", (result, 4), (status, 7));
        assert!(matches!(named(answer::NO_DATA, 0), Error::Unsigned));
        assert!(matches!(named(answer::ACCESS_DENIED, 0), Error::OtherKey));
        assert!(matches!(
            named(answer::UNSUPPORTED_VERSION, 0),
            Error::Older
        ));
        assert!(matches!(named(answer::SIGNATURE_INVALID, 0), Error::Forged));
        let rule = named(answer::SECURITY, 2);
        assert!(matches!(rule, Error::NotAllowed { status: 2, code: 7 }));
        assert!(matches!(
            named(answer::COMMUNICATION, 3),
            Error::Gpu { code: 7 }
        ));
        assert!(matches!(named(answer::CANCELLED, 5), Error::Cancelled));
        let tensors = named(answer::BAD_PARAMETERS, 4);
        assert!(matches!(tensors, Error::Tensors { code: 7 }));
        let text = named(answer::BAD_PARAMETERS, 0).to_string();
        assert_eq!(
            text,
            "a run: the secure world answers 0xffff0006 (origin 4)"
        );
        assert!(named(0xffff_0004, 0).to_string().contains("0xffff0004"));
    }
}
