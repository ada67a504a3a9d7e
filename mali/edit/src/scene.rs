// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job with its memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gpureplay_core::engine::Session as Engine;
use gpureplay_core::family::Family;
use gpureplay_core::{Chain, Gpu, NoTensors, Options, Workspace};
use gpureplay_format::layout::{IdentityCheck, Platform, Region};
use gpureplay_format::{Access, Action, Builder, Recording as View, RegionKind, SegmentKind};
use gpureplay_jobs::{Job, Jobs, JobsError};
use gpureplay_library::{Bindings, Device, Recording, Session, Verified, explain};
use gpureplay_on_model::{OnModel, Watch, Watched};
use mali_facts::registers::GpuId;
use mali_facts::{JobHeader, Memory as Readable, Product};
use mali_jobs::streams;
use mali_model::probe::Analyser;
use mali_model::{Dispatch, JobReport, Observer};

use crate::error::{EditError, Result};
use crate::footprint::{Footprint, PAGE, Watcher};

/// Shared by memories until one changes it.
type Page = Arc<[u8; PAGE as usize]>;

/// Pages by address; others are zero.
#[derive(Clone, Debug, Default)]
pub struct Memory(pub BTreeMap<u64, Page>);

impl Memory {
    /// Writes bytes; pages come into being.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        let (mut at, mut rest) = (address, bytes);
        while !rest.is_empty() {
            let offset = (at % PAGE) as usize;
            let (these, others) = rest.split_at(rest.len().min(PAGE as usize - offset));
            let page = self.0.entry(at - at % PAGE);
            let page = page.or_insert_with(|| Arc::new([0; PAGE as usize]));
            Arc::make_mut(page)[offset..offset + these.len()].copy_from_slice(these);
            at = at.wrapping_add(these.len() as u64);
            rest = others;
        }
    }

    /// Reads a range.
    pub fn bytes(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes);
        bytes
    }
}

impl Readable for Memory {
    fn read(&self, va: u64, to: &mut [u8]) -> bool {
        if va.checked_add(to.len() as u64).is_none() {
            return false;
        }
        let (mut at, mut rest) = (va, to);
        while !rest.is_empty() {
            let offset = (at % PAGE) as usize;
            let (these, others) = rest.split_at_mut(rest.len().min(PAGE as usize - offset));
            match self.0.get(&(at - at % PAGE)) {
                Some(page) => these.copy_from_slice(&page[offset..offset + these.len()]),
                None => these.fill(0),
            }
            at = at.wrapping_add(these.len() as u64);
            rest = others;
        }
        true
    }
}

/// How a chain is submitted.
#[derive(Clone, Copy, Debug)]
pub struct Submit {
    /// Job slot.
    pub slot: u8,
    /// Bits of JS_CONFIG.
    pub config: u16,
    /// Time limit.
    pub timeout_us: u32,
}

/// What a run may do on the model.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Limit in clauses; else what `bytes` allow.
    pub limit: Option<u64>,
    /// Bytes of the job's recording, with external weights.
    pub bytes: u64,
}

/// A job and its memory from a replay; it can run again.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Job number.
    pub job: usize,
    /// Address of its header or instruction.
    pub address: u64,
    /// How its chain or stream is submitted.
    pub submit: Submit,
    /// Its stream with this job only; empty for a chain.
    pub words: Vec<u8>,
    /// Identifying registers.
    pub identity: Vec<IdentityCheck>,
    /// Written by set-up.
    pub settings: Vec<(u16, u32)>,
    /// Memory of the recording.
    pub regions: Vec<Region>,
    /// GPU, and how the recording uses it.
    pub platform: Platform,
    /// What a run may do.
    pub work: Work,
    /// Before the job, which is alone in its chain; without storage of threads and work groups.
    pub memory: Memory,
}

/// What a job leaves behind.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What it reached.
    pub footprint: Footprint,
    /// Reached pages, without storage.
    pub memory: Memory,
}

fn is_kept(region: &Region) -> bool {
    region.kind != RegionKind::Scratch.code()
}

fn snapshot(device: &mut OnModel, regions: &[Region]) -> Memory {
    let mut memory = Memory::default();
    let mut page = [0; PAGE as usize];
    for region in regions.iter().filter(|region| is_kept(region)) {
        for address in (region.va.get()..region.end()).step_by(PAGE as usize) {
            if device.read_memory(address, &mut page).is_ok() && page.iter().any(|&it| it != 0) {
                memory.0.insert(address, Arc::new(page));
            }
        }
    }
    memory
}

struct Take {
    chain: u32,
    regions: Vec<Region>,
    taken: Arc<Mutex<Option<Memory>>>,
}

impl Watch for Take {
    fn starts(&mut self, device: &mut OnModel, number: u32, _: &Chain) -> bool {
        if number < self.chain {
            return true;
        }
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(snapshot(device, &self.regions));
        false
    }
}

impl Scene {
    /// Replays up to a job, and takes the memory there. `work_limit`: in clauses; else by the recording's size.
    ///
    /// # Errors
    /// The replay does not come so far.
    pub fn take(
        recording: &Recording,
        jobs: &Jobs,
        bindings: &Bindings,
        index: usize,
        work_limit: Option<u64>,
    ) -> Result<Self> {
        let job = job(jobs, index)?;
        let chain = chain_of(jobs, job)?;
        let view = recording.verified().recording();
        let model = model(jobs.gpu.0, work_limit, None)?;
        let taken = Arc::new(Mutex::new(None));
        let watch = Take {
            chain: u32::try_from(chain.number)
                .unwrap_or(u32::MAX)
                .saturating_add(1),
            regions: view.regions().to_vec(),
            taken: taken.clone(),
        };
        let device = Device::custom(Box::new(Watched::new(model, watch)), "model");
        let mut session = Session::on(recording.clone(), device);
        session.bind_all(bindings.clone());
        // The chain does not start, so this fails.
        let ended = session.run();
        let work = Work {
            limit: work_limit,
            bytes: session.bytes(),
        };
        drop(session);
        let memory = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
        let memory = memory.ok_or_else(|| EditError::NotReached {
            job: index,
            reason: ended
                .err()
                .map_or_else(|| "it is not run".into(), |error| error.to_string()),
        })?;
        let mut scene = Self {
            job: index,
            address: job.address,
            submit: submit(view, chain.action),
            words: words(view, chain),
            identity: view.identity().to_vec(),
            settings: settings(view),
            regions: view.regions().to_vec(),
            platform: view.header().platform(),
            work,
            memory,
        };
        for earlier in chain.jobs.clone().take_while(|at| *at < index) {
            let Some(earlier) = jobs.jobs.get(earlier) else {
                break;
            };
            let step = Self {
                job: earlier.index,
                address: earlier.address,
                ..scene.clone()
            };
            let outcome = step.alone().run("before it", None)?;
            scene.memory.0.extend(outcome.memory.0);
        }
        Ok(scene.alone())
    }

    fn alone(mut self) -> Self {
        if !self.words.is_empty() {
            self.words = streams::alone(&self.words, self.address);
            return self;
        }
        let mut bytes = [0; JobHeader::SIZE];
        self.memory.read(self.address, &mut bytes);
        let mut header = JobHeader::from_bytes(&bytes);
        for field in [
            "Exception status",
            "First incomplete task",
            "Fault pointer",
            "Dependency 1",
            "Dependency 2",
            "Next",
        ] {
            header = header.with(field, 0);
        }
        self.memory.write(self.address, &header.to_bytes());
        self
    }

    /// Runs the job on the model. `fill`: for memory that the scene lacks, in place of zeros; `what`: for errors.
    ///
    /// # Errors
    /// The job fails, or does not end.
    pub fn run(&self, what: &'static str, fill: Option<u8>) -> Result<Outcome> {
        let watcher = Arc::new(Watcher::new(self.address));
        let memory = self.run_observed(watcher.clone(), what, fill)?;
        Ok(Outcome {
            footprint: watcher.take(),
            memory,
        })
    }

    /// As [`Scene::run`], observed. Gives memory afterwards.
    ///
    /// # Errors
    /// As for [`Scene::run`].
    pub fn run_observed(
        &self,
        observer: Arc<dyn Observer>,
        what: &'static str,
        fill: Option<u8>,
    ) -> Result<Memory> {
        let failed = |reason: String| EditError::Failed {
            job: self.job,
            what,
            reason,
        };
        let mut builder = Builder::new(self.platform.gpu_id);
        self.describe(&mut builder, &self.regions);
        builder.segment("run", SegmentKind::Run);
        self.submit(&mut builder);
        let bytes = builder.finish()?;
        let view = View::parse(&bytes).map_err(|error| failed(format!("{error:?}")))?;
        let verified = Verified::check(&view).map_err(EditError::Rule)?;
        let watch = Play {
            scene: self,
            fill,
            reached: Arc::default(),
            left: None,
        };
        let observer = Arc::new(Forwarded {
            reached: watch.reached.clone(),
            inner: observer,
        });
        let mut model = model(self.platform.gpu_id, self.work.limit, Some(observer))?;
        model.expect_recording(self.work.bytes);
        let device = Watched::new(model, watch);
        match verified {
            Verified::Chains(verified) => play(device, verified),
            Verified::Streams(verified) => play(device, verified),
        }
        .map_err(failed)
    }

    pub(crate) fn submit(&self, builder: &mut Builder) {
        let Submit {
            slot,
            config,
            timeout_us,
        } = self.submit;
        if self.words.is_empty() {
            builder.rearm(self.address);
            return builder.submit_with(slot, config, self.address, timeout_us);
        }
        let words = self.words.as_chunks().0.iter();
        let words: Vec<u32> = words.map(|word| u32::from_le_bytes(*word)).collect();
        builder.launch(slot, &words, timeout_us);
    }

    pub(crate) fn describe(&self, builder: &mut Builder, regions: &[Region]) {
        builder.platform(self.platform);
        for check in &self.identity {
            builder.identity(check.register.get(), check.mask.get(), check.value.get());
        }
        for region in regions {
            if let Some(kind) = RegionKind::from_code(region.kind.into()) {
                builder.region(
                    region.va.get(),
                    region.pages.get(),
                    Access(region.access),
                    kind,
                );
            }
        }
        if !self.settings.is_empty() {
            builder.segment("setup", SegmentKind::Setup);
            for (register, value) in &self.settings {
                builder.write(*register, *value);
            }
        }
    }
}

fn play<F: Family>(
    device: Watched<Play<'_>>,
    verified: gpureplay_core::verify::Verified<'_, F>,
) -> std::result::Result<Memory, String> {
    let view = verified.recording();
    let mut workspace = Box::<Workspace>::default();
    let options = Options {
        ignore_identity: true,
    };
    let mut engine = Engine::new(device, verified, &mut workspace, options);
    engine
        .run(&mut NoTensors)
        .map_err(|error| match engine.gpu().used_up() {
            Some(used_up) => explain::used_up(view, &error, &used_up),
            None => explain::replay_error(view, &error, None),
        })?;
    let left = engine.gpu().watch.left.take();
    left.ok_or_else(|| "it did not end".into())
}

struct Play<'s> {
    scene: &'s Scene,
    fill: Option<u8>,
    reached: Arc<Reached>,
    left: Option<Memory>,
}

#[derive(Default)]
struct Reached {
    pages: Mutex<BTreeSet<u64>>,
    /// Writes before this are the scene itself.
    started: AtomicBool,
}

impl Watch for Play<'_> {
    fn starts(&mut self, device: &mut OnModel, _: u32, _: &Chain) -> bool {
        let filled = self.scene.regions.iter().all(|region| {
            let bytes = u64::from(region.pages.get()) * PAGE;
            let fill = self
                .fill
                .map(|fill| device.fill_memory(region.va.get(), bytes, fill));
            fill.is_none_or(|filled| filled.is_ok())
        });
        let mut pages = self.scene.memory.0.iter();
        let there = pages.all(|(address, page)| device.write_memory(*address, &page[..]).is_ok());
        self.reached.started.store(true, Ordering::Relaxed);
        filled && there
    }

    fn ended(&mut self, device: &mut OnModel, _: u32) {
        let pages = &self.reached.pages;
        let reached = pages.lock().unwrap_or_else(PoisonError::into_inner);
        let mut memory = Memory::default();
        let zeros = Arc::new([0; PAGE as usize]);
        let mut page = [0; PAGE as usize];
        for &address in reached.iter() {
            let region = self
                .scene
                .regions
                .iter()
                .find(|region| (region.va.get()..region.end()).contains(&address));
            if !region.is_some_and(is_kept) || device.read_memory(address, &mut page).is_err() {
                continue;
            }
            // Unchanged pages take no memory.
            let before = self.scene.memory.0.get(&address).unwrap_or(&zeros);
            let same = [before, &zeros].into_iter().find(|it| ***it == page);
            let page = same.map_or_else(|| Arc::new(page), Arc::clone);
            memory.0.insert(address, page);
        }
        self.left = Some(memory);
    }
}

struct Forwarded {
    reached: Arc<Reached>,
    inner: Arc<dyn Observer>,
}

impl Observer for Forwarded {
    fn job(&self, report: &JobReport) {
        self.inner.job(report);
    }

    fn wants_kernels(&self) -> bool {
        self.inner.wants_kernels()
    }

    fn wants_pages(&self) -> bool {
        true
    }

    fn page(&self, va: u64, access: mali_model::Access) {
        let pages = &self.reached.pages;
        let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.insert(va - va % PAGE);
        drop(pages);
        if self.inner.wants_pages() {
            self.inner.page(va, access);
        }
    }

    fn analyser(&self, address: u64, dispatch: &Dispatch) -> Option<Box<dyn Analyser>> {
        self.inner.analyser(address, dispatch)
    }

    fn wrote(&self, va: u64, bytes: u64) {
        if self.reached.started.load(Ordering::Relaxed) {
            self.inner.wrote(va, bytes);
        }
    }
}

/// Work groups run one by one: what a wrong shader leaves, races included, is the same each time.
pub(crate) fn model(
    gpu_id: u32,
    work_limit: Option<u64>,
    observer: Option<Arc<dyn Observer>>,
) -> Result<OnModel> {
    let gpu = GpuId(gpu_id);
    let of = Product::by_id(gpu).ok_or(JobsError::Gpu(gpu))?;
    let options = mali_model::Options {
        observer,
        work_limit,
        threads: 1,
        ..mali_model::Options::default()
    };
    OnModel::new(of, options).map_err(|error| EditError::NotReached {
        job: 0,
        reason: format!("memory for the model: {error}"),
    })
}

pub(crate) fn job(jobs: &Jobs, index: usize) -> Result<&Job> {
    jobs.jobs.get(index).ok_or_else(|| EditError::NoJob {
        job: index,
        known: jobs.known(),
    })
}

fn chain_of<'j>(jobs: &'j Jobs, job: &Job) -> Result<&'j gpureplay_jobs::Chain> {
    jobs.chains.get(job.chain).ok_or_else(|| EditError::NoJob {
        job: job.index,
        known: jobs.known(),
    })
}

fn submit(view: &View<'_>, action: u32) -> Submit {
    let entry = view.action_entries().get(action as usize);
    entry.map_or(
        Submit {
            slot: 1,
            config: 0,
            timeout_us: 1,
        },
        |entry| Submit {
            slot: entry.a,
            config: entry.b.get(),
            timeout_us: entry.c.get(),
        },
    )
}

pub(crate) fn words_of(view: &View<'_>, jobs: &Jobs, job: &Job) -> Vec<u8> {
    let chain = jobs.chains.get(job.chain);
    chain.map_or_else(Vec::new, |chain| words(view, chain))
}

fn words(view: &View<'_>, chain: &gpureplay_jobs::Chain) -> Vec<u8> {
    let segment = view.segments().get(chain.segment as usize);
    let action = segment.and_then(|segment| {
        let at = chain.action.checked_sub(segment.first_action.get())?;
        view.segment_actions(segment).nth(at as usize)?.ok()
    });
    match action {
        Some(Action::Launch { words, .. }) => words.to_vec(),
        _ => Vec::new(),
    }
}

fn settings(view: &View<'_>) -> Vec<(u16, u32)> {
    let segments = view.segments().iter();
    let actions = segments.flat_map(|segment| view.segment_actions(segment).flatten());
    let written = actions.filter_map(|action| match action {
        Action::Write { register, value } => Some((register, value)),
        _ => None,
    });
    written.collect()
}
