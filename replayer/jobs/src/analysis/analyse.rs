// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a recording once on the model, with analysers in the jobs that were chosen.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Code, Jobs};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Error, ModelOptions, Recording, Session, weights::sha256};
use mali_analysis::report::{FORMAT, Report};
use mali_analysis::{Collector, What};
use mali_isa::{InstructionText, Placed, Unit};
use mali_model::Observer;

use crate::analysis::map::{given, map_of};

/// Runs a recording and analyses what its jobs do.
///
/// `selected` are numbers of jobs; `bind` gives the session its inputs. A run that fails is reported as one that ended early, with
/// what was found until then.
///
/// # Errors
/// The model cannot be opened, or inputs do not fit.
pub fn analyse<E: From<Error>>(
    recording: &Recording,
    jobs: &Jobs,
    selected: &[usize],
    what: What,
    model: ModelOptions,
    bind: impl FnOnce(&mut Session) -> Result<(), E>,
) -> Result<Report, E> {
    let view = recording.verified().recording();
    let chosen: std::collections::HashSet<usize> = selected.iter().copied().collect();
    let collector = Collector::new(what, map_of(view), move |index| chosen.contains(&index));
    let collector = Arc::new(collector.with_unordered(jobs.unordered()));
    // Uploads leave out zeros, which fresh memory holds.
    for (address, bytes) in given(view) {
        collector.wrote(address, bytes);
    }
    let device = Device::open_observed(
        &Choice::Model(None),
        view.gpu_id(),
        model,
        Some(collector.clone()),
    )?;
    let mut session = Session::on(recording.clone(), device);
    bind(&mut session)?;
    let ended = session.run().and_then(|()| session.close()).err();
    drop(session);
    let mut report = Report {
        format: FORMAT.into(),
        recording: recording.name(),
        recording_sha256: sha256(&recording.recorded().files().bytes),
        gpu: jobs.gpu.to_string(),
        warp_lanes: jobs.profile.architecture.warp_lanes(),
        line_bytes: 64,
        what: what.names().into_iter().map(str::to_owned).collect(),
        ended_early: ended.map(|error| error.to_string()),
        jobs: collector.take(),
        ..Report::default()
    };
    let missing = selected.iter().filter(|&&index| index >= collector.ended());
    if let (None, missing @ 1..) = (&report.ended_early, missing.count()) {
        report.ended_early = Some(format!("{missing} of the selected jobs did not run"));
    }
    name(&mut report, jobs);
    report.judge();
    Ok(report)
}

/// The text of the instruction at a clause of a job.
fn instruction(jobs: &Jobs, job: usize, clause: u64) -> Option<String> {
    let compute = jobs.jobs.get(job)?.compute.as_ref()?;
    let offset = clause.checked_sub(compute.shader)?;
    messages(compute.code.as_ref().ok()?).remove(&offset)
}

/// Puts names of jobs and texts of instructions into a report.
fn name(report: &mut Report, jobs: &Jobs) {
    for job in &mut report.jobs {
        for race in &mut job.conflicts {
            let [first, second] = race.clauses;
            race.instructions = [
                instruction(jobs, race.with, first),
                instruction(jobs, job.index, second),
            ];
        }
    }
    for job in &mut report.jobs {
        let Some(known) = jobs.jobs.get(job.index) else {
            continue;
        };
        job.name = known.name.as_deref().map(str::to_owned);
        job.layer = jobs.layer(known).map(|layer| layer.name.clone());
        let code = known.compute.as_ref().and_then(|it| it.code.as_ref().ok());
        let (Some(code), Some(shader)) = (code, job.shader) else {
            continue;
        };
        let texts = messages(code);
        let text = |clause: u64| texts.get(&clause.wrapping_sub(shader)).cloned();
        for race in &mut job.races {
            race.instructions = race.clauses.map(text);
        }
        for found in &mut job.uninit {
            found.instruction = text(found.clause);
        }
        for found in &mut job.outside {
            found.instruction = text(found.clause);
        }
    }
}

/// The instruction of each clause that is a message, as text, by the clause's offset.
fn messages(code: &Arc<Code>) -> HashMap<u64, String> {
    let clauses = code.shader.clauses.iter();
    clauses
        .filter_map(|placed| Some((placed.offset.into(), message(placed)?)))
        .collect()
}

/// The instruction of a clause that is a message, as text.
pub(crate) fn message(placed: &Placed) -> Option<String> {
    let clause = &placed.clause;
    let is_message =
        |unit: Unit, tuple: &mali_isa::Tuple| tuple.instruction(unit).op.info().message.is_some();
    let tuple = clause
        .tuples
        .iter()
        .find(|tuple| is_message(Unit::Add, tuple))?;
    let text = InstructionText {
        tuple,
        unit: Unit::Add,
        staging_register: clause.header.staging_register,
        origin: Some(placed.offset),
    };
    Some(text.to_string())
}
