// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong.

use std::io;
use std::path::PathBuf;

use mali_facts::ChainEnd;
use nix::errno::Errno;

/// Why the client could not run a recording.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file or device cannot be opened or read.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The recording is damaged.
    #[error("{path}: not a sound recording: {fault}", path = path.display())]
    Recording {
        /// Which.
        path: PathBuf,
        /// Why.
        fault: String,
    },
    /// A tensor's file does not fit.
    #[error("{0}")]
    Tensor(String),
    /// The kernel refuses a call.
    #[error("{call}: {errno}")]
    Call {
        /// The system call or the request of the driver.
        call: &'static str,
        /// Why.
        errno: Errno,
    },
    /// Events cannot be read.
    #[error("reading an event: {source}")]
    Event {
        /// Why.
        source: io::Error,
    },
    /// The driver speaks another interface.
    #[error(
        "the driver has interface {major}.{minor}; 11.x is the job manager's (releases r9p0 to r44p1)"
    )]
    Version {
        /// The driver's major version.
        major: u16,
        /// The driver's minor version.
        minor: u16,
    },
    /// A region of an impossible size.
    #[error("a region of {0} bytes is not possible")]
    Size(u64),
    /// The driver did not place a region where it has to be.
    #[error("the driver put a region at {found:#x}, not at {wanted:#x}")]
    Place {
        /// Where it has to be.
        wanted: u64,
        /// Where it is.
        found: u64,
    },
    /// A region has to be where something else is.
    #[error("the addresses {start:#x} to {end:#x} are not free in this process")]
    Taken {
        /// First address.
        start: u64,
        /// End.
        end: u64,
    },
    /// The recording uses memory that it has no region for.
    #[error("{length} bytes at {va:#x} are in no region of the recording")]
    Unmapped {
        /// GPU virtual address.
        va: u64,
        /// Length in bytes.
        length: u64,
    },
    /// Something that the driver does itself, or that this client does not do.
    #[error("action {index} ({what}) cannot be done through kbase")]
    Action {
        /// Index of the action.
        index: usize,
        /// Its name.
        what: &'static str,
    },
    /// A chain cannot be followed to its end.
    #[error("{end} ({at:#x})")]
    Chain {
        /// Address of the header that cannot be taken in.
        at: u64,
        /// What is wrong with it.
        end: ChainEnd,
    },
    /// A job failed.
    #[error("atom {atom} ended with event code {code:#x}")]
    Atom {
        /// Its number.
        atom: u8,
        /// `BASE_JD_EVENT_*`.
        code: u32,
    },
    /// No event came.
    #[error("no atom ended within {0} s")]
    Timeout(u16),
}

impl Error {
    /// Puts the name of the call to an errno.
    pub(crate) fn call(call: &'static str) -> impl Fn(Errno) -> Error {
        move |errno| Error::Call { call, errno }
    }
}
