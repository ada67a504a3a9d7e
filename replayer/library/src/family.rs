// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU families: rules and engines.

use gpureplay_core::{Gpu, Limits, Options, ReplayError, Tensors, Violation, Workspace};
use gpureplay_format::Recording;
use gpureplay_format::layout::FAMILY_STREAMS;
use mali_jobs::streams;
use mali_jobs::walk::{self, DeepViolation, Full, Report, Submission};

/// The recording's work is command streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its work is command streams, not job chains")]
pub struct NoChains;

/// A recording that keeps its family's rules.
#[derive(Clone, Copy, Debug)]
pub enum Verified<'a> {
    /// For Mali with a job manager.
    Chains(mali_drive::Verified<'a>),
    /// For Mali with command streams.
    Streams(streams::Verified<'a>),
}

impl<'a> Verified<'a> {
    /// Unknown families are refused.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn check(recording: &'a Recording<'a>) -> Result<Self, Violation> {
        let limits = &Limits::DEFAULT;
        match recording.header().family.get() {
            FAMILY_STREAMS => streams::verify(recording, limits).map(Self::Streams),
            _ => mali_drive::verify(recording, limits).map(Self::Chains),
        }
    }

    /// The recording.
    pub const fn recording(&self) -> &'a Recording<'a> {
        match self {
            Self::Chains(verified) => verified.recording(),
            Self::Streams(verified) => verified.recording(),
        }
    }

    /// Walks all that its work names.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn deep(&self) -> Result<Report, DeepViolation> {
        match self {
            Self::Chains(verified) => walk::check(verified),
            Self::Streams(verified) => walk::check_streams(verified),
        }
    }

    /// [`Verified::deep`] without a report.
    ///
    /// # Errors
    /// As for [`Verified::deep`].
    pub fn deep_only(&self) -> Result<(), DeepViolation> {
        match self {
            Self::Chains(verified) => walk::check_only(verified),
            Self::Streams(verified) => walk::check_streams(verified).map(drop),
        }
    }

    /// Does the CPU's part of a replay, and shows submissions.
    ///
    /// # Errors
    /// From `visit`, or [`Full`].
    pub fn submissions<E: From<Full>>(
        &self,
        visit: impl FnMut(&Submission<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Chains(verified) => walk::submissions(verified, visit),
            Self::Streams(verified) => walk::submissions(verified, visit),
        }
    }

    /// Job chains, for linking, and for other GPUs with a job manager.
    ///
    /// # Errors
    /// It has command streams.
    pub const fn chains(&self) -> Result<&mali_drive::Verified<'a>, NoChains> {
        match self {
            Self::Chains(verified) => Ok(verified),
            Self::Streams(_) => Err(NoChains),
        }
    }
}

pub(crate) enum Engine<'a, G: Gpu> {
    Chains(mali_drive::Session<'a, 'a, G>),
    Streams(streams::Session<'a, 'a, G>),
}

macro_rules! both {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {$(
        $(#[$doc])*
        pub(crate) fn $name(&mut self $(, $argument: $type)*) -> $result {
            match self {
                Self::Chains(engine) => engine.$name($($argument),*),
                Self::Streams(engine) => engine.$name($($argument),*),
            }
        }
    )+};
}

impl<'a, G: Gpu> Engine<'a, G> {
    pub(crate) fn open(
        gpu: G,
        verified: Verified<'a>,
        workspace: &'a mut Workspace,
        options: Options,
        tensors: &mut dyn Tensors,
    ) -> Result<Self, ReplayError> {
        Ok(match verified {
            Verified::Chains(verified) => Self::Chains(mali_drive::Session::open(
                gpu, verified, workspace, options, tensors,
            )?),
            Verified::Streams(verified) => Self::Streams(streams::Session::open(
                gpu, verified, workspace, options, tensors,
            )?),
        })
    }

    both! {
        gpu() -> &mut G;
        prepare(tensors: &mut dyn Tensors) -> Result<(), ReplayError>;
        run_segment(index: u32, tensors: &mut dyn Tensors) -> Result<(), ReplayError>;
        skip_segment(index: u32, tensors: &mut dyn Tensors) -> Result<(), ReplayError>;
        read_tensor(tensor: u32, bytes: &mut [u8]) -> Result<(), ReplayError>;
        close() -> Result<(), ReplayError>;
    }
}
