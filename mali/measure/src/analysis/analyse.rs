// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a recording on the model, with analysers.

use std::sync::Arc;

use crate::Jobs;
use gpureplay_analysis::report::{FORMAT, Report};
use gpureplay_analysis::{Collector, What};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Error, ModelOptions, Recording, Session, weights::sha256};
use mali_model::Observer;

use crate::analysis::map::{given, map_of};

/// Analyses jobs, selected by number.
///
/// `bind` gives the session its inputs. A failed run is reported as ended early, with its findings.
///
/// # Errors
/// The model does not open, or inputs do not fit.
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
    // Uploads leave out zeros.
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

fn name(report: &mut Report, jobs: &Jobs) {
    let text = |job: usize, clause: u64, writes: Option<bool>| {
        let (shader, code) = jobs.jobs.get(job)?.code()?;
        code.ok()?.messages(clause.checked_sub(shader)?, writes)
    };
    for job in &mut report.jobs {
        for race in &mut job.conflicts {
            let [first, second] = race.clauses;
            race.instructions = [text(race.with, first, None), text(job.index, second, None)];
        }
        for race in &mut job.races {
            race.instructions = race.clauses.map(|clause| text(job.index, clause, None));
        }
        for found in &mut job.uninit {
            found.instruction = text(job.index, found.clause, Some(false));
        }
        for found in &mut job.outside {
            found.instruction = text(job.index, found.clause, Some(found.writes));
        }
        let Some(known) = jobs.jobs.get(job.index) else {
            continue;
        };
        // The model names code of Bifrost only.
        let hash = known.hash().filter(|_| job.kernel.is_none());
        job.kernel = hash.map_or(job.kernel.take(), |hash| Some(format!("{hash:016x}")));
        job.name = known.name.as_deref().map(str::to_owned);
        job.layer = jobs.layer(known).map(|layer| layer.name.clone());
    }
}
