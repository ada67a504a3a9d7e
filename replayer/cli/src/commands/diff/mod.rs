// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay diff`.

#[cfg(test)]
mod tests;
mod written;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use gpureplay_core::{Chain, ErrorKind, Gpu};
use gpureplay_format::{Access, Opcode, RegionKind};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Bindings, Error, HeldSignals, Recording, Session};
use mali_drive::kinds::follows_work;
use mali_drive::middleware::{Diff as LockStep, Divergence};
use serde::Serialize;
use written::{Written, written};

use crate::common::failure::{Failure, Outcome};
use crate::common::fault_argument::Inject;
use crate::common::job_options::JobOptions;
use crate::common::model_options::ModelOptions;
use crate::common::tensor_arguments::{TensorFile, bind_or_take_case};
use crate::common::terminal;
use crate::common::trust_options::TrustOptions;
use crate::{Result, explain, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay diff recordings/digits-g52 --device model --against nano
      does the board compute what the model computes?
  gpureplay diff recordings/digits-g52 --device model --against model --inject lost-write@300
      shows what a difference looks like
Exit code 1: the devices differ.";

/// Find where two devices disagree
///
/// Registers are compared whenever the engine reads one, and all memory that jobs may write after every chain (with --jobs: after the
/// chains of these), thread storage left out. Counters and what tells one GPU from another are not compared. Where memory differs, the chain is run
/// again on the model to find the instruction that writes the byte.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Diff {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// The device that is right
    #[arg(short, long, value_name = "DEVICE", default_value = "model")]
    device: Choice,
    /// The device that is compared with it
    #[arg(long, value_name = "DEVICE")]
    against: Choice,
    /// File for an input; the manifest's first case without any
    #[arg(short, long = "input", value_name = "[NAME=]FILE")]
    inputs: Vec<TensorFile>,
    #[command(flatten)]
    jobs: JobOptions,
    /// Disturb the second device: KIND@CALL or a seed
    #[arg(long, value_name = "FAULT")]
    inject: Option<Inject>,
    /// Replay even if a device is not the GPU that was recorded
    #[arg(long = "i-know-this-is-the-wrong-gpu")]
    wrong_gpu: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    trust: TrustOptions,
}

/// The first difference, for `--json`.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Report {
    same: bool,
    chains: u32,
    difference: Option<String>,
    /// Header of the job that wrote the byte, or that ran last; of a command stream, the instruction that dispatched it.
    job: Option<String>,
    /// What `job` is the address of.
    #[serde(skip)]
    of: &'static str,
    address: Option<String>,
    /// What wrote the byte.
    writer: Option<Written>,
    error: Option<String>,
}

struct Pair {
    both: LockStep<Device, Device>,
    memory: Vec<(u64, u64)>,
    /// Numbers of the chains after which memory is compared; `None`: all.
    after: Option<BTreeSet<usize>>,
    next: usize,
    outcome: Arc<Mutex<Outcomes>>,
}

#[derive(Clone, Copy, Default)]
struct Outcomes {
    divergence: Option<Divergence>,
    /// The second device's calls, and whether one went wrong.
    fault: Option<(u64, bool)>,
}

impl Pair {
    fn compare(&mut self) {
        let mut block = [0; 4096];
        for at in 0..self.memory.len() {
            let (va, bytes) = self.memory[at];
            for offset in (0..bytes).step_by(block.len()) {
                if self.both.divergence().is_some() {
                    return;
                }
                // Failing to read is a difference of its own.
                let _ = self.both.read_memory(va + offset, &mut block);
            }
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.divergence = self.both.divergence();
        outcome.fault = self.both.get_ref().1.fault();
    }
}

impl gpureplay_core::Wrapper for Pair {
    type Inner = LockStep<Device, Device>;

    fn inner(&mut self) -> &mut Self::Inner {
        &mut self.both
    }

    fn after_chain(&mut self, chain: &Chain, result: std::result::Result<(), ErrorKind>) {
        Gpu::after_chain(&mut self.both, chain, result);
        let wanted = self
            .after
            .as_ref()
            .is_none_or(|after| after.contains(&self.next));
        self.next += 1;
        if result.is_ok() && wanted {
            self.compare();
        }
    }
}

impl Diff {
    pub(crate) fn execute(&self) -> Result {
        let recording = Recording::open_trusted(&self.recording, &self.trust.read()?)?.apart()?;
        let id = recording.verified().recording().gpu_id();
        let choices = [&self.device, &self.against].map(|choice| choice.resolved(&recording));
        let held = choices
            .iter()
            .any(|choice| matches!(choice, Choice::DevMem(_)));
        let _held = HeldSignals::if_needed(held);
        let open = |choice: &Choice| Device::open(choice, id, self.model.into());
        let (mut first, mut second) = (open(&choices[0])?, open(&choices[1])?);
        if !self.wrong_gpu {
            let view = recording.verified().recording();
            for device in [&mut first, &mut second] {
                device.check_identity(view).map_err(|error| {
                    let text = explain::replay_error(view, &error, None);
                    Failure::Device(format!("{}: {text}", device.description()))
                })?;
            }
        }
        if let Some(inject) = self.inject {
            second = second.with_fault(inject.0);
        }
        let after = self.jobs.chosen().then(|| self.jobs.select(&recording));
        let after = after.transpose()?.map(|(jobs, selected)| {
            let selected = selected.iter().filter_map(|job| jobs.jobs.get(*job));
            selected.map(|job| job.chain).collect()
        });
        let bind = |session: &mut Session| bind_or_take_case(&self.inputs, session);
        let how = How {
            ignore_identity: self.wrong_gpu,
            after,
        };
        let (found, bindings) = lock_step(&recording, how, bind, (first, second))?;
        if let (Some(inject), Some((calls, false))) = (self.inject, found.fault) {
            return Err(inject.never(calls));
        }
        let work_limit = gpureplay_library::ModelOptions::from(self.model).work_limit;
        let report = report(&recording, &found, &bindings, work_limit);
        let mut out = terminal::stdout();
        if self.json {
            terminal::json(&mut out, &report)?;
        } else {
            print(&mut out, &report)?;
        }
        match (&report.difference, report.error) {
            (Some(_), _) => Ok(Outcome::Mismatch),
            (None, Some(error)) => Err(Failure::Device(error)),
            (None, None) => Ok(Outcome::Done),
        }
    }
}

struct Found {
    divergence: Option<Divergence>,
    fault: Option<(u64, bool)>,
    chains: u32,
    error: Option<String>,
}

#[derive(Default)]
struct How {
    ignore_identity: bool,
    after: Option<BTreeSet<usize>>,
}

/// Bytes of either device; more would take hours.
const MAX_COMPARED: u64 = 1 << 40;

fn is_bounded(bytes: u64, chains: u64) -> Result<()> {
    match bytes.saturating_mul(chains) > MAX_COMPARED {
        true => Err(Failure::Usage(format!(
            "{} would be compared after each of {}, more than {} together; choose some with --jobs",
            text::bytes(bytes),
            text::count(chains, "chain"),
            text::bytes(MAX_COMPARED)
        ))),
        false => Ok(()),
    }
}

fn lock_step(
    recording: &Recording,
    how: How,
    bind: impl FnOnce(&mut Session) -> Result<()>,
    (first, second): (Device, Device),
) -> Result<(Found, Bindings)> {
    let regions = recording.verified().recording().regions().iter();
    let regions = regions.filter(|region| {
        Access(region.access).contains(Access::WRITE) && region.kind != RegionKind::Scratch.code()
    });
    let outcome = Arc::new(Mutex::new(Outcomes::default()));
    let compared = how
        .after
        .as_ref()
        .and_then(|after| u32::try_from(after.len()).ok());
    let memory: Vec<(u64, u64)> = regions
        .map(|region| (region.va.get(), region.bytes()))
        .collect();
    let view = recording.verified().recording();
    let chains = view.segments().iter();
    let chains = chains.map(|segment| u64::from(view.count(segment, Opcode::Submit)));
    let chains = compared.map_or_else(|| chains.sum(), u64::from);
    is_bounded(memory.iter().map(|(_, bytes)| *bytes).sum(), chains)?;
    let pair = Pair {
        both: LockStep::new(first, second, |register| !follows_work(register)),
        memory,
        after: how.after,
        next: 0,
        outcome: outcome.clone(),
    };
    let mut session = Session::on(
        recording.clone(),
        Device::custom(Box::new(pair), "two devices"),
    );
    session.ignore_identity(how.ignore_identity);
    bind(&mut session)?;
    let result = session.run().and_then(|()| session.close());
    let chains = compared.unwrap_or(session.timing().chains);
    let bindings = session.bindings().clone();
    drop(session);
    let Outcomes { divergence, fault } = *outcome.lock().unwrap_or_else(PoisonError::into_inner);
    let error = match result {
        Ok(()) => None,
        Err(Error::Replay { text, .. }) => Some(text),
        Err(error) => return Err(error.into()),
    };
    let found = Found {
        divergence,
        fault,
        chains,
        error,
    };
    Ok((found, bindings))
}

fn print(out: &mut impl Write, report: &Report) -> Result<()> {
    let Some(difference) = &report.difference else {
        if report.error.is_none() {
            let chains = text::count(report.chains.into(), "chain");
            writeln!(out, "the devices agree after each of {chains}")?;
        }
        return Ok(());
    };
    writeln!(out, "{difference}")?;
    match &report.writer {
        Some(writer) => {
            for line in writer.text(report.of).lines() {
                writeln!(out, "  {line}")?;
            }
        }
        None => {
            if let Some(job) = &report.job {
                writeln!(out, "  in the chain that ended with {} {job}", report.of)?;
            }
        }
    }
    Ok(())
}

fn report(
    recording: &Recording,
    found: &Found,
    bindings: &Bindings,
    work_limit: Option<u64>,
) -> Report {
    let verified = recording.verified();
    let (before, difference, address) = match found.divergence {
        None => (0, None, None),
        Some(Divergence::Register(chains, offset, first, second)) => {
            let name = text::register(offset);
            let text = format!(
                "after {chains} chains {name} is {first:#x} on the first device and {second:#x} on the second"
            );
            (chains, Some(text), None)
        }
        Some(Divergence::Memory(chains, va, first, second)) => {
            let place = explain::address_text(verified.recording(), va);
            let text = format!(
                "after {chains} chains the byte at {place} is {first:#04x} on the first device and {second:#04x} on the second"
            );
            (chains, Some(text), Some(va))
        }
        Some(Divergence::Refused(chains)) => {
            let text = format!("after {chains} chains one device refuses what the other does");
            (chains, Some(text), None)
        }
    };
    let writer = address.and_then(|va| written(recording, bindings, work_limit, (before, va)));
    let walked = verified.deep().ok();
    let jobs = walked.iter().flat_map(|walked| &walked.chains);
    let job = match writer.as_ref().and_then(Written::job) {
        Some(wrote) => jobs
            .flat_map(|chain| &chain.jobs)
            .find(|job| job.address == wrote),
        None => walked
            .as_ref()
            .and_then(|walked| walked.chains.get((before as usize).checked_sub(1)?))
            .and_then(|chain| chain.jobs.last()),
    };
    Report {
        same: difference.is_none() && found.error.is_none(),
        chains: found.chains,
        difference,
        job: job.map(|job| format!("{:#x} ({})", job.address, job.kind)),
        of: match verified.chains() {
            Ok(_) => "job",
            Err(_) => "the dispatch at",
        },
        address: address.map(|address| format!("{address:#x}")),
        writer,
        error: found.error.clone(),
    }
}
