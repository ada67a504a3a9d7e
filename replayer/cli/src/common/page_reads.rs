// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes of jobs, from one observed replay.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpureplay_compile::{Capture, Found, Reads, Role, Touched};
use gpureplay_library::device::Choice;
use gpureplay_library::{Device, Error, ModelOptions, Recording, Session};
use gpureplay_trace::PAGE_SIZE;
use mali_model::probe::{self, AccessKind, Analyser, Launch, Part, Visit, Wanted};
use mali_model::{Access, Dispatch, JobReport, Observer};

const PAGE: u64 = PAGE_SIZE as u64;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What jobs leave, in the order of their ends.
struct Jobs<T> {
    running: Mutex<T>,
    ended: Mutex<Vec<T>>,
}

impl<T: Default> Default for Jobs<T> {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
            ended: Mutex::default(),
        }
    }
}

impl<T: Default> Jobs<T> {
    fn end(&self) {
        let job = std::mem::take(&mut *lock(&self.running));
        lock(&self.ended).push(job);
    }

    fn by_submission(&self, capture: &Capture) -> Result<Vec<Vec<T>>, String> {
        let mut ended = lock(&self.ended);
        let mut jobs = ended.drain(..);
        let chains = capture.jobs.iter();
        let found: Vec<Vec<T>> = chains
            .map(|chain| jobs.by_ref().take(chain.count()).collect())
            .collect();
        if found.iter().any(Vec::is_empty) || jobs.next().is_some() {
            return Err("the model ran other jobs than were recorded".into());
        }
        Ok(found)
    }
}

#[derive(Default)]
struct Pages(Jobs<BTreeSet<u64>>);

impl Observer for Pages {
    fn job(&self, _: &JobReport) {
        self.0.end();
    }

    fn wants_pages(&self) -> bool {
        true
    }

    fn page(&self, va: u64, access: Access) {
        if access == Access::Read {
            lock(&self.0.running).insert(va - va % PAGE);
        }
    }
}

/// Whole pages where bytes are unknown.
#[derive(Default)]
struct Memory {
    bytes: Touched,
    pages: Touched,
    /// Textures and images show no bytes.
    unseen: bool,
}

#[derive(Default)]
struct EachByte(Arc<Jobs<Memory>>);

impl Observer for EachByte {
    fn job(&self, _: &JobReport) {
        self.0.end();
    }

    fn wants_pages(&self) -> bool {
        true
    }

    fn page(&self, va: u64, access: Access) {
        let mut running = lock(&self.0.running);
        let pages = match access {
            Access::Read => &mut running.pages.read,
            _ => &mut running.pages.written,
        };
        pages.insert(va - va % PAGE, PAGE);
    }

    fn analyser(&self, _: u64, _: &Dispatch) -> Option<Box<dyn Analyser>> {
        Some(Box::new(ByteAnalyser(self.0.clone())))
    }
}

struct ByteAnalyser(Arc<Jobs<Memory>>);

impl Analyser for ByteAnalyser {
    fn wanted(&self) -> Wanted {
        Wanted {
            accesses: true,
            ..Wanted::default()
        }
    }

    fn part(&self, _: &Launch<'_>) -> Box<dyn Part> {
        Box::new(BytePart {
            jobs: self.0.clone(),
            found: Touched::default(),
            unseen: false,
        })
    }
}

struct BytePart {
    jobs: Arc<Jobs<Memory>>,
    found: Touched,
    unseen: bool,
}

impl BytePart {
    fn add(&mut self, kind: AccessKind, at: u64, bytes: u64) {
        if kind != AccessKind::Store {
            self.found.read.insert(at, bytes);
        }
        if kind != AccessKind::Load {
            self.found.written.insert(at, bytes);
        }
    }
}

impl Part for BytePart {
    fn access(&mut self, access: &probe::Access<'_>) {
        let bytes = u64::from(access.bytes);
        let lanes = &access.visit.lanes;
        let first = lanes.active.trailing_zeros() as usize;
        if access.is_uniform() {
            return self.add(access.kind, access.address(first), bytes);
        }
        if access.is_consecutive() {
            let all = bytes * u64::from(lanes.active.count_ones());
            return self.add(access.kind, access.address(first), all);
        }
        for lane in lanes.iter() {
            self.add(access.kind, access.address(lane), bytes);
        }
    }

    fn unseen(&mut self, _: &Visit<'_>) {
        self.unseen = true;
    }

    fn finish(self: Box<Self>) {
        let mut running = lock(&self.jobs.running);
        running.bytes.read.add(&self.found.read);
        running.bytes.written.add(&self.found.written);
        running.unseen |= self.unseen;
    }
}

/// Pages read by each submission, in a replay with the tensors' values.
pub(crate) fn observe(capture: &Capture, bytes: &[u8], tensors: &[Found]) -> Result<Reads, String> {
    let pages = Arc::new(Pages::default());
    run(bytes, tensors, pages.clone())?;
    let chains = pages.0.by_submission(capture)?.into_iter();
    let reads: Reads = chains
        .map(|jobs| jobs.into_iter().flatten().collect())
        .collect();
    if reads.iter().any(BTreeSet::is_empty) {
        return Err("the model ran other jobs than were recorded".into());
    }
    Ok(reads)
}

/// Bytes of each submission, without tensors; whole pages for jobs with textures or images.
pub(crate) fn touched(capture: &Capture, bytes: &[u8]) -> Result<Vec<Touched>, String> {
    let memory = Arc::new(EachByte::default());
    run(bytes, &[], memory.clone())?;
    let chains = memory.0.by_submission(capture)?.into_iter();
    Ok(chains
        .map(|jobs| {
            let mut all = Touched::default();
            for job in jobs {
                all.then(match job.unseen {
                    true => job.pages,
                    false => job.bytes,
                });
            }
            all
        })
        .collect())
}

fn run(bytes: &[u8], tensors: &[Found], observer: Arc<dyn Observer>) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let recording = Recording::from_bytes(bytes.to_vec()).map_err(text)?;
    let device = Device::open_observed(
        &Choice::Model(None),
        recording.verified().recording().gpu_id(),
        ModelOptions::default(),
        Some(observer),
    );
    let mut session = Session::on(recording, device.map_err(text)?);
    for tensor in tensors
        .iter()
        .filter(|tensor| matches!(tensor.role, Role::Input | Role::Weight))
    {
        let bound = session.bind(&tensor.name, tensor.tensor.clone());
        bound.map_err(text)?;
    }
    session.run().map_err(text)?;
    session.close().map_err(text)
}
