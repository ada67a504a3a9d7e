// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong.

use std::path::{Path, PathBuf};

use gpureplay_core::{ReplayError, Rule, Violation};
use gpureplay_format::ParseError;
use gpureplay_linux::{Misfit, OpenError};

use gpureplay_host::shown;

use crate::explain;
use crate::host_rules::rule::Broken;

/// Which side has to act on an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A senseless request for this recording.
    Usage,
    /// Damaged, not allowed, or no recording.
    Recording,
    /// A file is missing or does not fit.
    Input,
    /// An unusable device, or a failed replay.
    Device,
    /// A result could not be written.
    Output,
}

/// Why a recording could not be opened, bound, run or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No recording at this path.
    #[error(
        "{}: {reason}; give a directory with a {}, or such a file",
        shown(path),
        crate::names::RECORDING
    )]
    NoRecording {
        /// Path.
        path: PathBuf,
        /// What is there instead.
        reason: String,
    },
    /// Not a sound file.
    #[error("{}: {}", shown(path), explain::parse_error(error))]
    Damaged {
        /// File.
        path: PathBuf,
        /// Problem and section.
        error: ParseError,
    },
    /// A sound file breaks a rule.
    #[error("{}: {}", shown(path), explain::violation(violation))]
    NotAllowed {
        /// File.
        path: PathBuf,
        /// Rule and entry.
        violation: Violation,
    },
    /// A launch breaks its family's rule.
    #[error(
        "{}: rule {} broken by the launch of action {action}: {broken}",
        shown(path),
        Rule::JobConfiguration.name()
    )]
    Launch {
        /// File.
        path: PathBuf,
        /// Action index.
        action: u32,
        /// What it breaks.
        broken: mali_jobs::streams::Broken,
    },
    /// A host rule is broken.
    #[error("{}: {broken}", shown(path))]
    Unsuitable {
        /// File.
        path: PathBuf,
        /// Rule and breach.
        broken: Broken,
    },
    /// Its chains break a rule: no other form is possible.
    #[error("{}: {text}", shown(path))]
    Chains {
        /// File.
        path: PathBuf,
        /// Rule and breach.
        text: String,
    },
    /// The pack is damaged, or not signed as demanded.
    #[error("{}: {reason}", shown(path))]
    Package {
        /// File or directory.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The manifest is another recording's.
    #[error(
        "{}: its SHA-256 is {found}, but {} beside it is for a recording with {expected}: the two do not belong together, or the recording was changed",
        shown(path),
        crate::names::MANIFEST
    )]
    NotTheManifests {
        /// Recording.
        path: PathBuf,
        /// The manifest's hash.
        expected: String,
        /// The recording's hash.
        found: String,
    },
    /// Unusable manifest.
    #[error("{}: {reason}", shown(path))]
    Manifest {
        /// File.
        path: PathBuf,
        /// Line and problem.
        reason: String,
    },
    /// No such tensor.
    #[error("the recording has no tensor {name}; {known}")]
    NoTensor {
        /// Name.
        name: String,
        /// Existing names.
        known: String,
    },
    /// Wrong kind of tensor.
    #[error("tensor {name} cannot be used like this, its kind is {kind}; {known}")]
    WrongKind {
        /// Tensor.
        name: String,
        /// Kind.
        kind: &'static str,
        /// Tensors that do.
        known: String,
    },
    /// A tensor only for reading.
    #[error("{kind} {name} can only be read: the recording puts no value there")]
    NotTaken {
        /// Tensor.
        name: String,
        /// Kind.
        kind: &'static str,
    },
    /// No such layer.
    #[error("the recording has no layer {name}; {known}")]
    NoLayer {
        /// Name or number.
        name: String,
        /// Existing layers.
        known: String,
    },
    /// No range of layers.
    #[error("layers {text}: {reason}; {known}")]
    Layers {
        /// Request.
        text: String,
        /// What is wrong.
        reason: &'static str,
        /// Existing layers.
        known: String,
    },
    /// Type or shape do not fit.
    #[error("{from}: expected {expected} for {tensor}, got {found}{hint}")]
    Shape {
        /// The value's origin.
        from: String,
        /// With its kind.
        tensor: String,
        /// Type and shape.
        expected: String,
        /// As given.
        found: String,
        /// NumPy's conversion, if possible.
        hint: Box<str>,
    },
    /// A tensor without value.
    #[error("{}: {kind} {name} {shape} has no value", shown(path))]
    Unbound {
        /// Recording.
        path: PathBuf,
        /// Kind.
        kind: &'static str,
        /// Tensor.
        name: String,
        /// Type and shape.
        shape: String,
    },
    /// Layers read what skipped layers would compute.
    #[error(
        "layers {first} to {last} read {}, which layers before them compute; give {}, or run those layers first, or ask for the values in the recording's own memory",
        missing.join(", "),
        if missing.len() == 1 { "it" } else { "all of them" }
    )]
    Crossing {
        /// First layer to run, from 1.
        first: usize,
        /// Last layer.
        last: usize,
        /// Missing names, types and shapes.
        missing: Vec<String>,
    },
    /// A file cannot be read.
    #[error("{}: {reason}", shown(path))]
    File {
        /// File.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A weight's file has another hash.
    #[error(
        "{}: its SHA-256 is {found}, but the manifest's for weight {name} is {expected}; restore the file, or bind another one with {name}=FILE",
        shown(path)
    )]
    Hash {
        /// File.
        path: PathBuf,
        /// Weight.
        name: String,
        /// The manifest's hash.
        expected: String,
        /// The file's hash.
        found: String,
    },
    /// No such device here.
    #[error("{0}")]
    Unusable(#[from] OpenError),
    /// No model of such a GPU.
    #[error("{0}")]
    NoModel(String),
    /// Unusable number of threads.
    #[error("{0} threads: the model uses 1 to {max}", max = crate::names::MAX_THREADS)]
    Threads(usize),
    /// Impossible on the model, or on this machine.
    #[error("{0}")]
    NoDevice(String),
    /// The device's own decisions contradict the recording.
    #[error("{}: the kernel's driver cannot replay it: {misfit}", shown(path))]
    Misfit {
        /// Recording.
        path: PathBuf,
        /// What does not fit.
        misfit: Misfit,
    },
    /// The replay failed; the GPU was reset.
    #[error("{}: {text}", shown(path))]
    Replay {
        /// Recording.
        path: PathBuf,
        /// The engine's.
        error: ReplayError,
        /// In words.
        text: String,
    },
    /// The secure world refused, or the replay failed. The GPU was reset and its memory cleared.
    #[error("{text}")]
    Secure {
        /// The client's.
        error: gpureplay_linux::optee::Error,
        /// In words.
        text: String,
    },
    /// Impossible in the secure world.
    #[error("the secure world does not do this: {0}; choose another device for it")]
    SecureWorld(&'static str),
    /// An output file's name says no format.
    #[error(
        "{}: outputs are written as .npy, .bin, .raw or .json; give a name with one of these endings",
        shown(path)
    )]
    Format {
        /// File.
        path: PathBuf,
    },
    /// From a GPU other than Mali.
    #[error("{source}")]
    Other {
        /// Which side has to act.
        class: Class,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file was not written.
    #[error("{}: {reason}", shown(path))]
    Write {
        /// File.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl Error {
    /// Which side has to act.
    pub fn class(&self) -> Class {
        match self {
            Self::NoRecording { .. }
            | Self::Damaged { .. }
            | Self::NotAllowed { .. }
            | Self::Unsuitable { .. }
            | Self::Launch { .. }
            | Self::Chains { .. }
            | Self::NotTheManifests { .. }
            | Self::Package { .. }
            | Self::Manifest { .. } => Class::Recording,
            Self::NoTensor { .. }
            | Self::NoLayer { .. }
            | Self::Layers { .. }
            | Self::NoModel(_)
            | Self::Threads(_)
            | Self::Format { .. } => Class::Usage,
            Self::WrongKind { .. }
            | Self::NotTaken { .. }
            | Self::Shape { .. }
            | Self::Unbound { .. }
            | Self::Crossing { .. }
            | Self::File { .. }
            | Self::Hash { .. } => Class::Input,
            Self::Secure { error, .. } => secure(error),
            Self::Other { class, .. } => *class,
            Self::SecureWorld(_) => Class::Usage,
            Self::Unusable(_) | Self::NoDevice(_) | Self::Misfit { .. } | Self::Replay { .. } => {
                Class::Device
            }
            Self::Write { .. } => Class::Output,
        }
    }

    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        Self::File {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        }
    }
}

/// A refused recording is the recording's error.
fn secure(error: &gpureplay_linux::optee::Error) -> Class {
    use gpureplay_linux::optee::Error as E;
    match error {
        E::Unsigned | E::OtherKey | E::Older | E::Forged | E::NotAllowed { .. } => Class::Recording,
        E::TooLarge { .. } | E::TooManyTensors { .. } => Class::Recording,
        E::Tensors { .. } => Class::Input,
        _ => Class::Device,
    }
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;
