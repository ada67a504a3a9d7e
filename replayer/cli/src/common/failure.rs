// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures: an exit code and one line.

use std::fmt;
use std::io;

use gpureplay_library::{Class, Error, TensorKind};
use serde::Serialize;

/// A shell's exit code for SIGINT.
pub(crate) const INTERRUPTED: u8 = 128 + nix::sys::signal::Signal::SIGINT as u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Mismatch,
}

/// Texts say what, where, what was expected, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Usage(String),
    Recording(String),
    /// Two runs differ; another first run may help.
    Runs(String),
    Input(String),
    Device(String),
    Output(String),
    /// Its exit code is passed on.
    App {
        text: String,
        code: u8,
    },
    /// Before there was anything to report.
    Interrupted,
    /// As by `head`: no error.
    ClosedPipe,
}

/// A failure as `--json` prints it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct FailureReport {
    error: ErrorReport,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct ErrorReport {
    /// `usage`, `recording`, `input`, `device`, `app`, `output` or `interrupted`.
    kind: &'static str,
    /// Exit code of the process.
    exit_code: u8,
    /// What is wrong, where, and what to do.
    text: String,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Recording(_) | Self::Runs(_) => 3,
            Self::Input(_) => 4,
            Self::Device(_) => 5,
            Self::App { code, .. } => *code,
            Self::Output(_) => 6,
            Self::ClosedPipe => 0,
            Self::Interrupted => INTERRUPTED,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Usage(_) => "usage",
            Self::Recording(_) | Self::Runs(_) => "recording",
            Self::Input(_) => "input",
            Self::Device(_) => "device",
            Self::App { .. } => "app",
            Self::Output(_) | Self::ClosedPipe => "output",
            Self::Interrupted => "interrupted",
        }
    }

    pub(crate) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(&FailureReport {
            error: ErrorReport {
                kind: self.kind(),
                exit_code: self.exit_code(),
                text: self.to_string(),
            },
        })
    }

    pub(crate) fn is_closed_pipe(&self) -> bool {
        *self == Self::ClosedPipe
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text)
            | Self::Recording(text)
            | Self::Runs(text)
            | Self::Input(text)
            | Self::Device(text)
            | Self::Output(text)
            | Self::App { text, .. } => f.write_str(text),
            Self::Interrupted => f.write_str("interrupted before the first counted run"),
            Self::ClosedPipe => f.write_str("the output pipe was closed"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut text = error.to_string();
        match &error {
            Error::Unbound { kind, .. } if *kind == TensorKind::State.name() => {
                text += "; give all states with --state-in FILE.safetensors";
            }
            Error::Unbound { name, .. } => text += &format!("; add --input {name}=FILE.npy"),
            Error::Crossing { .. } => text += " (--recorded-values)",
            Error::Unusable(_) => text += "; `gpureplay doctor` shows what this machine offers",
            Error::NoDevice(_) | Error::Misfit { .. } => text += "; --device names another one",
            Error::NoModel(_) => text += "; see --device",
            Error::Secure { .. } if error.class() == Class::Device => {
                text += " (`gpureplay doctor` shows what this machine offers)";
            }
            _ => {}
        }
        match error.class() {
            Class::Usage => Self::Usage(text),
            Class::Recording => Self::Recording(text),
            Class::Input => Self::Input(text),
            Class::Device => Self::Device(text),
            Class::Output => Self::Output(text),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Output(format!("standard output: {error}")),
        }
    }
}
