// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw trace to recording.
//!
//! A raw trace ([`gpureplay_trace`]) holds all that a driver did to the GPU and that the CPU put into its memory.
//! The engine itself does probing, power, page tables, interrupts and polls. What remains: what to load, what to
//! restore before every run, where inputs and outputs are, which chains to start.
//!
//! 1. [`Capture::read`] checks a trace and keeps jobs, memory and mappings.
//! 2. [`tag::find`] finds the app's files in GPU memory; [`notes::propose`] makes tensors from an OpenCL layer's
//!    notes.
//! 3. [`plan::plan`] decides what to load and restore.
//! 4. [`emit::emit`] writes and verifies the recording.
//!
//! The same trace gives the same bytes.

#![forbid(unsafe_code)]

pub mod capture;
pub mod chain;
pub mod crossing;
pub mod differential;
pub mod emit;
mod error;
mod mapped;
pub mod notes;
pub mod pages;
pub mod plan;
pub mod ranges;
mod relocation;
pub mod tag;
pub mod touched;

use std::collections::BTreeSet;

use gpureplay_core::Limits;
use gpureplay_format::Recording;
use gpureplay_tensors::Tensor;
use mali_drive::verify;

pub use capture::Capture;
pub use crossing::Reads;
pub use emit::{Granularity, Options};
pub use error::CompileError;
pub use mali_jobs::link::{MOST_JOBS, Place};
pub use tag::{Found, Role};
pub use touched::Touched;

/// A file that the app reads or writes.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorFile {
    /// Its role.
    pub role: Role,
    /// Name in the recording.
    pub name: String,
    /// Its contents during the recording.
    pub tensor: Tensor,
}

/// A finished recording and its facts.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Bytes of `recording.gpr`.
    pub recording: Vec<u8>,
    /// In file order.
    pub tensors: Vec<Found>,
    /// Sizes, for people.
    pub summary: Summary,
    /// Each submission's jobs in the recording.
    pub places: Vec<Place>,
    /// Why chains are not linked although asked for.
    pub unlinked: Option<String>,
}

/// Sizes of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Chains that every run submits.
    pub run_chains: usize,
    /// Chains that only set-up submits.
    pub setup_chains: usize,
    /// Jobs in all chains.
    pub jobs: usize,
    /// Pages of GPU memory.
    pub pages: u64,
    /// Pages that hold nothing outside a job.
    pub scratch_pages: u64,
    /// Loaded by set-up, zeros included.
    pub loaded_bytes: u64,
    /// Restored by every run, zeros included.
    pub restored_bytes: u64,
    /// Loaded by every run between its jobs.
    pub between_bytes: u64,
    /// Chains before the first input that every run repeats, because they depend on replaceable weights.
    pub lost_setup: usize,
}

/// # Errors
/// A tensor was not found, or memory cannot be replayed; see [`CompileError`].
pub fn compile(
    capture: &Capture,
    files: &[TensorFile],
    options: &Options,
) -> Result<Compiled, CompileError> {
    compile_observed(capture, files, options, |_, _| None)
}

/// Compiles as [`compile`]; `observe` may find what each submission reads, from the recording and its tensors. Each
/// part then takes what it reads, and unnamed memory between parts becomes a tensor of bytes.
///
/// # Errors
/// As for [`compile`].
pub fn compile_observed(
    capture: &Capture,
    files: &[TensorFile],
    options: &Options,
    observe: impl FnOnce(&[u8], &[Found]) -> Option<Reads>,
) -> Result<Compiled, CompileError> {
    compile_found(capture, tag_all(capture, files)?, options, observe)
}

/// Finds tensors by bit patterns.
///
/// # Errors
/// The first one not found.
pub fn tag_all(capture: &Capture, files: &[TensorFile]) -> Result<Vec<Found>, CompileError> {
    let find = |file: &TensorFile| tag::find(capture, file.role, &file.name, &file.tensor);
    let found = files.iter().map(find).collect::<Result<_, _>>()?;
    Ok(found)
}

/// Compiles a trace of known tensors; `observe` as for [`compile_observed`].
///
/// # Errors
/// As for [`compile`].
pub fn compile_found(
    capture: &Capture,
    mut tensors: Vec<Found>,
    options: &Options,
    observe: impl FnOnce(&[u8], &[Found]) -> Option<Reads>,
) -> Result<Compiled, CompileError> {
    let plan = plan::plan(capture, &tensors)?;
    let parts = emit::parts(capture, plan.first_run, &tensors, options);
    let mut recording = emit::emit(capture, &plan, &tensors, options, (&parts, None))?;
    if parts.len() > 1
        && let Some(reads) = observe(&recording, &tensors)
    {
        tensors.extend(crossing::unnamed(capture, &plan, &parts, &tensors, &reads));
        recording = emit::emit(capture, &plan, &tensors, options, (&parts, Some(&reads)))?;
    }
    let (recording, places, unlinked) = link(capture, recording, options);
    let (setup_chains, run_chains) = submissions(&places, plan.first_run);
    let summary = Summary {
        run_chains,
        setup_chains,
        jobs: capture.jobs.iter().map(capture::Job::count).sum(),
        pages: pages(&recording)?,
        scratch_pages: plan.scratch_pages,
        loaded_bytes: plan.load.bytes(),
        restored_bytes: plan.restore.bytes(),
        between_bytes: plan
            .before_job
            .iter()
            .skip(plan.first_run + 1)
            .map(|r| r.bytes())
            .sum(),
        lost_setup: plan.first_input.saturating_sub(plan.first_run),
    };
    Ok(Compiled {
        recording,
        tensors,
        summary,
        places,
        unlinked,
    })
}

fn pages(recording: &[u8]) -> Result<u64, CompileError> {
    let recording = Recording::parse(recording).map_err(CompileError::Unreadable)?;
    let regions = recording.regions().iter();
    Ok(regions.map(|region| u64::from(region.pages.get())).sum())
}

fn submissions(places: &[Place], first_run: usize) -> (usize, usize) {
    let all = |places: &[Place]| {
        let all: BTreeSet<u32> = places.iter().map(|place| place.submission).collect();
        all.len()
    };
    let (setup, run) = places.split_at(first_run.min(places.len()));
    (all(setup), all(run))
}

/// Also where each chain's jobs are, and why the recording was left as it is.
fn link(
    capture: &Capture,
    recording: Vec<u8>,
    options: &Options,
) -> (Vec<u8>, Vec<Place>, Option<String>) {
    let as_it_is = || {
        let jobs = (0..).zip(&capture.jobs);
        let place = |(submission, job): (u32, &capture::Job)| Place {
            submission,
            first: 0,
            jobs: job.count() as u32,
        };
        jobs.map(place).collect()
    };
    let Some(most) = options.link.filter(|_| !capture.has_streams()) else {
        return (recording, as_it_is(), None);
    };
    let linked = Recording::parse(&recording)
        .map_err(|error| format!("{error:?}"))
        .and_then(|view| {
            verify(&view, &Limits::DEFAULT)
                .map_err(|violation| violation.rule.name().to_owned())
                .and_then(|verified| {
                    mali_jobs::link::link(&recording, &verified, most)
                        .map_err(|error| error.to_string())
                })
        });
    match linked {
        Ok(linked) => (linked.bytes, linked.places, None),
        Err(reason) => (recording, as_it_is(), Some(reason)),
    }
}
