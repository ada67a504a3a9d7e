// SPDX-License-Identifier: MIT OR Apache-2.0
//! A task's failures.

use std::{io, path::PathBuf};

/// A task's result.
pub type Result<T> = std::result::Result<T, Error>;

/// A task's failure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// "read", "create"...
        what: &'static str,
        /// File.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A program did not start.
    #[error("cannot run {program}: {source}{}", hint(program))]
    Start {
        /// Program.
        program: String,
        /// Cause.
        source: io::Error,
    },
    /// A program failed.
    #[error("{what} failed ({status}){}", tail(log))]
    Failed {
        /// Action.
        what: String,
        /// Exit status.
        status: std::process::ExitStatus,
        /// End of the output; empty on the terminal.
        log: String,
    },
    /// Something must be there first.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// Missing.
        what: String,
        /// Remedy.
        remedy: String,
    },
    /// A binary contains what it must not.
    #[error("{what} is linked into {}", path.display())]
    Contains {
        /// Binary.
        path: PathBuf,
        /// Content.
        what: String,
    },
    /// A trial did not pass.
    #[error("{what} fell short: {remedy}")]
    FellShort {
        /// Trial.
        what: String,
        /// Remedy.
        remedy: String,
    },
    /// A program's line is no result.
    #[error("{program} printed a line that is no result: {line}")]
    Output {
        /// Program.
        program: &'static str,
        /// Line.
        line: String,
    },
    /// The user's input does not fit.
    #[error("{0}")]
    Usage(String),
    /// The model server did not start.
    #[error("the model server did not open its socket{}", tail(.0))]
    Model(String),
}

impl Error {
    /// Wraps an I/O error.
    pub fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { what, path, source }
    }

    /// Wraps a failed start's error.
    pub fn start(program: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let program = program.into();
        move |source| Error::Start { program, source }
    }

    /// Something must be there first.
    pub fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Missing {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// A trial did not pass.
    pub fn fell_short(what: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::FellShort {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// 2 for wrong usage, 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            _ => 1,
        }
    }
}

impl From<String> for Error {
    fn from(text: String) -> Self {
        Error::Usage(text)
    }
}

impl From<&str> for Error {
    fn from(text: &str) -> Self {
        Error::Usage(text.into())
    }
}

fn tail(log: &str) -> String {
    if log.is_empty() {
        String::new()
    } else {
        format!("; its last lines:\n{log}")
    }
}

fn hint(program: &str) -> &'static str {
    match program {
        "setpriv" => " (install it: apt-get install util-linux)",
        _ => "",
    }
}
