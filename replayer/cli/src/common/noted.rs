// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an OpenCL layer's notes add to a recording: tensors that no file names, and names of jobs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use gpureplay_compile::notes::{self, Form, Kept, Launches, Proposal, Turn, launches};
use gpureplay_compile::{Capture, Found, Role, TensorFile, tag_all};
use gpureplay_io::Tensor;
use serde::Deserialize;

use crate::common::failure::Failure;
use gpureplay_library::{escaped, shown};

use crate::manifest::Job;
use crate::{Result, text};

/// Longest file of descriptions that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Options about tensors that notes name.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NoteOptions {
    /// Another name for a tensor that the app's OpenCL calls show
    #[arg(long, value_name = "OLD=NEW")]
    name: Vec<Equation<String>>,
    /// Type and shape of such a tensor, such as f32[1,224,224,3]
    #[arg(long, value_name = "NAME=TYPE[N,…]")]
    tensor: Vec<Equation<Form>>,
    /// Names, types and shapes in a file, as --suggest prints them
    #[arg(long, value_name = "FILE")]
    tensors: Option<PathBuf>,
    /// Keep what the app writes in every run as constants instead of making weights of it
    #[arg(long)]
    fixed_weights: bool,
}

/// `LEFT=RIGHT` on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Equation<T> {
    left: String,
    right: T,
}

impl<T: FromStr<Err: std::fmt::Display>> FromStr for Equation<T> {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once('=') {
            Some((left, right)) if !left.is_empty() && !right.is_empty() => Ok(Self {
                left: left.to_owned(),
                right: right.parse().map_err(|error: T::Err| error.to_string())?,
            }),
            _ => Err("expected two words with a '=' between".into()),
        }
    }
}

/// A file of descriptions: a table for each tensor, by the name that its argument gives.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Descriptions {
    tensors: BTreeMap<String, Description>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    form: Option<String>,
}

impl NoteOptions {
    fn choices(&self) -> Result<notes::Choices> {
        let mut choices = notes::Choices {
            fixed_weights: self.fixed_weights,
            ..notes::Choices::default()
        };
        if let Some(path) = &self.tensors {
            read_descriptions(path, &mut choices)?;
        }
        let named = self.name.iter().cloned();
        choices.rename.extend(named.map(|e| (e.left, e.right)));
        let formed = self.tensor.iter().cloned();
        choices.forms.extend(formed.map(|e| (e.left, e.right)));
        Ok(choices)
    }
}

fn read_descriptions(path: &Path, choices: &mut notes::Choices) -> Result<()> {
    let wrong = |reason: String| Failure::Input(format!("{}: {reason}", shown(path)));
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !size.is_file() || size.len() > MAX_BYTES {
        return Err(wrong(format!("is not a file of at most {MAX_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let read: Descriptions = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    for (name, description) in read.tensors {
        if let Some(form) = description.form {
            let form = form.parse().map_err(wrong)?;
            choices.forms.insert(name.clone(), form);
        }
        if let Some(new) = description.name.filter(|new| *new != name) {
            choices.rename.insert(name, new);
        }
    }
    Ok(())
}

/// What notes say about a trace.
#[derive(Default)]
pub(crate) struct Noted {
    /// Which launch each chain belongs to.
    pub(crate) launches: Launches,
    /// Values of the second run, by tensor.
    pub(crate) second: Vec<(String, Tensor)>,
    /// What the app wrote in earlier turns of a loop.
    pub(crate) earlier: Vec<Range<u64>>,
    /// What the user should know.
    pub(crate) remarks: Vec<String>,
}

/// What is wanted of the tensors that notes show.
pub(crate) struct Wanted<'a> {
    /// The user's options.
    pub(crate) options: &'a NoteOptions,
    /// Names of states.
    pub(crate) states: Vec<String>,
    /// The trace is one step of several, and this is what it leaves for the next one.
    pub(crate) step: Option<(Turn, Vec<Kept>)>,
}

/// Finds tensors: those of files by their bit patterns, then those that notes show, for each part of which no file is named.
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
                "the app does the same {} times: the recording is the first time, and goes on from {}",
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
        let mut proposal = proposed.map_err(|error| Failure::Recording(error.to_string()))?;
        proposal.leave_to(&tensors);
        let wanted = |tensor: &Found| match tensor.role {
            Role::State => true,
            Role::Weight => files.is_empty(),
            role => !named(role),
        };
        proposal.tensors.retain(wanted);
        noted.remarks.extend(remarks(&proposal));
        noted.second = proposal.second;
        noted.earlier = proposal.earlier;
        tensors.extend(proposal.tensors);
    }
    Ok((tensors, noted))
}

/// What a proposal leaves open.
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
    /// Entries of the manifest.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        let chains = self.launches.chains.iter().enumerate();
        let job = |(submission, dispatch): (usize, &Option<notes::Dispatch>)| {
            let dispatch = dispatch.as_ref()?;
            Some(Job {
                submission,
                job: None,
                launch: dispatch.launch,
                kernel: dispatch.kernel.clone(),
                global: dispatch.global.into(),
                local: dispatch.local.map(Into::into),
            })
        };
        chains.filter_map(job).collect()
    }

    /// How many chains each kernel has, the most frequent first; empty without notes.
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

/// A file of descriptions of these tensors, to be changed and given to `--tensors`.
pub(crate) fn suggestion(tensors: &[Found]) -> String {
    let mut out = String::from(
        "# Tensors by the kernel arguments that use them. Change names, types and shapes; the number of bytes stays.\n",
    );
    for tensor in tensors {
        let role = gpureplay_compile::plan::tensor_kind(tensor.role).name();
        let shape: Vec<u64> = tensor.tensor.shape().to_vec();
        let form = text::typed_shape(tensor.layout.dtype, &shape);
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "\n# {role}\n[tensors.\"{0}\"]\nname = \"{0}\"\nform = \"{form}\"\n",
            tensor.name
        );
    }
    out
}

/// The command that replays a recording with another input.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_have_two_sides() {
        let parsed: Equation<String> = "a.b=c".parse().unwrap();
        assert_eq!((parsed.left.as_str(), parsed.right.as_str()), ("a.b", "c"));
        assert!("a".parse::<Equation<String>>().is_err());
        assert!("=a".parse::<Equation<String>>().is_err());
        let form: Equation<Form> = "x=f32[1,28,28]".parse().unwrap();
        assert_eq!(form.right.to_string(), "f32[1,28,28]");
        for bad in ["x=f32", "x=f32[]", "x=f32[0]", "x=f99[1]", "x=f32[1"] {
            assert!(bad.parse::<Equation<Form>>().is_err(), "{bad}");
        }
    }
}
