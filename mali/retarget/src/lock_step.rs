// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares memory on both models after every chain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpureplay_core::{Chain, ErrorKind, Gpu, Wrapper};
use gpureplay_format::checksum::checksum;
use gpureplay_format::{Access, PAGE_SIZE, RegionKind, TensorKind};
use gpureplay_library::{Device, Files, Recording, Session, Tensor};
use gpureplay_on_model::OnModel;
use gpureplay_tensors::ElementType;
use mali_facts::Profile;
use mali_model::{JobReport, Observer};

use crate::Retargeted;
use crate::rules::{Refusal, TargetRule};

/// How much is tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    /// The recording's cases, then random values. 0: all cases, or one random input without any.
    pub inputs: usize,
    /// Clauses of a run; `None`: as for a replay.
    pub work_limit: Option<u64>,
}

/// What was compared and found equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Inputs.
    pub inputs: usize,
    /// Of one run.
    pub chains: usize,
    /// Of one run, counted for each chain that wrote them.
    pub bytes: u64,
    /// First chain whose memory depends on the order of work groups, on both GPUs: its jobs race. Outputs do not
    /// depend on it.
    pub races: Option<usize>,
}

/// Why two recordings were not found equal.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// They differ.
    #[error(transparent)]
    Refused(Refusal),
    /// A replay failed.
    #[error(transparent)]
    Library(#[from] gpureplay_library::Error),
    /// No memory for a model.
    #[error("memory for the model: {0}")]
    NoMemory(std::io::Error),
}

/// Work groups start in turn, and at random. Both models have the same order, and deal to their cores.
const SEEDS: [u64; 2] = [0, 0x6d61_6c69];

/// Compares a recording and [`retarget`](crate::retarget)'s result on models, for its cases: all memory that jobs
/// wrote, after every job and every chain. Storage of threads and work groups, which means nothing after a chain,
/// and changed words are left out. Outputs must be the same in every order of work groups.
///
/// # Errors
/// The first difference as a [`Refusal`], or why there was no replay.
pub fn compare(
    files: impl Fn() -> Result<Files, gpureplay_library::Error>,
    retargeted: &Retargeted,
    effort: Effort,
) -> Result<Compared, CompareError> {
    let source = Recording::from_files(files()?)?;
    let mut other = files()?;
    other.bytes.clone_from(&retargeted.bytes);
    let sum = gpureplay_library::weights::sha256(&other.bytes);
    if let Some(manifest) = &mut other.manifest {
        manifest.provenance.insert("sha256".into(), sum);
    }
    let target = Recording::from_files(other)?;
    let cases = source.manifest().map_or(0, |manifest| manifest.cases.len());
    let inputs = match effort.inputs {
        0 => cases.max(1),
        inputs => inputs,
    };
    let places = Arc::new(Places::new(&source, retargeted));
    let mut compared = Compared {
        inputs,
        chains: 0,
        bytes: 0,
        races: None,
    };
    // Job by job, and as replayed: chains and layers joined.
    let mut forms = vec![(source.apart()?, target.apart()?)];
    let apart = forms
        .iter()
        .all(|form| form.0.files().bytes == source.files().bytes);
    if !apart || source.layers().len() > 1 {
        forms.push((source, target));
    }
    for input in 0..inputs {
        for (source, target) in &forms {
            let mut in_turn: Option<Trail> = None;
            for seed in SEEDS {
                let run = |recording: &Recording, gpu| {
                    run(recording, (gpu, seed), input, &places, effort)
                };
                let first = run(source, retargeted.source)?;
                let second = run(target, retargeted.target)?;
                let what = format!("input {input}, work groups dealt by seed {seed}");
                differ(&first, &second, &what).map_err(CompareError::Refused)?;
                if let Some(in_turn) = &in_turn {
                    let races = ordered(in_turn, &first, &what).map_err(CompareError::Refused)?;
                    compared.races = compared.races.or(races);
                } else {
                    compared.chains = compared.chains.max(first.chains.len());
                    compared.bytes = compared.bytes.max(first.bytes);
                    in_turn = Some(first);
                }
            }
        }
    }
    Ok(compared)
}

struct Places {
    regions: Vec<(u64, u64)>,
    holes: Vec<(u64, u64)>,
}

impl Places {
    fn new(source: &Recording, retargeted: &Retargeted) -> Self {
        let regions = source.verified().recording().regions().iter();
        let regions = regions.filter(|region| {
            Access(region.access).contains(Access::WRITE)
                && region.kind != RegionKind::Scratch.code()
        });
        let words = retargeted.descriptors.iter();
        let words = words.map(|(at, old, _)| (*at, at.saturating_add(old.len() as u64)));
        Self {
            regions: regions
                .map(|region| (region.va.get(), region.end()))
                .collect(),
            holes: words.chain(retargeted.storage.iter().copied()).collect(),
        }
    }

    fn has(&self, page: u64) -> bool {
        let mut regions = self.regions.iter();
        regions.any(|(start, end)| (*start..*end).contains(&page))
    }

    fn blank(&self, page: u64, bytes: &mut [u8]) {
        let length = bytes.len() as u64;
        for (start, end) in &self.holes {
            let from = start.saturating_sub(page).min(length) as usize;
            let to = end.saturating_sub(page).min(length) as usize;
            if let Some(hole) = bytes.get_mut(from..to) {
                hole.fill(0);
            }
        }
    }
}

#[derive(Default)]
struct Trail {
    chains: Vec<BTreeMap<u64, u64>>,
    bytes: u64,
    outputs: Vec<(String, Vec<u8>)>,
    error: Option<String>,
}

#[derive(Default)]
struct Written(Mutex<BTreeSet<u64>>);

impl Observer for Written {
    fn job(&self, _: &JobReport) {}

    fn wants_pages(&self) -> bool {
        true
    }

    fn page(&self, va: u64, access: mali_model::Access) {
        if access == mali_model::Access::Write {
            locked(&self.0).insert(va - va % u64::from(PAGE_SIZE));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watched {
    model: OnModel,
    places: Arc<Places>,
    written: Arc<Written>,
    trail: Arc<Mutex<Trail>>,
}

impl Wrapper for Watched {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.model
    }

    fn after_chain(&mut self, _: &Chain, result: Result<(), ErrorKind>) {
        let pages = std::mem::take(&mut *locked(&self.written.0));
        if result.is_err() {
            return;
        }
        let mut sums = BTreeMap::new();
        let mut bytes = [0; PAGE_SIZE as usize];
        for page in pages.into_iter().filter(|page| self.places.has(*page)) {
            // Unreadable pages have their own sum.
            let sum = match self.model.read_memory(page, &mut bytes) {
                Ok(()) => {
                    self.places.blank(page, &mut bytes);
                    checksum(&bytes)
                }
                Err(_) => 0,
            };
            sums.insert(page, sum);
        }
        let mut trail = locked(&self.trail);
        trail.bytes += sums.len() as u64 * u64::from(PAGE_SIZE);
        trail.chains.push(sums);
    }
}

/// One host thread: else races follow the host's clock.
fn run(
    recording: &Recording,
    (gpu, seed): (&'static Profile, u64),
    input: usize,
    places: &Arc<Places>,
    effort: Effort,
) -> Result<Trail, CompareError> {
    let written = Arc::new(Written::default());
    let options = mali_model::Options {
        threads: 1,
        work_limit: effort.work_limit,
        seed,
        observer: Some(written.clone()),
        ..mali_model::Options::default()
    };
    let trail = Arc::new(Mutex::new(Trail::default()));
    let watched = Watched {
        model: OnModel::new(gpu, options).map_err(CompareError::NoMemory)?,
        places: Arc::clone(places),
        written,
        trail: Arc::clone(&trail),
    };
    let device = Device::custom(Box::new(watched), "model");
    let mut session = Session::on(recording.clone(), device);
    bind(&mut session, input)?;
    let ended = session.run();
    let outputs = session.outputs().into_iter();
    let outputs = outputs.map(|(name, value)| (name, value.bytes().to_vec()));
    let outputs = outputs.collect();
    drop(session);
    let mut trail = std::mem::take(&mut *locked(&trail));
    trail.outputs = outputs;
    match ended {
        Ok(()) => {}
        Err(gpureplay_library::Error::Replay { text, .. }) => trail.error = Some(text),
        Err(error) => return Err(error.into()),
    }
    Ok(trail)
}

/// A case's files; the rest is random.
fn bind(session: &mut Session, input: usize) -> Result<(), CompareError> {
    let recording = session.recording().clone();
    let case = recording.manifest().and_then(|one| one.cases.get(input));
    for (name, file) in case.iter().flat_map(|case| &case.inputs) {
        session.bind_file(name, recording.files().directory.join(file))?;
    }
    let supplied = recording.manifest().map(|one| &one.external);
    for (number, info) in recording.tensors().iter().enumerate() {
        let given = case.is_some_and(|case| case.inputs.contains_key(&info.name))
            || supplied.is_some_and(|files| files.contains_key(&info.name));
        let needed = info.kind == TensorKind::Input || info.external;
        if given || !needed {
            continue;
        }
        let bytes = drawn(info.dtype, info.bytes, (input as u64) << 32 | number as u64);
        if let Ok(value) = Tensor::new(info.dtype, &info.shape, bytes) {
            session.bind(&info.name, value)?;
        }
    }
    Ok(())
}

/// Floats from -1 to 1; integers of the full range.
fn drawn(dtype: ElementType, bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = Vec::with_capacity(bytes);
    while out.len() < bytes {
        let random = next();
        let unit = (random >> 40) as f32 / (1 << 23) as f32 - 1.0;
        match dtype {
            ElementType::F32 => out.extend(unit.to_le_bytes()),
            ElementType::F64 => out.extend(f64::from(unit).to_le_bytes()),
            ElementType::F16 => out.extend(gpureplay_tensors::f32_to_f16(unit).to_le_bytes()),
            ElementType::Bool => out.push((random >> 63) as u8),
            _ => out.extend(random.to_le_bytes()),
        }
    }
    out.truncate(bytes);
    out
}

fn first_difference(first: &Trail, second: &Trail) -> Option<(usize, u64)> {
    let chains = first.chains.iter().zip(&second.chains).enumerate();
    chains.into_iter().find_map(|(chain, (ours, theirs))| {
        let pages: BTreeSet<&u64> = ours.keys().chain(theirs.keys()).collect();
        let mut pages = pages.into_iter();
        let page = pages.find(|page| ours.get(page) != theirs.get(page));
        page.map(|page| (chain, *page))
    })
}

fn differ(first: &Trail, second: &Trail, what: &str) -> Result<(), Refusal> {
    let refuse = |text: String| Err(Refusal::new(TargetRule::Equal, text));
    if let Some(error) = &first.error {
        return refuse(format!("{what}: the recording itself fails: {error}"));
    }
    if let Some((chain, page)) = first_difference(first, second) {
        let end = page + u64::from(PAGE_SIZE);
        return refuse(format!(
            "{what}: after {} chains memory from {page:#x} to {end:#x} differs",
            chain + 1
        ));
    }
    if let Some(error) = &second.error {
        return refuse(format!("{what}: {error}"));
    }
    if first.chains.len() != second.chains.len() || first.outputs != second.outputs {
        let (ours, theirs) = (first.chains.len(), second.chains.len());
        return refuse(format!(
            "{what}: {ours} chains there and {theirs} here, or other outputs"
        ));
    }
    Ok(())
}

/// Outputs must be the same in two orders. Gives the first chain whose memory is not.
fn ordered(first: &Trail, second: &Trail, what: &str) -> Result<Option<usize>, Refusal> {
    let outputs = first.outputs.iter().zip(&second.outputs);
    if let Some(((name, _), _)) = outputs.into_iter().find(|(ours, theirs)| ours != theirs) {
        let text = format!("{what}: output {name} is another one than with work groups in turn");
        return Err(Refusal::new(TargetRule::Order, text));
    }
    Ok(first_difference(first, second).map(|(chain, _)| chain))
}
