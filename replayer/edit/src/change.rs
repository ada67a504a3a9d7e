// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job with other sizes or another shader: tried on the model beside the recorded one, and then put into the recording.

use gpureplay_format::layout::Region;
use gpureplay_format::{Access, ElementType, Recording as View, RegionKind};
use gpureplay_jobs::report::Work;
use gpureplay_jobs::{Compute, Job, Jobs};
use gpureplay_library::{Bindings, Manifest, Recording};
use mali_descriptors::{
    Draw, Memory as Readable, RendererState, clause_address, descriptor_address, job as places,
};
use zerocopy::little_endian::{U16, U32, U64};

use crate::draft::Draft;
use crate::error::{EditError, Result};
use crate::footprint::{Bytes, PAGE};
use crate::launch::{Launch, text};
use crate::proof::{Proof, prove};
use crate::provenance;
use crate::scene::{Outcome, Scene, job};
use crate::shader;

/// Bytes that are written, with their addresses.
type Writes = Vec<(u64, Vec<u8>)>;

/// What is changed about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its sizes.
    pub launch: Launch,
    /// Its code, from the first clause on; the recorded one if there is none.
    pub code: Option<Vec<u8>>,
}

/// A job with a change that has been tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What is known about other sizes of work groups, if only these change.
    pub proof: Proof,
    /// Inputs that it was tried with.
    pub inputs: usize,
    /// Bytes of what the job writes that differ from what the recorded one writes, for any of the inputs. Only another shader may give
    /// others.
    pub different: u64,
    /// The first such byte: its address, the recorded value, the new one.
    pub first: Option<(u64, u8, u8)>,
    /// What the recorded job does.
    pub before: Option<Work>,
    /// What the changed one does.
    pub after: Option<Work>,
}

/// A recording with a changed job.
#[derive(Debug)]
pub struct Changed {
    /// The recording.
    pub bytes: Vec<u8>,
    /// Its manifest.
    pub manifest: Manifest,
    /// How the change did.
    pub tried: Tried,
}

/// What the changed job needs besides its own descriptors.
struct Addition {
    /// Regions behind all others.
    regions: Vec<Region>,
    /// Code, which only set-up may upload.
    code: Vec<(u64, Vec<u8>)>,
}

/// A job that can be changed, with the memory that it finds for each of several inputs.
pub struct Subject<'r> {
    recording: &'r Recording,
    jobs: &'r Jobs,
    job: &'r Job,
    compute: &'r Compute,
    scenes: Vec<(Scene, Outcome)>,
    /// Bytes of tensors.
    tensors: Bytes,
    proof: Proof,
}

impl<'r> Subject<'r> {
    /// Takes the job of this number, with the memory that it finds for each of these inputs.
    ///
    /// # Errors
    /// It is no compute job, there is no input, or the recording does not run.
    pub fn new(
        recording: &'r Recording,
        jobs: &'r Jobs,
        index: usize,
        inputs: &[Bindings],
    ) -> Result<Self> {
        let job = job(jobs, index)?;
        let compute = job.compute.as_ref().ok_or_else(|| EditError::NotCompute {
            job: index,
            kind: job
                .kind
                .map_or("unknown", mali_descriptors::JobType::name)
                .to_owned(),
        })?;
        let mut scenes = Vec::new();
        for bindings in inputs {
            let scene = Scene::take(recording, jobs, bindings, index)?;
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
        let proof = prove(first, compute)?;
        Ok(Self {
            tensors: tensors(recording.verified().recording()),
            recording,
            jobs,
            job,
            compute,
            scenes,
            proof,
        })
    }

    /// What is known about other sizes of its work groups.
    pub fn proof(&self) -> &Proof {
        &self.proof
    }

    /// The job's descriptors.
    pub fn compute(&self) -> &Compute {
        self.compute
    }

    /// Whether a change changes nothing.
    fn is_nothing(&self, change: &Change) -> bool {
        let recorded = self.compute.code.as_ref().ok().map(|code| &code.bytes);
        let same = change.code.as_ref().is_none_or(|code| {
            recorded.is_some_and(|recorded| {
                let (code, padding) = code.split_at_checked(recorded.len()).unwrap_or((code, &[]));
                code == recorded && padding.iter().all(|byte| *byte == 0)
            })
        });
        change.launch == Launch::of(self.compute) && same
    }

    /// The bytes of the job's descriptors that a change changes, and what it needs besides.
    fn parts(&self, change: &Change) -> Result<(Writes, Addition)> {
        change.launch.check(self.compute, self.jobs.profile)?;
        let words = change.launch.words(self.compute)?.into_iter();
        let mut words: Vec<(u64, Vec<u8>)> = words
            .map(|(offset, bytes)| (self.job.address.wrapping_add(offset), bytes))
            .collect();
        let mut addition = Addition {
            regions: Vec::new(),
            code: Vec::new(),
        };
        let Some(code) = &change.code else {
            return Ok((words, addition));
        };
        let fitting = shader::fits(code, self.compute, self.jobs.profile)?;
        let size = usize::try_from(fitting.size()).unwrap_or(usize::MAX);
        let code = code.get(..size).unwrap_or(code);
        let view = self.recording.verified().recording();
        let end = view.regions().last().map_or(0, Region::end);
        // A page that is not mapped lies before it.
        let at = end.saturating_add(PAGE);
        let pages = u32::try_from(code.len().div_ceil(PAGE as usize)).unwrap_or(u32::MAX);
        let state_at = at.saturating_add(u64::from(pages) * PAGE);
        if (state_at.saturating_add(PAGE)) >> 32 != self.compute.shader >> 32 {
            return Err(EditError::Gate {
                gate: "executable region",
                reason: format!(
                    "the next free memory, {at:#x}, is not within the same 4 GiB as the recorded shader, where branches reach"
                ),
            });
        }
        let region = |va, pages, access: Access, kind: RegionKind| Region {
            va: U64::new(va),
            pages: U32::new(pages),
            access: access.0,
            kind: kind.code(),
            zero: U16::ZERO,
        };
        addition.regions = vec![
            region(at, pages, Access::READ_EXECUTE, RegionKind::Code),
            region(state_at, 1, Access::READ_WRITE, RegionKind::Descriptors),
        ];
        addition.code.push((at, code.to_vec()));
        // The state may be shared with other jobs, so this one gets its own.
        let old = self.compute.draw.state();
        let recorded = self.compute.state.shader();
        let state: RendererState = self
            .compute
            .state
            .with("Shader", at | (recorded - clause_address(recorded)));
        words.push((state_at, state.to_bytes().to_vec()));
        let draw: Draw = self
            .compute
            .draw
            .with("State", state_at | (old - descriptor_address(old)));
        let draw_at = self.job.address.wrapping_add(places::COMPUTE_DRAW);
        words.push((draw_at, draw.to_bytes().to_vec()));
        Ok((words, addition))
    }

    /// Tries a change with all inputs.
    ///
    /// # Errors
    /// The GPU cannot run it, the shader does not fit, the changed job fails, or it reaches memory that neither the recorded one reached
    /// nor a tensor holds; or it computes something else although only sizes change.
    pub fn try_out(&self, change: &Change) -> Result<Tried> {
        let (words, addition) = self.parts(change)?;
        let recorded = Launch::of(self.compute);
        let proof = match change.launch.global() == recorded.global() {
            true => self.proof.clone(),
            false => Proof::Unproven(vec![format!(
                "there are {} threads in place of {}",
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
            let mut changed = scene.clone();
            changed.regions.extend(addition.regions.iter().copied());
            for (address, bytes) in words.iter().chain(&addition.code) {
                changed.memory.write(*address, bytes);
            }
            let found = changed.run("with the change", None)?;
            self.inside(outcome, &found)?;
            let mut all = outcome.footprint.written.clone();
            all.union(&found.footprint.written);
            let mut different = 0;
            for (address, length) in all.ranges() {
                let old = scene_bytes(scene, outcome, address, length);
                let new = scene_bytes(scene, &found, address, length);
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
        if let (Some((at, old, new)), None) = (tried.first, &change.code) {
            return Err(EditError::Differs(format!(
                "job {} with work groups of {} and {} threads computes something else: {} bytes differ, first {at:#x}, which is {new:#04x} in place of {old:#04x} (sizes are {})",
                self.job.index,
                text(change.launch.local),
                text(change.launch.global()),
                tried.different,
                tried.proof
            )));
        }
        Ok(tried)
    }

    /// Runs the job once with a change and the first input, without looking into it: the seconds that the model took for it alone.
    pub(crate) fn run_once(&self, change: &Change) -> Option<f64> {
        let (words, addition) = self.parts(change).ok()?;
        let mut scene = self.scenes.first()?.0.clone();
        scene.regions.extend(addition.regions.iter().copied());
        for (address, bytes) in words.iter().chain(&addition.code) {
            scene.memory.write(*address, bytes);
        }
        let watch = std::sync::Arc::new(gpureplay_jobs::measure::Watch::default());
        scene
            .run_observed(watch.clone(), "with the change", None)
            .ok()?;
        let ended = watch.take();
        Some(ended.first()?.report.duration.as_secs_f64())
    }

    /// The changed job reaches nothing but what the recorded one reached, and tensors.
    fn inside(&self, before: &Outcome, after: &Outcome) -> Result<()> {
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

    /// Tries a change, and makes the recording that has it. One that changes nothing gives the same bytes.
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
        let mut draft = Draft::new(*view);
        for region in &addition.regions {
            if let Some(kind) = RegionKind::from_code(region.kind.into()) {
                draft.region(
                    region.va.get(),
                    region.pages.get(),
                    Access(region.access),
                    kind,
                );
            }
        }
        let action = self
            .jobs
            .chains
            .get(self.job.chain)
            .map_or(u32::MAX, |chain| chain.action);
        // Another job may lie in the same place, of which the recording uploads only what is different.
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
        draft.upload_around(action, &words, &restored)?;
        draft.upload_in_setup(&addition.code)?;
        let bytes = draft.encode();
        let changed = Recording::from_bytes(bytes.clone())?;
        gpureplay_inspect::check(changed.verified())?;
        Ok(Changed {
            manifest: self.manifest(change, &tried, &bytes),
            bytes,
            tried,
        })
    }

    fn manifest(&self, change: &Change, tried: &Tried, bytes: &[u8]) -> Manifest {
        let mut manifest = self.recording.manifest().cloned().unwrap_or_default();
        manifest.version = gpureplay_library::manifest::VERSION;
        let name = self.recording.name();
        manifest.name = format!("{}-edited", name.trim_end_matches("-edited"));
        let recorded = Launch::of(self.compute);
        let mut done = Vec::new();
        if change.launch != recorded {
            done.push(format!(
                "work groups of {} in place of {}, {} threads in place of {}, {}",
                text(change.launch.local),
                text(recorded.local),
                text(change.launch.global()),
                text(recorded.global()),
                match &tried.proof {
                    Proof::Proven => "proven to compute the same".to_owned(),
                    unproven =>
                        format!("{unproven}; equal for {} inputs on the model", tried.inputs),
                }
            ));
        }
        if let Some(code) = &change.code {
            let hash = mali_isa::Shader::identify(|offset: u32| {
                let at = offset as usize;
                let word = code
                    .get(at..at.saturating_add(16))
                    .and_then(|it| it.try_into().ok());
                word.ok_or(mali_isa::DecodeError::Truncated { offset: at })
            });
            let hash = hash.map_or_else(
                |_| String::new(),
                |(_, identity)| format!("{:016x}", identity.hash),
            );
            done.push(format!(
                "shader {hash} in its place, {}",
                match tried.different {
                    0 => format!("equal for {} inputs on the model", tried.inputs),
                    bytes => format!("which gives {bytes} other bytes"),
                }
            ));
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
            }
        }
        if tried.different > 0 {
            // What was expected is not what it computes.
            manifest
                .cases
                .iter_mut()
                .for_each(|case| case.expected.clear());
        }
        manifest
    }
}

/// What a range holds after a job: what it reached, and else what was there before.
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

/// The bytes of all tensors of a recording.
fn tensors(view: &View<'_>) -> Bytes {
    let mut all = Bytes::default();
    for tensor in view.tensors() {
        let size = ElementType::from_code(tensor.element.into()).map_or(1, ElementType::size);
        for piece in view.pieces(tensor).unwrap_or_default() {
            let axes = view.axes(piece).unwrap_or_default();
            let (outer, run) = match axes.split_last() {
                Some((last, outer)) if last.byte_stride.get() == size => {
                    (outer, u64::from(last.extent.get()) * u64::from(size))
                }
                _ => (axes, size.into()),
            };
            let mut places = vec![piece.va.get()];
            for axis in outer {
                places = places
                    .iter()
                    .flat_map(|va| {
                        (0..axis.extent.get()).map(move |step| {
                            va.wrapping_add(u64::from(step) * u64::from(axis.byte_stride.get()))
                        })
                    })
                    .collect();
                if places.len() > 1 << 24 {
                    return all;
                }
            }
            for place in places {
                all.add(place, run);
            }
        }
    }
    all
}
