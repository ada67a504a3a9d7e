// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong in a replay.

use gpureplay_cuda_launch::abi::Status;
use gpureplay_cuda_launch::image::ImageError;
use gpureplay_cuda_launch::recording::RecordingError;
use thiserror::Error;

use crate::Refusal;

/// Why a launch is not replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// There is no driver.
    #[error("libcuda.so.1 cannot be loaded: this machine has no CUDA driver")]
    NoDriver,
    /// The driver lacks a function.
    #[error("libcuda.so.1 has no function {0}")]
    Incomplete(&'static str),
    /// A call of the driver failed.
    #[error("{call} fails: {status}")]
    Driver {
        /// Which function.
        call: &'static str,
        /// What it returned.
        status: Status,
    },
    /// The recording is damaged.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A recorded address is taken in this process. Another process may have it free.
    #[error("the recorded addresses from {address:#x}, {size} bytes, are taken in this process")]
    Collision {
        /// Where the range begins.
        address: u64,
        /// Its bytes.
        size: u64,
    },
    /// The image cannot be read.
    #[error("the image: {0}")]
    Image(#[from] ImageError),
    /// The driver does not load the image.
    #[error("the driver does not load the image: {status}{}{log}", if log.is_empty() { "" } else { ": " })]
    NotLoaded {
        /// What it returned.
        status: Status,
        /// What its compiler says.
        log: String,
    },
    /// The image has no such kernel.
    #[error("the image has no kernel {0}")]
    NoKernel(String),
    /// The image holds no text that could be compiled with options.
    #[error("the image holds no PTX of {0}, which options of the compiler need")]
    NoPtx(String),
    /// The text has no room for probes.
    #[error("probes: {0}")]
    Probe(#[from] gpureplay_cuda_launch::probe::ProbeError),
    /// The kernel takes other parameters than the recorded one.
    #[error(
        "the kernel takes parameters (offset, size) {found:?}; the recorded one takes {recorded:?}"
    )]
    Parameters {
        /// Those of the image.
        found: Vec<[usize; 2]>,
        /// Those that were recorded.
        recorded: Vec<[usize; 2]>,
    },
    /// A variable of the recorded image is missing or has another size.
    #[error("the image's variable {name} has {found} bytes; the recorded one has {recorded}")]
    Variable {
        /// Its name.
        name: String,
        /// Bytes in this image, 0 if it has none.
        found: u64,
        /// Bytes in the recording.
        recorded: u64,
    },
    /// The launch breaks a limit.
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    /// An input has another size than the recorded one.
    #[error("the input {name} has {size} bytes; {found} were given")]
    Input {
        /// Its name.
        name: String,
        /// Bytes that were given.
        found: u64,
        /// Bytes that it has.
        size: u64,
    },
    /// Weights that the run needs are not there, or are not those that it was recorded with.
    #[error("the tensor {name} of the weights: {reason}")]
    Weights {
        /// Which tensor.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// The kernel runs for too long.
    #[error("the kernel did not end within {seconds} s")]
    TimeLimit {
        /// How long it had.
        seconds: u64,
    },
    /// A name with a zero byte, a region that does not fit into an address space.
    #[error("{0}")]
    Impossible(&'static str),
}

impl ReplayError {
    /// Whether a kernel used an address where no memory is.
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
