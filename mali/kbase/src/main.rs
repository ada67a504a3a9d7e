// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a recording's job chains through Arm's own kernel driver, as an app would: no register is touched here.
//!
//! It gives people a first job for a patched kbase (to record it, or to see that it works) without Arm's libraries.

mod context;
mod error;
mod interface;
mod memory;
mod place;
mod program;
mod tensors;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use gpureplay_core::Limits;
use gpureplay_format::{Action, Recording, TensorKind};
use mali_drive::verify;

use crate::context::{Context, PAGE};
use crate::error::Error;
use crate::memory::{Growth, Memory};
use crate::program::Program;
use crate::tensors::{Named, Value};

/// Run a recording's job chains through kbase, Arm's kernel driver for Mali GPUs
///
/// Data lies at the recording's own addresses, code at others with the same low 24 bits (kbase aligns it so); the
/// renderer states are adjusted. Values come from and go to .npy files.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  kbase-client recordings/saxpy-g52 --input x=x.npy --input y=y.npy --output out=out.npy
  kbase-client recordings/digits-g52 --input input=3.npy --output probabilities=out.npy --one-by-one
  kbase-client recordings/saxpy-g52 --grow --input x=x.npy --input y=y.npy --output out=out.npy

Exit codes: 0 done; 2 wrong usage; 4 a file is missing or does not fit; 5 the driver refused, or a job failed"
)]
struct Arguments {
    /// Directory with a recording.gpr, or such a file
    recording: PathBuf,
    /// Values of an input or weight; may be repeated
    #[arg(long, value_name = "NAME=FILE")]
    input: Vec<Named>,
    /// Where an output goes; may be repeated
    #[arg(long, value_name = "NAME=FILE")]
    output: Vec<Named>,
    /// The driver's device
    #[arg(long, value_name = "FILE", default_value = "/dev/mali0")]
    device: PathBuf,
    /// Submit each chain by itself instead of many atoms that depend on each other
    #[arg(long)]
    one_by_one: bool,
    /// Memory that the CPU does not write grows when the GPU touches it
    #[arg(long)]
    grow: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kbase-client: {error}");
            match error {
                Error::File { .. } | Error::Recording { .. } | Error::Tensor(_) => {
                    ExitCode::from(4)
                }
                _ => ExitCode::from(5),
            }
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let path = match arguments.recording.is_dir() {
        true => arguments.recording.join("recording.gpr"),
        false => arguments.recording.clone(),
    };
    let bytes = fs::read(&path).map_err(|source| Error::File {
        path: path.clone(),
        source,
    })?;
    let recording = parse(&path, &bytes)?;
    let inputs = arguments.input.iter();
    let values = inputs
        .map(|given| tensors::load(&recording, given))
        .collect::<Result<Vec<_>, _>>()?;
    require_inputs(&recording, &values)?;

    let context = Context::open(&arguments.device)?;
    eprintln!("{}, interface 11.{}", context.release()?, context.minor);
    let growth = if arguments.grow {
        Growth::OnFault
    } else {
        Growth::Never
    };
    let written = written(&recording)?;
    let memory = Memory::new(&context, &recording, growth, |va| written.contains(&va))?;
    let mut program = Program::new(recording, memory, arguments.one_by_one);
    let done = program.run(&context, &values)?;
    eprintln!("{} atoms in {} submissions", done.atoms, done.submissions);
    for given in &arguments.output {
        tensors::save(&program.recording, &program.memory, given)?;
    }
    Ok(())
}

/// What breaks a rule is refused: its regions become memory of this process.
fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<Recording<'a>, Error> {
    let refused = |fault| Error::Recording {
        path: path.into(),
        fault,
    };
    let recording = Recording::parse(bytes).map_err(|error| refused(format!("{error:?}")))?;
    verify(&recording, &Limits::DEFAULT)
        .map_err(|violation| refused(format!("it breaks the rule {}", violation.rule.name())))?;
    Ok(recording)
}

fn require_inputs(recording: &Recording<'_>, values: &[Value]) -> Result<(), Error> {
    for (index, entry) in (0u32..).zip(recording.tensors()) {
        let input = entry.kind == TensorKind::Input.code();
        if input && !values.iter().any(|value| value.tensor == index) {
            let name = recording.name(entry.name.get());
            return Err(Error::Tensor(format!("--input {name}=FILE is missing")));
        }
    }
    Ok(())
}

/// The pages that the CPU writes: uploads, headers, tensors.
fn written(recording: &Recording<'_>) -> Result<BTreeSet<u64>, Error> {
    let mut pages = BTreeSet::new();
    let mut add = |va: u64, length: u64| {
        let end = va.saturating_add(length);
        pages.extend((va & !(PAGE - 1)..end).step_by(PAGE as usize));
    };
    for segment in recording.segments() {
        for action in recording.segment_actions(segment).flatten() {
            match action {
                Action::Upload { va, length, .. } => add(va, length.into()),
                Action::Rearm { va } => add(va, 16),
                Action::Fill { va, length, byte } if byte != 0 => add(va, length.into()),
                Action::BindInput { tensor } => {
                    if let Some(entry) = recording.tensors().get(tensor as usize) {
                        tensors::runs(recording, entry, |va, _, count| {
                            add(va, count as u64);
                            Ok(())
                        })?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(pages)
}
