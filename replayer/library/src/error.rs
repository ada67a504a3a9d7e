// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong between a recording's files and an answer.

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
    /// The caller asked for something that makes no sense for this recording.
    Usage,
    /// The recording is damaged, not allowed, or not a recording.
    Recording,
    /// An input or another file is missing or does not fit.
    Input,
    /// The device could not be used, or the replay failed on it.
    Device,
    /// A result could not be written.
    Output,
}

/// Why a recording could not be opened, bound, run or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no recording at this path.
    #[error(
        "{}: {reason}; give a directory with a {}, or such a file",
        shown(path),
        crate::names::RECORDING
    )]
    NoRecording {
        /// The path.
        path: PathBuf,
        /// What is there instead.
        reason: String,
    },
    /// The bytes are not a sound file.
    #[error("{}: {}", shown(path), explain::parse_error(error))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong and in which section.
        error: ParseError,
    },
    /// The file is sound, but breaks a rule.
    #[error("{}: {}", shown(path), explain::violation(violation))]
    NotAllowed {
        /// The file.
        path: PathBuf,
        /// The rule and the entry that breaks it.
        violation: Violation,
    },
    /// A launch breaks a rule of its family.
    #[error(
        "{}: rule {} broken by the launch of action {action}: {broken}",
        shown(path),
        Rule::JobConfiguration.name()
    )]
    Launch {
        /// The file.
        path: PathBuf,
        /// Index of the action.
        action: u32,
        /// What it breaks.
        broken: mali_jobs::streams::Broken,
    },
    /// It keeps the rules of the engine, but breaks one for its use on a host.
    #[error("{}: {broken}", shown(path))]
    Unsuitable {
        /// The file.
        path: PathBuf,
        /// The rule, and what breaks it.
        broken: Broken,
    },
    /// Its chains break a rule, so it cannot be brought into another form.
    #[error("{}: {text}", shown(path))]
    Chains {
        /// The file.
        path: PathBuf,
        /// The rule, and what breaks it.
        text: String,
    },
    /// The pack is damaged, or the signature is not the one that is demanded.
    #[error("{}: {reason}", shown(path))]
    Package {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The manifest beside it was made for another recording.
    #[error(
        "{}: its SHA-256 is {found}, but {} beside it is for a recording with {expected}: the two do not belong together, or the recording was changed",
        shown(path),
        crate::names::MANIFEST
    )]
    NotTheManifests {
        /// The recording.
        path: PathBuf,
        /// Hash in the manifest.
        expected: String,
        /// Hash of the recording.
        found: String,
    },
    /// The manifest cannot be used.
    #[error("{}: {reason}", shown(path))]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The line, and what is wrong with it.
        reason: String,
    },
    /// The recording has no tensor of this name.
    #[error("the recording has no tensor {name}; {known}")]
    NoTensor {
        /// The name.
        name: String,
        /// Names that it has.
        known: String,
    },
    /// The tensor is not of a kind that can be used like this.
    #[error("tensor {name} cannot be used like this, its kind is {kind}; {known}")]
    WrongKind {
        /// The tensor.
        name: String,
        /// Its kind.
        kind: &'static str,
        /// Tensors that can be.
        known: String,
    },
    /// The recording has a tensor for reading only.
    #[error("{kind} {name} can only be read: the recording puts no value there")]
    NotTaken {
        /// The tensor.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
    /// The recording has no layer of this name or number.
    #[error("the recording has no layer {name}; {known}")]
    NoLayer {
        /// Name or number.
        name: String,
        /// Layers that it has.
        known: String,
    },
    /// Layers that make no range.
    #[error("layers {text}: {reason}; {known}")]
    Layers {
        /// What was asked for.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
        /// Layers that there are.
        known: String,
    },
    /// A value has another type or shape than its tensor.
    #[error("{from}: expected {expected} for {tensor}, got {found}{hint}")]
    Shape {
        /// The file, or what else the value comes from.
        from: String,
        /// The tensor, with its kind.
        tensor: String,
        /// Its type and shape.
        expected: String,
        /// Type and shape of the value.
        found: String,
        /// How NumPy makes the one from the other, where it can.
        hint: Box<str>,
    },
    /// A tensor that needs a value has none.
    #[error("{}: {kind} {name} {shape} has no value", shown(path))]
    Unbound {
        /// The recording.
        path: PathBuf,
        /// The tensor's kind.
        kind: &'static str,
        /// The tensor.
        name: String,
        /// Its type and shape.
        shape: String,
    },
    /// Layers that do not run would compute what the layers that run read.
    #[error(
        "layers {first} to {last} read {}, which layers before them compute; give {}, or run those layers first, or ask for the values in the recording's own memory",
        missing.join(", "),
        if missing.len() == 1 { "it" } else { "all of them" }
    )]
    Crossing {
        /// Number of the first layer that is to run, from 1.
        first: usize,
        /// Number of the last.
        last: usize,
        /// Names, types and shapes of what is missing.
        missing: Vec<String>,
    },
    /// A file with a tensor's value cannot be read.
    #[error("{}: {reason}", shown(path))]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A weight's file is not the one that the manifest was made with.
    #[error(
        "{}: its SHA-256 is {found}, but the manifest's for weight {name} is {expected}; restore the file, or bind another one with {name}=FILE",
        shown(path)
    )]
    Hash {
        /// The file.
        path: PathBuf,
        /// The weight.
        name: String,
        /// Hash in the manifest.
        expected: String,
        /// Hash of the file.
        found: String,
    },
    /// There is no such device here.
    #[error("{0}")]
    Unusable(#[from] OpenError),
    /// There is no model of a GPU with this name.
    #[error("{0}")]
    NoModel(String),
    /// As many host threads cannot be used.
    #[error("{0} threads: the model uses 1 to {max}", max = crate::names::MAX_THREADS)]
    Threads(usize),
    /// The model cannot be used for this recording, or not on this machine.
    #[error("{0}")]
    NoDevice(String),
    /// The device decides by itself what the recording asks for otherwise.
    #[error("{}: the kernel's driver cannot replay it: {misfit}", shown(path))]
    Misfit {
        /// The recording.
        path: PathBuf,
        /// What stands against it.
        misfit: Misfit,
    },
    /// The replay failed. The GPU was reset.
    #[error("{}: {text}", shown(path))]
    Replay {
        /// The recording.
        path: PathBuf,
        /// What the engine says.
        error: ReplayError,
        /// The same in words.
        text: String,
    },
    /// The secure world refused the recording, or the replay failed there. The GPU was reset and its memory cleared.
    #[error("{text}")]
    Secure {
        /// What its client says.
        error: gpureplay_linux::optee::Error,
        /// The same in words, rules and sections by name.
        text: String,
    },
    /// The secure world does not do this.
    #[error("the secure world does not do this: {0}; choose another device for it")]
    SecureWorld(&'static str),
    /// The name of an output's file says no format that is written.
    #[error(
        "{}: outputs are written as .npy, .bin, .raw or .json; give a name with one of these endings",
        shown(path)
    )]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A recording of another GPU than Mali, or its device, says this.
    #[error("{source}")]
    Other {
        /// Which side has to act.
        class: Class,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file could not be written.
    #[error("{}: {reason}", shown(path))]
    Write {
        /// The file.
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

    /// A file that cannot be used.
    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        Self::File {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        }
    }
}

/// Whose an error of the secure world is: a recording that it refuses is the recording's.
fn secure(error: &gpureplay_linux::optee::Error) -> Class {
    use gpureplay_linux::optee::Error as E;
    match error {
        E::Unsigned | E::OtherKey | E::Older | E::Forged | E::NotAllowed { .. } => Class::Recording,
        E::TooLarge { .. } | E::TooManyTensors { .. } => Class::Recording,
        E::Tensors { .. } => Class::Input,
        _ => Class::Device,
    }
}

/// What functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;
