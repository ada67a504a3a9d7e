// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds outputs that no input can affect.
//!
//! Pointers in uniforms say which outputs are worth a look; then the recording runs once on the model. A job that reads
//! nothing of an input, nor of what was computed from one, does the same for all inputs. Other jobs reach the same
//! addresses if no address and no branch depends on what they load. Otherwise nothing is said.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpureplay_format::{Opcode, Recording as View, RegionKind};
use gpureplay_jobs::{Job, Jobs};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{ModelOptions, Recording, Session, Tensor, TensorKind};
use mali_facts::walk::Purpose;
use mali_jobs::reach::{Buffers, Touches, reached};
use mali_jobs::walk::Report;
use mali_model::probe::Analyser;
use mali_model::{Dispatch, JobReport, Observer};

use crate::flow::Flow;
use crate::footprint::{Bytes, Footprint, Looker, PAGE, lock};
use crate::tensors::add;

/// Clauses of a replay: about a second.
const WORK: u64 = 1 << 23;
const MOST_CHAINS: usize = 1 << 6;
/// Bytes per kind and job.
const DESCRIPTORS: u64 = 4096;
/// Pages read, written, and all together, by a job.
const MOST: usize = 1 << 11;

/// Certainly the same for all inputs.
pub fn constant_outputs(recording: &Recording) -> Vec<String> {
    let view = recording.verified().recording();
    let entries = view.action_entries().iter();
    let work = [Opcode::Submit, Opcode::Launch].map(Opcode::code);
    let chains = entries.filter(|entry| work.contains(&entry.op));
    if chains.count() > MOST_CHAINS {
        return Vec::new();
    }
    let Ok(report) = recording.verified().deep() else {
        return Vec::new();
    };
    let suspects = suspects(view, recording, &report);
    if suspects.is_empty() {
        return suspects;
    }
    let effects = followed(recording).unwrap_or_default();
    let Some(effects) = effects else {
        return Vec::new();
    };
    let entries = view.tensors().iter();
    let constant = entries.filter(|entry| {
        let mut bytes = Bytes::default();
        add(view, entry, &mut bytes) && !bytes.meets(&effects)
    });
    let names: BTreeSet<&str> = constant.map(|it| view.name(it.name.get())).collect();
    let mut suspects = suspects;
    suspects.retain(|name| names.contains(name.as_str()));
    suspects
}

fn is_given(kind: TensorKind) -> bool {
    matches!(kind, TensorKind::Input | TensorKind::State)
}

/// No input leads there if a buffer ends where the next thing begins that a job or a tensor names.
fn suspects(view: &View<'_>, recording: &Recording, report: &Report) -> Vec<String> {
    let tensors = recording.tensors();
    let entries = || tensors.iter().zip(view.tensors());
    if !tensors.iter().any(|tensor| is_given(tensor.kind)) {
        return Vec::new();
    }
    let firsts = |entry| {
        let pieces = view.pieces(entry).unwrap_or_default().iter();
        pieces.map(|piece| piece.va.get())
    };
    let regions = view.regions().iter();
    let mut starts: BTreeSet<u64> = regions.map(|region| region.va.get()).collect();
    let pages = |va: u64| va - va % PAGE;
    starts.extend(entries().flat_map(|(_, entry)| firsts(entry)).map(pages));
    for job in report.jobs() {
        starts.extend(job.pointers.iter().copied().map(pages));
        starts.extend(job.uses.iter().map(|used| pages(used.address)));
    }
    let ends = starts.iter().skip(1).copied().chain([u64::MAX]);
    let buffers = Buffers::new(starts.iter().copied().zip(ends));
    let jobs: Vec<Touches> = report
        .jobs()
        .map(|job| Touches::of(job, &buffers))
        .collect();
    let places = |entry| firsts(entry).filter_map(|va| buffers.holder(va));
    let given = entries().filter(|(tensor, _)| is_given(tensor.kind));
    let from = given.flat_map(|(_, entry)| places(entry)).collect();
    let reached = reached(from, &jobs);
    entries()
        .filter(|(tensor, _)| tensor.kind == TensorKind::Output)
        .filter(|(_, entry)| !places(entry).any(|place| reached.contains(&place)))
        .map(|(tensor, _)| tensor.name.clone())
        .collect()
}

fn followed(recording: &Recording) -> gpureplay_library::Result<Option<Bytes>> {
    let recording = recording.apart()?;
    let view = recording.verified().recording();
    let report = recording.verified().deep();
    let (Ok(jobs), Ok(report)) = (Jobs::of(&recording), report) else {
        return Ok(None);
    };
    if jobs.chains.iter().any(|chain| chain.jobs.len() > 1) {
        return Ok(None);
    }
    let mut given = Bytes::default();
    for (tensor, entry) in recording.tensors().iter().zip(view.tensors()) {
        if is_given(tensor.kind) && !add(view, entry, &mut given) {
            return Ok(None);
        }
    }
    let fixed = Fixed::of(view, &jobs, &report);
    if fixed.meets(&given) {
        return Ok(None);
    }
    let follower = Arc::new(Follower(Mutex::new(Followed {
        fixed,
        steps: jobs.jobs.iter().map(Step::of).collect(),
        ended: 0,
        reached: 0,
        now: None,
        effects: Some(given),
    })));
    let model = ModelOptions {
        threads: Some(1),
        work_limit: Some(WORK),
        ..ModelOptions::default()
    };
    let gpu = view.gpu_id();
    let observer: Arc<dyn Observer> = follower.clone();
    let device = Device::open_observed(&Choice::Model(None), gpu, model, Some(observer))?;
    let mut session = Session::on(recording.clone(), device);
    let missing: Vec<String> = session.missing().into_iter().map(str::to_owned).collect();
    for name in missing {
        let info = session.tensor(&name)?;
        let zeros = Tensor::new(info.dtype, &info.shape, vec![0; info.bytes]);
        let Ok(zeros) = zeros else {
            return Ok(None);
        };
        session.bind(&name, zeros)?;
    }
    session.run()?;
    session.close()?;
    let mut followed = follower.lock();
    let whole = followed.ended == followed.steps.len();
    Ok(followed.effects.take().filter(|_| whole))
}

/// Reached other than by shaders' loads and stores: all but buffers, and what descriptors name in buffers. First
/// addresses and ends, ascending.
struct Fixed(Vec<(u64, u64)>);

impl Fixed {
    fn of(view: &View<'_>, jobs: &Jobs, report: &Report) -> Self {
        let regions = view.regions().iter();
        let mut all: Vec<(u64, u64)> = regions
            .filter(|region| region.kind != RegionKind::Data.code())
            .map(|region| (region.va.get(), region.end()))
            .collect();
        for used in report.jobs().flat_map(|job| &job.uses) {
            if used.purpose != Purpose::Value {
                let end = used.address.saturating_add(used.length.unwrap_or(PAGE));
                all.push((used.address, end));
            }
        }
        for compute in jobs.jobs.iter().filter_map(|job| job.compute.as_ref()) {
            let draw = &compute.job.draw;
            for at in [draw.state(), draw.uniform_buffers(), draw.thread_storage()] {
                all.push((at, at.saturating_add(DESCRIPTORS)));
            }
        }
        all.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (start, end) in all {
            match joined.last_mut() {
                Some((_, last)) if start <= *last => *last = end.max(*last),
                _ => joined.push((start, end)),
            }
        }
        Self(joined)
    }

    fn meets(&self, bytes: &Bytes) -> bool {
        bytes.ranges().into_iter().any(|(first, length)| {
            let at = self.0.partition_point(|(_, end)| *end <= first);
            let next = self.0.get(at);
            next.is_some_and(|(start, _)| *start < first.saturating_add(length))
        })
    }
}

#[derive(Clone, Copy)]
struct Step {
    /// No address depends on what it loads.
    steady: bool,
}

impl Step {
    fn of(job: &Job) -> Self {
        let flow = match (&job.compute, &job.valhall) {
            (Some(compute), _) => compute.code.as_ref().map(|code| Flow::of(&code.shader)),
            (None, Some(valhall)) => valhall.code.as_ref().map(|words| Flow::of_words(words)),
            (None, None) => return Self { steady: true },
        };
        let steady = |flow: Flow| {
            !flow.dynamic && flow.address_from_memory.is_none() && flow.branch_from_memory.is_none()
        };
        Self {
            steady: flow.is_ok_and(steady),
        }
    }
}

struct Followed {
    fixed: Fixed,
    steps: Vec<Step>,
    ended: usize,
    reached: usize,
    now: Option<Arc<Mutex<Footprint>>>,
    /// `None`: all bytes.
    effects: Option<Bytes>,
}

impl Followed {
    fn end(&mut self) {
        let step = self.steps.get(self.ended).copied();
        self.ended += 1;
        let footprint = self.now.take().map(|now| std::mem::take(&mut *lock(&now)));
        let (Some(effects), Some(step)) = (&mut self.effects, step) else {
            self.effects = None;
            return;
        };
        let footprint = footprint.unwrap_or_default();
        self.reached += footprint.read.pages().count() + footprint.written.pages().count();
        let depends = footprint.read.meets(effects);
        let lost = footprint.unseen || footprint.full || self.reached > MOST;
        let unsteady = depends && (!step.steady || self.fixed.meets(&footprint.written));
        match !lost && !unsteady {
            true if depends => effects.union(&footprint.written),
            true => {}
            false => self.effects = None,
        }
    }
}

struct Follower(Mutex<Followed>);

impl Follower {
    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Follower {
    fn job(&self, _: &JobReport) {
        self.lock().end();
    }

    fn analyser(&self, _: u64, dispatch: &Dispatch) -> Option<Box<dyn Analyser>> {
        let mut followed = self.lock();
        followed.effects.as_ref()?;
        let now = followed.now.insert(Arc::default()).clone();
        Some(Box::new(Looker::new(now, dispatch, MOST)))
    }
}
