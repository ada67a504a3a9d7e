// SPDX-License-Identifier: MIT OR Apache-2.0
//! What OpenCL notes add: tensors and job names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use clap::Args;
use gpureplay_compile::notes::{self, Kept, Launches, Proposal, ProposeError, Turn, launches};
use gpureplay_compile::{Capture, Found, Role, TensorFile, tag_all};
use gpureplay_library::{escaped, shown};
use gpureplay_tensors::Tensor;

use crate::common::failure::Failure;
use crate::common::user_tensors::StatedOptions;
use crate::manifest::{Job, MOST_NAME, beginning};
use crate::{Result, text};

/// Options about tensors that notes name.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NoteOptions {
    #[command(flatten)]
    stated: StatedOptions,
    /// Keep what the app writes in every run as constants instead of making weights of it
    #[arg(long)]
    fixed_weights: bool,
}

impl NoteOptions {
    fn choices(&self) -> Result<notes::Choices> {
        Ok(notes::Choices {
            stated: self.stated.read()?,
            fixed_weights: self.fixed_weights,
            ..notes::Choices::default()
        })
    }
}

#[derive(Default)]
pub(crate) struct Noted {
    pub(crate) launches: Launches,
    pub(crate) second: Vec<(String, Tensor)>,
    /// Written in earlier turns of a loop.
    pub(crate) earlier: Vec<Range<u64>>,
    pub(crate) remarks: Vec<String>,
}

pub(crate) struct Wanted<'a> {
    pub(crate) options: &'a NoteOptions,
    pub(crate) states: Vec<String>,
    /// What one of several steps leaves.
    pub(crate) step: Option<(Turn, Vec<Kept>)>,
}

/// Tensors of files first, then of notes.
pub(crate) fn find(
    capture: &Capture,
    second: Option<&Capture>,
    files: &[TensorFile],
    wanted: Wanted<'_>,
) -> Result<(Vec<Found>, Noted)> {
    let mut tensors =
        tag_all(capture, files).map_err(|error| Failure::Recording(error.to_string()))?;
    let launches = launches(capture);
    let mut noted = Noted {
        remarks: launches.unexplained.clone(),
        launches,
        ..Noted::default()
    };
    let named = |role| files.iter().any(|file| file.role == role);
    let states = wanted.step.is_some() || !wanted.states.is_empty();
    let whole = named(Role::Input) && named(Role::Output) && !states;
    if !whole && (files.is_empty() || !capture.opencl.is_empty()) {
        let mut choices = wanted.options.choices()?;
        choices.states = wanted.states;
        if let Some((turn, kept)) = wanted.step {
            noted.remarks.push(format!(
                "the app does the same {} times: the recording is the first time, and continues from {}",
                turn.turns,
                text::count(kept.len() as u64, "state")
            ));
            (choices.step, choices.kept) = (Some(turn), kept);
        }
        let proposed = match second {
            Some(second) if capture.opencl.is_empty() && second.opencl.is_empty() => {
                notes::propose_unnoted(capture, second, &choices)
            }
            _ => notes::propose(capture, second, &choices),
        };
        let mut proposal = proposed.map_err(|error| match &error {
            ProposeError::Jobs { .. } | ProposeError::Steps { .. } => {
                Failure::Runs(error.to_string())
            }
            _ => Failure::Recording(error.to_string()),
        })?;
        proposal.leave_to(&tensors);
        let wanted = |tensor: &Found| match tensor.role {
            Role::State => true,
            Role::Weight => files.is_empty(),
            role => !named(role),
        };
        proposal.tensors.retain(wanted);
        noted.remarks.extend(remarks(&proposal));
        let outputs = tensors.iter().chain(&proposal.tensors);
        if proposal.lost_output && !outputs.clone().any(Found::is_result) {
            let remarks = proposal.remarks.join("; ");
            return Err(Failure::Recording(format!(
                "{remarks}; the recording would have no output"
            )));
        }
        noted.second = proposal.second;
        noted.earlier = proposal.earlier;
        tensors.extend(proposal.tensors);
    }
    Ok((tensors, noted))
}

fn remarks(proposal: &Proposal) -> Vec<String> {
    let mut out = proposal.remarks.clone();
    let weights = proposal.tensors.iter().any(|t| t.role == Role::Weight);
    let inputs = proposal.tensors.iter().filter(|t| t.role == Role::Input);
    if !proposal.sure && (weights || inputs.count() > 1) {
        out.push(
            "one run does not tell inputs from weights for sure: record a second run with another input".to_owned(),
        );
    }
    out
}

impl Noted {
    pub(crate) fn jobs(&self) -> Vec<Job> {
        let chains = self.launches.chains.iter().enumerate();
        let job = |(submission, dispatch): (usize, &Option<notes::Dispatch>)| {
            let dispatch = dispatch.as_ref()?;
            Some(Job {
                submission,
                job: None,
                launch: dispatch.launch,
                kernel: beginning(&dispatch.kernel, MOST_NAME).to_owned(),
                global: dispatch.global.into(),
                local: dispatch.local.map(Into::into),
            })
        };
        chains.filter_map(job).collect()
    }

    /// Most frequent first; empty without notes.
    pub(crate) fn kernels(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for dispatch in self.launches.chains.iter().flatten() {
            *counts.entry(&dispatch.kernel).or_default() += 1;
        }
        if counts.is_empty() {
            return String::new();
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let words: Vec<String> = counts
            .iter()
            .map(|(name, count)| match count {
                1 => escaped(name).into_owned(),
                count => format!("{count} x {}", escaped(name)),
            })
            .collect();
        format!(
            "kernels of {} of {}: {}",
            self.launches.named(),
            text::count(self.launches.chains.len() as u64, "chain"),
            words.join(", ")
        )
    }
}

pub(crate) fn next_command(directory: &Path, tensors: &[Found]) -> Option<String> {
    let of = |role: Role| tensors.iter().filter(move |t| t.role == role);
    let mut out = format!("gpureplay run {}", shown(directory));
    of(Role::Input).next()?;
    for input in of(Role::Input) {
        let _ = write!(out, " --input {}=FILE", input.name);
    }
    for output in of(Role::Output) {
        let _ = write!(out, " --output {}=FILE.npy", output.name);
    }
    Some(out)
}
