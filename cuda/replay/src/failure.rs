// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures of commands and calls, and exit codes.

use std::fs::{DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::ReplayError;
use gpureplay_cuda_launch::image::ImageError;
use gpureplay_cuda_launch::recording::RecordingError;
use gpureplay_host::beneath;
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Image { path: PathBuf, source: ImageError },
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error("with memory changed before the launch: {0}; --no-poison leaves it")]
    Poison(ReplayError),
    #[error("another process that replays the launch ended with {0}: see above")]
    OtherProcess(std::process::ExitStatus),
    #[error("{}: {reason}", path.display())]
    Untrusted { path: PathBuf, reason: String },
    #[error("{}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{0} is there as machine code only, in the image and in Triton's cache; --ptx FILE gives its PTX"
    )]
    MachineCode(String),
    #[error("standard output: {0}")]
    Output(io::Error),
    #[error("the report as JSON: {0}")]
    Json(serde_json::Error),
}

pub(crate) type Outcome = Result<ExitCode, Failure>;

impl Failure {
    /// The output's reader is gone, as `head` goes.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Recording(_)
            | Self::Replay(ReplayError::Recording(_))
            | Self::Untrusted { .. } => 3,
            Self::File { .. } | Self::Image { .. } | Self::MachineCode(_) => 4,
            Self::Replay(
                ReplayError::Image(_)
                | ReplayError::NotLoaded { .. }
                | ReplayError::NoKernel(_)
                | ReplayError::NoPtx(_)
                | ReplayError::Probe(_)
                | ReplayError::Parameters { .. }
                | ReplayError::Variable { .. }
                | ReplayError::Refused(_),
            ) => 4,
            Self::Replay(_) | Self::Poison(_) | Self::OtherProcess(_) => 5,
            Self::Write { .. } | Self::Output(_) | Self::Json(_) => 6,
        }
    }
}

pub(crate) fn json(source: serde_json::Error) -> Failure {
    Failure::Json(source)
}

pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure + '_ {
    |source| Failure::File {
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn written(path: &Path) -> impl FnOnce(io::Error) -> Failure + '_ {
    |source| Failure::Write {
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let read = File::open(path).and_then(|opened| beneath::contents(opened, most));
    read.map_err(file(path))
}

pub(crate) fn texts(folder: &Path) -> Result<Vec<String>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(file(folder))?;
    let text = |entry: io::Result<DirEntry>| {
        let path = entry.map_err(file(folder))?.path();
        std::fs::read_to_string(&path).map_err(file(&path))
    };
    entries.map(text).collect()
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(written(path))
}
