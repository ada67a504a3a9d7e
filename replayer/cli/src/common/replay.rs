// SPDX-License-Identifier: MIT OR Apache-2.0
//! One replay for `gpureplay run`: faults on request, and a failed attempt starts again at the last segment boundary.

use std::str::FromStr;
use std::time::{Duration, Instant};

use gpureplay_core::middleware::{FaultKind, Faulty};
use gpureplay_core::{Gpu, Options, ReplayError, Session, Tensors, Verified, Workspace};
use gpureplay_format::{Access, Recording, RegionKind};

use crate::common::failure::Failure;
use crate::common::layer_options::Step;

/// Calls among which a seed chooses.
const SEEDED_CALLS: u64 = 400;

/// `KIND@CALL` or `SEED` on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inject {
    /// This kind at the first call from this number on that it can disturb.
    At(FaultKind, u64),
    /// Kind and call follow from a number.
    Seed(u64),
}

impl FromStr for Inject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(seed) = text.parse() {
            return Ok(Self::Seed(seed));
        }
        let found = text.split_once('@').and_then(|(name, at)| {
            let kind = FaultKind::ALL.iter().find(|kind| kind.name() == name)?;
            Some(Self::At(*kind, at.parse().ok()?))
        });
        found.ok_or_else(|| {
            let names: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
            format!(
                "expected KIND@CALL or a seed; kinds are {}",
                names.join(", ")
            )
        })
    }
}

impl Inject {
    /// Why the command fails when the fault did not happen.
    pub(crate) fn never(self, calls: u64) -> Failure {
        let fault = match self {
            Self::At(kind, at) => format!("{}@{at}", kind.name()),
            Self::Seed(seed) => seed.to_string(),
        };
        Failure::Usage(format!(
            "--inject {fault}: the fault never happened; the replay made {calls} calls, and not each of them can be disturbed in each way"
        ))
    }

    /// A device that has this fault.
    pub(crate) fn on<G: Gpu>(self, gpu: G) -> Faulty<G> {
        match self {
            Self::At(kind, at) => Faulty::new(gpu, kind, at),
            Self::Seed(seed) => Faulty::seeded(gpu, seed, SEEDED_CALLS),
        }
    }
}

/// What a replay took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effort {
    /// Until the first run could start.
    pub(crate) load: Duration,
    /// All attempts at running.
    pub(crate) replay: Duration,
    /// Chains of the last attempt.
    pub(crate) chains: u32,
    /// Attempts after the first.
    pub(crate) retries: u32,
}

/// What the GPU's memory held at a segment boundary.
struct Checkpoint {
    /// Index of the segment that comes next.
    next: u32,
    /// Address and contents of all memory that jobs may change, thread storage left out.
    memory: Vec<(u64, Vec<u8>)>,
}

/// Replays these parts of a recording; after an error again, up to `retries` times, from the last segment boundary that was reached.
pub(crate) fn replay(
    gpu: &mut dyn Gpu,
    verified: Verified<'_>,
    options: Options,
    (tensors, steps): (&mut dyn Tensors, &[Step]),
    retries: u32,
    started: Instant,
) -> (Result<(), ReplayError>, Effort) {
    let mut effort = Effort::default();
    let mut workspace = Box::new(Workspace::new());
    let mut checkpoint = None;
    loop {
        let result = attempt(
            &mut *gpu,
            verified,
            (&mut workspace, options),
            (&mut *tensors, steps),
            (&mut checkpoint, retries > 0),
            (&mut effort, started),
        );
        if result.is_ok() || effort.retries >= retries {
            return (result, effort);
        }
        effort.retries += 1;
    }
}

fn attempt(
    gpu: &mut dyn Gpu,
    verified: Verified<'_>,
    (workspace, options): (&mut Workspace, Options),
    (tensors, steps): (&mut dyn Tensors, &[Step]),
    (checkpoint, keep): (&mut Option<Checkpoint>, bool),
    (effort, started): (&mut Effort, Instant),
) -> Result<(), ReplayError> {
    let recording = *verified.recording();
    let mut session = Session::open(gpu, verified, workspace, options, tensors)?;
    if effort.load.is_zero() {
        effort.load = started.elapsed();
    }
    let begun = Instant::now();
    let mut from = 0;
    if let Some(checkpoint) = checkpoint {
        from = checkpoint.next;
        for (va, bytes) in &checkpoint.memory {
            let restored = session.gpu().write_memory(*va, bytes);
            restored.map_err(|error| ReplayError {
                action: gpureplay_core::NO_ACTION,
                submits: 0,
                kind: gpureplay_core::ErrorKind::Device(error),
            })?;
        }
    }
    let mut result = Ok(());
    for step in steps.iter().filter(|step| step.segment >= from) {
        let index = step.segment;
        result = match step.skip {
            true => session.skip_segment(index, tensors),
            false => session.run_segment(index, tensors),
        };
        if result.is_err() {
            break;
        }
        if keep && steps.last() != Some(step) {
            *checkpoint = save(session.gpu(), &recording, index + 1).or(checkpoint.take());
        }
    }
    effort.replay += begun.elapsed();
    effort.chains = session.submits();
    result?;
    session.finish()
}

/// Reads all memory that jobs may change; `None` when the device does not give it.
fn save(gpu: &mut dyn Gpu, recording: &Recording<'_>, next: u32) -> Option<Checkpoint> {
    let mut memory = Vec::new();
    for region in recording.regions() {
        let writable = Access(region.access).contains(Access::WRITE);
        if !writable || region.kind == RegionKind::Scratch.code() {
            continue;
        }
        let mut bytes = vec![0; usize::try_from(region.bytes()).ok()?];
        gpu.read_memory(region.va.get(), &mut bytes).ok()?;
        memory.push((region.va.get(), bytes));
    }
    Some(Checkpoint { next, memory })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named_by_kind_and_call_or_by_a_seed() {
        assert_eq!("7".parse(), Ok(Inject::Seed(7)));
        assert_eq!(
            "job-fault@12".parse(),
            Ok(Inject::At(FaultKind::FailedJob, 12))
        );
        for wrong in ["", "job-fault", "job-fault@", "nothing@3", "-1"] {
            assert!(wrong.parse::<Inject>().is_err(), "{wrong}");
        }
    }
}
