// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeated steps: the first becomes the recording.

use std::path::PathBuf;
use std::str::FromStr;

use gpureplay_compile::notes::{Kept, Turn, first_turn, kept};
use gpureplay_compile::{Capture, Options, compile_found};

use crate::Result;
use crate::common::failure::Failure;
use crate::common::named_file::NamedFile;
use crate::common::page_reads;
use crate::common::terminal::stage;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StateArgument {
    /// From OpenCL calls.
    Named(String),
    File(NamedFile),
}

impl FromStr for StateArgument {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.contains('=') {
            true => text.parse().map(Self::File),
            false if text.is_empty() => Err("expected NAME or NAME=FILE".into()),
            false => Ok(Self::Named(text.to_owned())),
        }
    }
}

impl StateArgument {
    pub(crate) fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Named(_) => None,
            Self::File(file) => Some(&file.path),
        }
    }
}

/// A repeated step that starts from what it left; the captures go up to its end.
pub(crate) struct Step {
    pub(crate) capture: Capture,
    pub(crate) second: Option<Capture>,
    pub(crate) turn: Turn,
    pub(crate) kept: Vec<Kept>,
}

/// The inner error gives the traces back: no step is repeated, or it leaves nothing. Unequal steps are a failure.
pub(crate) fn find(
    capture: Capture,
    second: Option<Capture>,
) -> Result<std::result::Result<Step, (Capture, Option<Capture>)>> {
    let Some(turn) = first_turn(&capture) else {
        return Ok(Err((capture, second)));
    };
    stage("replaying the repeated steps once, to see what they leave for each other");
    let wrong = |error: String| Failure::Recording(format!("the app's steps: {error}"));
    let whole = compile_found(&capture, Vec::new(), &Options::default(), |_, _| None)
        .map_err(|error| wrong(error.to_string()))?;
    let touched = page_reads::touched(&capture, &whole.recording).map_err(wrong)?;
    // Steps that leave nothing may launch what they like.
    let kept = match kept(&capture, &touched) {
        Ok(kept) if kept.is_empty() => return Ok(Err((capture, second))),
        kept => kept.map_err(|error| Failure::Recording(error.to_string()))?,
    };
    let second = match second.map(|second| (first_turn(&second), second)) {
        None => None,
        Some((Some(other), second)) => Some(second.until(other.jobs, other.notes)),
        Some((None, _)) => {
            return Err(wrong(
                "the second trace does not repeat a step: record as many steps as in the first"
                    .into(),
            ));
        }
    };
    Ok(Ok(Step {
        capture: capture.until(turn.jobs, turn.notes),
        second,
        turn,
        kept,
    }))
}
