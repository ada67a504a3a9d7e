// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of replays.

use gpureplay_cuda_launch::abi::Status;
use gpureplay_cuda_launch::image::ImageError;
use gpureplay_cuda_launch::recording::RecordingError;
use thiserror::Error;

use crate::Refusal;

/// Why a launch is not replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// No driver.
    #[error("libcuda.so.1 cannot be loaded: this machine has no CUDA driver")]
    NoDriver,
    /// The driver lacks a function.
    #[error("libcuda.so.1 has no function {0}")]
    Incomplete(&'static str),
    /// A call of the driver failed.
    #[error("{call} fails: {status}")]
    Driver {
        /// Function.
        call: &'static str,
        /// Its result.
        status: Status,
    },
    /// The recording is damaged.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A taken address; another process may have it free.
    #[error("the recorded addresses from {address:#x}, {size} bytes, are taken in this process")]
    Collision {
        /// Start of the range.
        address: u64,
        /// Its bytes.
        size: u64,
    },
    /// The image cannot be read.
    #[error("the image: {0}")]
    Image(#[from] ImageError),
    /// The driver does not load it.
    #[error("the driver does not load the image: {status}{}{log}", if log.is_empty() { "" } else { ": " })]
    NotLoaded {
        /// Its result.
        status: Status,
        /// Its compiler's log.
        log: String,
    },
    /// The image has no such kernel.
    #[error("the image has no kernel {0}")]
    NoKernel(String),
    /// No text to compile with options.
    #[error("the image holds no PTX of {0}, which options of the compiler need")]
    NoPtx(String),
    /// Probes cannot be inserted.
    #[error("probes: {0}")]
    Probe(#[from] gpureplay_cuda_launch::probe::ProbeError),
    /// Other parameters than recorded.
    #[error(
        "the kernel takes parameters (offset, size) {found:?}; the recorded one takes {recorded:?}"
    )]
    Parameters {
        /// Of the image.
        found: Vec<[usize; 2]>,
        /// As recorded.
        recorded: Vec<[usize; 2]>,
    },
    /// A variable is missing or resized.
    #[error("the image's variable {name} has {found} bytes; the recorded one has {recorded}")]
    Variable {
        /// Name.
        name: String,
        /// Bytes here, 0 if missing.
        found: u64,
        /// Bytes in the recording.
        recorded: u64,
    },
    /// The launch breaks a limit.
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    /// An input has another size.
    #[error("the input {name} has {size} bytes; {found} were given")]
    Input {
        /// Name.
        name: String,
        /// Given bytes.
        found: u64,
        /// Wanted bytes.
        size: u64,
    },
    /// Weights are missing or wrong.
    #[error("the tensor {name} of the weights: {reason}")]
    Weights {
        /// Tensor.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// The kernel runs for too long.
    #[error("the kernel did not end within {seconds} s")]
    TimeLimit {
        /// The limit.
        seconds: u64,
    },
    /// Such as a name with a zero byte.
    #[error("{0}")]
    Impossible(&'static str),
}

impl ReplayError {
    /// Whether the driver may refuse all later calls.
    pub(crate) fn ends_the_context(&self) -> bool {
        matches!(self, Self::Driver { .. } | Self::TimeLimit { .. })
    }

    /// Whether a kernel used an unmapped address.
    #[must_use]
    pub fn is_illegal_address(&self) -> bool {
        matches!(
            self,
            Self::Driver {
                status: Status::ILLEGAL_ADDRESS,
                ..
            }
        )
    }
}

pub(crate) fn driver(call: &'static str, status: Status) -> Result<(), ReplayError> {
    status
        .check()
        .map_err(|status| ReplayError::Driver { call, status })
}
