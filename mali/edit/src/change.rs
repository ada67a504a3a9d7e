// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries other sizes or another shader, and changes the recording.

use gpureplay_analysis::{Collector, What};
use gpureplay_format::encode::Draft;
use gpureplay_format::layout::{ActionEntry, Region};
use gpureplay_format::{Opcode, Recording as View, SegmentKind};
use gpureplay_jobs::analysis::map_of;
use gpureplay_jobs::report::Work;
use gpureplay_jobs::{Compute, Job, Jobs};
use gpureplay_library::{Bindings, Manifest, Recording};
use mali_facts::Memory as Readable;

use crate::addition::{self, Addition, Writes};
use crate::error::{EditError, Result};
use crate::footprint::{Bytes, PAGE};
use crate::interface;
use crate::kernel::Kernel;
use crate::launch::{Launch, text};
use crate::proof::Proof;
use crate::provenance;
use crate::scene::{self, Outcome, Scene};
use crate::shader;
use crate::taken::Taken;
use crate::target::Target;
use crate::tensors::tensors;
use crate::words::Start;

/// What is changed about a job.
#[derive(Clone, Debug)]
pub struct Change {
    /// Sizes; a whole job keeps its own.
    pub launch: Launch,
    /// Kernel.
    pub kernel: Kernel,
}

impl From<std::sync::Arc<Taken>> for Change {
    fn from(taken: std::sync::Arc<Taken>) -> Self {
        Self {
            launch: taken.launch(),
            kernel: Kernel::Job(taken),
        }
    }
}

/// A tried change.
#[derive(Clone, Debug)]
pub struct Tried {
    /// If only sizes change.
    pub proof: Proof,
    /// Inputs tried.
    pub inputs: usize,
    /// Written bytes that differ for any input; only with another shader.
    pub different: u64,
    /// First different byte: address, recorded value, new value.
    pub first: Option<(u64, u8, u8)>,
    /// Work of the recorded job.
    pub before: Option<Work>,
    /// Work of the changed one.
    pub after: Option<Work>,
}

/// Recording with a changed job.
#[derive(Debug)]
pub struct Changed {
    /// Recording.
    pub bytes: Vec<u8>,
    /// Manifest.
    pub manifest: Manifest,
    /// How the change did.
    pub tried: Tried,
}

/// A job to change, with memory for several inputs.
pub struct Subject<'r> {
    recording: &'r Recording,
    jobs: &'r Jobs,
    job: &'r Job,
    target: Target<'r>,
    scenes: Vec<(Scene, Outcome)>,
    tensors: Bytes,
    proof: Proof,
}

impl<'r> Subject<'r> {
    /// Takes a job, with its memory for each input. `work_limit`: see [`Scene::take`].
    ///
    /// # Errors
    /// It is no compute job, there is no input, or the recording does not run.
    pub fn new(
        recording: &'r Recording,
        jobs: &'r Jobs,
        index: usize,
        inputs: &[Bindings],
        work_limit: Option<u64>,
    ) -> Result<Self> {
        let job = scene::job(jobs, index)?;
        let target = Target::of(job)?;
        let mut scenes = Vec::new();
        for bindings in inputs {
            let scene = Scene::take(recording, jobs, bindings, index, work_limit)?;
            let outcome = scene.run("as it is", None)?;
            if outcome.footprint.full || outcome.footprint.unseen {
                return Err(EditError::Outside(format!(
                    "job {index} reaches more memory than is kept, or textures and images, whose accesses are not seen; a change of it cannot be checked"
                )));
            }
            scenes.push((scene, outcome));
        }
        let (first, _) = scenes.first().ok_or_else(|| {
            EditError::NoInput("a change is tried with at least one input".into())
        })?;
        let proof = target.prove(first)?;
        Ok(Self {
            tensors: tensors(recording.verified().recording()),
            recording,
            jobs,
            job,
            target,
            scenes,
            proof,
        })
    }

    /// What is known about other sizes of its work groups.
    pub fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Descriptors, if the job is one of Bifrost.
    pub fn compute(&self) -> Option<&Compute> {
        self.target.bifrost()
    }

    /// Recorded sizes.
    pub fn launch(&self) -> Launch {
        self.target.launch()
    }

    /// Work-group sizes worth a try on its GPU.
    pub fn sizes(&self) -> Vec<[u32; 3]> {
        let mut sizes = Launch::sizes(self.launch().global(), self.jobs.profile.max_workgroup_size);
        sizes.retain(|size| *size != self.launch().local);
        sizes
    }

    fn is_nothing(&self, change: &Change) -> bool {
        let recorded = self.target.code().ok();
        let same = match &change.kernel {
            Kernel::Recorded => true,
            Kernel::Shader(shader) => recorded.is_some_and(|recorded| {
                let code = &shader.bytes;
                let (code, padding) = code.split_at_checked(recorded.len()).unwrap_or((code, &[]));
                code == recorded && padding.iter().all(|byte| *byte == 0)
            }),
            Kernel::Job(taken) => {
                let first = self.scenes.first();
                first.is_some_and(|(scene, _)| taken.is(&scene.memory, self.job, self.target))
            }
        };
        change.launch == self.launch() && same
    }

    fn in_stream(&self) -> Option<&(Scene, Outcome)> {
        self.scenes
            .first()
            .filter(|(scene, _)| !scene.words.is_empty())
    }

    fn parts(&self, change: &Change) -> Result<(Writes, Addition)> {
        let profile = self.jobs.profile;
        let view = self.recording.verified().recording();
        let end = view.regions().last().map_or(0, Region::end);
        if let Kernel::Job(taken) = &change.kernel {
            if change.launch != taken.launch() {
                return Err(EditError::Size(
                    "a whole job keeps its sizes: its uniforms may hold them; change the sizes in a second step".into(),
                ));
            }
            let first = self.scenes.first();
            if let Some((scene, _)) = first {
                taken.replaces(view, &scene.memory, self.job, self.target)?;
            }
            match taken.compute() {
                Some(compute) => {
                    change.launch.check(compute, profile)?;
                    shader::fits(taken.code(), compute, profile)?;
                }
                None => self.target.check(&change.launch, profile)?,
            }
            return addition::whole(taken, self.target, profile, self.job.address, end);
        }
        self.target.check(&change.launch, profile)?;
        if let (Kernel::Recorded, Some((scene, _))) = (&change.kernel, self.in_stream()) {
            let recorded = scene::words_of(view, self.jobs, self.job);
            let stream = self
                .target
                .stream(&change.launch, &recorded, scene.address)?;
            let addition = Addition {
                stream: Some(stream),
                ..Addition::default()
            };
            return Ok((Writes::new(), addition));
        }
        let start = match (&change.kernel, self.target, self.scenes.first()) {
            (Kernel::Shader(_), Target::Valhall(_), Some((scene, _))) => {
                let in_stream = self.in_stream().is_some();
                Some(Start::of(&scene.memory, self.job, in_stream)?)
            }
            _ => None,
        };
        let words = self.target.words(&change.launch)?.into_iter();
        let mut words: Writes = words
            .map(|(offset, bytes)| (self.job.address.wrapping_add(offset), bytes))
            .collect();
        let Kernel::Shader(shader) = &change.kernel else {
            return Ok((words, Addition::default()));
        };
        let beside = || match &shader.interface {
            Some(interface) => interface.fits(&shader.bytes, self.job, profile),
            None => Ok(()),
        };
        let compute = match (start, self.target) {
            (_, Target::Bifrost(compute)) => compute,
            (Some(start), Target::Valhall(valhall)) => {
                let fitting = start.fits(&shader.bytes, valhall)?;
                beside()?;
                let (more, addition) = start.with(&fitting.bytes, end)?;
                words.extend(more);
                return Ok((words, addition));
            }
            (None, Target::Valhall(_)) => {
                return Err(EditError::NoInput(
                    "a change is tried with at least one input".into(),
                ));
            }
        };
        let fitting = shader::fits(&shader.bytes, compute, profile)?;
        beside()?;
        let size = usize::try_from(fitting.size()).unwrap_or(usize::MAX);
        let code = shader.bytes.get(..size).unwrap_or(&shader.bytes);
        let (more, addition) = addition::shader(code, compute, self.job.address, end)?;
        words.extend(more);
        Ok((words, addition))
    }

    /// Tries a change with all inputs.
    ///
    /// # Errors
    /// The GPU cannot run it, the shader does not fit, or the job fails. It reaches memory that neither the recorded
    /// job nor a tensor has. Only sizes change, and results differ.
    pub fn try_out(&self, change: &Change) -> Result<Tried> {
        let (words, addition) = self.parts(change)?;
        let recorded = self.launch();
        let proof = match (&change.kernel, change.launch.global() == recorded.global()) {
            (Kernel::Job(_), _) => Proof::Unproven(vec!["the whole job is another one".into()]),
            (_, true) => self.proof.clone(),
            (_, false) => Proof::Unproven(vec![format!(
                "there are {} threads instead of {}",
                text(change.launch.global()),
                text(recorded.global())
            )]),
        };
        let mut tried = Tried {
            proof,
            inputs: self.scenes.len(),
            different: 0,
            first: None,
            before: None,
            after: None,
        };
        for (scene, outcome) in &self.scenes {
            let changed = addition.added(scene, &words);
            let found = changed.run("with the change", None)?;
            self.check_reach(outcome, &found)?;
            let mut all = outcome.footprint.written.clone();
            all.union(&found.footprint.written);
            let mut different = 0;
            let pages = all.ranges().into_iter().flat_map(|(address, length)| {
                let end = address.saturating_add(length);
                let parts = (address - address % PAGE..end).step_by(PAGE as usize);
                parts.map(move |page| (page.max(address), end.min(page.saturating_add(PAGE))))
            });
            for (address, end) in pages {
                let old = scene_bytes(scene, outcome, address, end - address);
                let new = scene_bytes(scene, &found, address, end - address);
                let pairs = (address..).zip(old.iter().zip(&new));
                for (at, (old, new)) in pairs.filter(|(_, (old, new))| old != new) {
                    different += 1;
                    tried.first.get_or_insert((at, *old, *new));
                }
            }
            tried.different = tried.different.max(different);
            let work = |outcome: &Outcome| {
                let compute = outcome.footprint.jobs.first()?.compute.as_ref()?;
                compute.statistics.as_ref().map(Work::of)
            };
            tried.before = work(outcome);
            tried.after = work(&found);
        }
        if let (Some((at, old, new)), Kernel::Recorded) = (tried.first, &change.kernel) {
            return Err(EditError::Differs(format!(
                "job {} with work groups of {} and {} threads computes something else: {} bytes differ, first {at:#x}, which is {new:#04x} instead of {old:#04x} (sizes are {})",
                self.job.index,
                text(change.launch.local),
                text(change.launch.global()),
                tried.different,
                tried.proof
            )));
        }
        Ok(tried)
    }

    fn changed_scene(&self, change: &Change) -> Option<Scene> {
        let (words, addition) = self.parts(change).ok()?;
        let (scene, _) = self.scenes.first()?;
        Some(addition.added(scene, &words))
    }

    /// Seconds on the model, unobserved, with the first input.
    pub(crate) fn run_once(&self, change: &Change) -> Option<f64> {
        let scene = self.changed_scene(change)?;
        let watch = std::sync::Arc::new(gpureplay_jobs::measure::Watch::default());
        scene
            .run_observed(watch.clone(), "with the change", None)
            .ok()?;
        let ended = watch.take();
        Some(ended.first()?.report.duration.as_secs_f64())
    }

    /// Memory lines that warps touch with the first input, once for each access. `None` if it fails.
    pub(crate) fn lines(&self, change: &Change) -> Option<u64> {
        let scene = self.changed_scene(change)?;
        let what = What {
            lines: true,
            ..What::default()
        };
        let map = map_of(self.recording.verified().recording());
        let collector = std::sync::Arc::new(Collector::new(what, map, |_| true));
        scene
            .run_observed(collector.clone(), "with the change", None)
            .ok()?;
        let jobs = collector.take();
        let [job] = jobs.as_slice() else { return None };
        Some(job.lines())
    }

    fn check_reach(&self, before: &Outcome, after: &Outcome) -> Result<()> {
        let mut known = before.footprint.read.clone();
        known.union(&before.footprint.written);
        known.union(&self.tensors);
        let of = |bytes: &Bytes| bytes.first_beyond(&known);
        let outside = match (of(&after.footprint.written), of(&after.footprint.read)) {
            (Some(write), Some(read)) if read < write => Some((read, "reads")),
            (Some(write), _) => Some((write, "writes")),
            (None, read) => read.map(|read| (read, "reads")),
        };
        match outside {
            None if !after.footprint.full && !after.footprint.unseen => Ok(()),
            None => Err(EditError::Outside(format!(
                "job {} reaches more memory than is kept, or textures and images, with the change",
                self.job.index
            ))),
            Some((address, does)) => Err(EditError::Outside(format!(
                "job {} {does} outside of tensors with the change: {address:#x} is the first address that belongs to no tensor and that the recorded job does not reach",
                self.job.index
            ))),
        }
    }

    /// Tries a change and makes the recording, the same without a change.
    ///
    /// # Errors
    /// As for [`Subject::try_out`], or the new recording breaks a rule.
    pub fn apply(&self, change: &Change) -> Result<Changed> {
        let tried = self.try_out(change)?;
        if self.is_nothing(change) {
            return Ok(Changed {
                bytes: self.recording.files().bytes.clone(),
                manifest: self.recording.manifest().cloned().unwrap_or_default(),
                tried,
            });
        }
        let (words, addition) = self.parts(change)?;
        let view = self.recording.verified().recording();
        let action = self
            .jobs
            .chains
            .get(self.job.chain)
            .map_or(u32::MAX, |chain| chain.action);
        // Another job may lie in the same place, with uploads of only what differs.
        let (first, _) = self
            .scenes
            .first()
            .ok_or_else(|| EditError::NoInput("there is no input".into()))?;
        let own = |address: &u64| {
            addition
                .regions
                .iter()
                .any(|region| (region.va.get()..region.end()).contains(address))
        };
        let restored: Vec<(u64, Vec<u8>)> = words
            .iter()
            .filter(|(address, _)| !own(address))
            .map(|(address, bytes)| (*address, first.memory.bytes(*address, bytes.len())))
            .collect();
        let bytes = rewrite(view, &addition, action, &words, &restored)?;
        let changed = Recording::from_bytes(bytes.clone())?;
        changed.verified().deep_only()?;
        Ok(Changed {
            manifest: self.manifest(change, &tried, &bytes),
            bytes,
            tried,
        })
    }

    fn manifest(&self, change: &Change, tried: &Tried, bytes: &[u8]) -> Manifest {
        let mut manifest = self.recording.manifest().cloned().unwrap_or_default();
        manifest.version = gpureplay_library::manifest::VERSION;
        manifest.variants.clear();
        let name = self.recording.name();
        manifest.name = format!("{}-edited", name.trim_end_matches("-edited"));
        let recorded = self.launch();
        let mut done = Vec::new();
        let equal = match tried.different {
            0 => format!("equal for {} inputs on the model", tried.inputs),
            bytes => format!("which gives {bytes} other bytes"),
        };
        match &change.kernel {
            Kernel::Job(taken) => done.push(format!("{} in its place, {equal}", taken.origin())),
            _ if change.launch != recorded => done.push(format!(
                "work groups of {} instead of {}, {} threads instead of {}, {}",
                text(change.launch.local),
                text(recorded.local),
                text(change.launch.global()),
                text(recorded.global()),
                match &tried.proof {
                    Proof::Proven => "proven to compute the same".to_owned(),
                    unproven =>
                        format!("{unproven}; equal for {} inputs on the model", tried.inputs),
                }
            )),
            _ => {}
        }
        if let Kernel::Shader(shader) = &change.kernel {
            let hash =
                interface::hash(&shader.bytes, self.jobs.profile.architecture).unwrap_or_default();
            done.push(format!("shader {hash} in its place, {equal}"));
        }
        let what = format!(
            "job {} ({}) changed: {}",
            self.job.index,
            self.job.title(),
            done.join("; ")
        );
        manifest.provenance = provenance::edited(self.recording, &what, bytes);
        for named in &mut manifest.jobs {
            if named.submission == self.job.chain {
                named.global = change.launch.global().into();
                named.local = Some(change.launch.local.map(u64::from).into());
                if let Kernel::Job(taken) = &change.kernel {
                    named.kernel = taken.title().to_owned();
                }
            }
        }
        if tried.different > 0 {
            manifest
                .cases
                .iter_mut()
                .for_each(|case| case.expected.clear());
        }
        manifest
    }
}

/// Set-up uploads the code before anything but settings.
///
/// # Errors
/// There is no such action or no set-up, or a table is full.
fn rewrite(
    view: &View<'_>,
    addition: &Addition,
    action: u32,
    before: &Writes,
    after: &Writes,
) -> Result<Vec<u8>> {
    let mut draft = Draft::new(view);
    draft.regions.extend_from_slice(&addition.regions);
    let mut store = |uploads: &Writes| -> Vec<ActionEntry> {
        let each = uploads.iter().map(std::slice::from_ref);
        each.flat_map(|upload| draft.store(upload)).collect()
    };
    let (after, before, code) = (store(after), store(before), store(&addition.code));
    let mut code = Some(code);
    let mut found = false;
    for segment in view.segments() {
        draft.segment(segment);
        let mut cursor = segment.data.get();
        let is_setup = segment.kind == SegmentKind::Setup.code();
        for step in view.steps(segment).flatten() {
            if is_setup && step.opcode != Opcode::Write {
                draft.insert(&code.take().unwrap_or_default(), step.before);
            }
            if step.number == action {
                draft.insert(&before, step.before);
            }
            match addition.stream.as_ref().filter(|_| step.number == action) {
                Some((words, _)) => draft.launch(*step.entry, words, step.after),
                None => draft.push(*step.entry),
            }
            if step.number == action {
                draft.insert(&after, step.after);
                found = true;
            }
            cursor = step.after;
        }
        if is_setup {
            draft.insert(&code.take().unwrap_or_default(), cursor);
        }
    }
    if !found || code.is_some() {
        return Err(EditError::Size("the recording has no such action".into()));
    }
    Ok(draft.encode()?)
}

fn scene_bytes(scene: &Scene, outcome: &Outcome, address: u64, length: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length as usize);
    let end = address.saturating_add(length);
    let mut at = address;
    while at < end {
        let stop = end.min((at - at % PAGE).saturating_add(PAGE));
        let reached = outcome.memory.0.contains_key(&(at - at % PAGE));
        let memory = if reached {
            &outcome.memory
        } else {
            &scene.memory
        };
        let mut part = vec![0; (stop - at) as usize];
        memory.read(at, &mut part);
        bytes.extend(part);
        at = stop;
    }
    bytes
}
