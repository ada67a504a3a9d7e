// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another recording's job, with mapped pointers.

mod bifrost;
mod held;
mod valhall;

use gpureplay_format::Recording as View;
use gpureplay_jobs::{Compute, Job, Jobs};
use gpureplay_library::{Bindings, Recording, weights::sha256};
use mali_facts::Profile;

use self::bifrost::Bifrost;
use self::held::Held;
use self::valhall::Valhall;
use crate::error::{Result, gate};
use crate::footprint::PAGE;
use crate::launch::Launch;
use crate::pointers::{Pair, Pointers};
use crate::scene::{Memory, Scene, job};
use crate::target::Target;

const ALIGNMENT: u64 = 64;

/// Whole job, ready for one recording.
#[derive(Clone, Debug)]
pub struct Taken {
    title: String,
    origin: String,
    launch: Launch,
    code: Vec<u8>,
    descriptors: Descriptors,
    held: Held,
}

#[derive(Clone, Debug)]
enum Descriptors {
    Bifrost(Box<Bifrost>),
    Valhall(Box<Valhall>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) code: u64,
    pub(crate) descriptors: u64,
    pub(crate) threads: u64,
    pub(crate) groups: u64,
}

pub(crate) struct Laid {
    /// After the job's header: sizes, parameters, pointers.
    pub(crate) payload: Vec<(u64, Vec<u8>)>,
    pub(crate) descriptors: Vec<(u64, Vec<u8>)>,
}

struct Put {
    next: u64,
    bytes: Vec<(u64, Vec<u8>)>,
}

impl Put {
    fn at(next: u64) -> Self {
        let bytes = Vec::new();
        Self { next, bytes }
    }

    fn put(&mut self, bytes: &[u8]) -> u64 {
        let here = self.next;
        let end = here.saturating_add(bytes.len().max(1) as u64);
        self.next = round_up(end, ALIGNMENT);
        self.bytes.push((here, bytes.to_vec()));
        here
    }
}

impl Descriptors {
    fn of(memory: &Memory, job: &Job, target: Target<'_>) -> (Self, Held) {
        match target {
            Target::Bifrost(compute) => {
                let (descriptors, held) = Bifrost::of(memory, compute);
                (Self::Bifrost(Box::new(descriptors)), held)
            }
            Target::Valhall(_) => {
                let (descriptors, held) = Valhall::of(memory, job.address);
                (Self::Valhall(Box::new(descriptors)), held)
            }
        }
    }

    fn bare(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Bifrost(descriptors) => descriptors.bare(),
            Self::Valhall(descriptors) => descriptors.bare(),
        }
    }
}

fn round_up(bytes: u64, to: u64) -> u64 {
    bytes.div_ceil(to).saturating_mul(to)
}

/// Tensor in a job's uniforms: each run may change it.
fn tensor_in<'v>(view: &View<'v>, ranges: &[(u64, u64)]) -> Option<&'v str> {
    let tensors = view.tensors().iter();
    let mut found = tensors.filter(|tensor| {
        let pieces = view.pieces(tensor).unwrap_or_default().iter();
        pieces.into_iter().any(|piece| {
            let va = piece.va.get();
            let inside = |(first, length): &(u64, u64)| {
                (*first..first.saturating_add(*length)).contains(&va)
            };
            ranges.iter().any(inside)
        })
    });
    found.next().map(|tensor| view.name(tensor.name.get()))
}

impl Taken {
    /// Takes a job for the recording `ours`. Pointers to tensors lead to tensors of the same name, or as `pairs` say;
    /// others stay if both recordings have the same region there.
    ///
    /// # Errors
    /// The job does not run or fit: another GPU, textures, a tensor in its uniforms, or data that `ours` lacks.
    pub fn new(
        ours: &Recording,
        theirs: &Recording,
        jobs: &Jobs,
        index: usize,
        bindings: &Bindings,
        pairs: &[Pair],
        work_limit: Option<u64>,
    ) -> Result<Self> {
        let job = job(jobs, index)?;
        let target = Target::of(job)?;
        let our_gpu = mali_facts::registers::GpuId(ours.verified().recording().gpu_id());
        if our_gpu.product() != jobs.gpu.product() {
            return gate(
                "product",
                format!(
                    "the job was recorded on {}, and the recording is for {our_gpu}",
                    jobs.gpu
                ),
            );
        }
        let code = match target.code() {
            Ok(code) => code.to_vec(),
            Err(error) => return gate("code", format!("the job's shader cannot be read: {error}")),
        };
        let scene = Scene::take(theirs, jobs, bindings, index, work_limit)?;
        if !scene.words.is_empty() {
            return gate(
                "descriptors",
                "the job is in a command stream, whose registers name its parts".into(),
            );
        }
        let (descriptors, mut held) = Descriptors::of(&scene.memory, job, target);
        match &descriptors {
            Descriptors::Bifrost(descriptors) => descriptors.stands_alone(),
            Descriptors::Valhall(descriptors) => descriptors.stands_alone(),
        }?;
        let outcome = scene.run("as it is", None)?;
        if let Some(name) = tensor_in(theirs.verified().recording(), &held.ranges) {
            return gate(
                "uniforms",
                format!("tensor {name} lies in the job's uniforms, which are taken as they are"),
            );
        }
        let pointers = Pointers::between(theirs, ours, pairs)?;
        pointers.replace(&mut held.uniforms, "its push uniforms")?;
        for (number, held) in held.buffers.iter_mut().enumerate() {
            pointers.replace(held, &format!("uniform buffer {number}"))?;
        }
        // Pointers may lie in data, too.
        let mut reached = outcome.footprint.read.clone();
        reached.union(&outcome.footprint.written);
        for (address, length) in reached.ranges() {
            let of_its_own = |(first, bytes): &(u64, u64)| {
                address >= *first && address + length <= first + bytes
            };
            if held.ranges.iter().any(of_its_own) {
                continue;
            }
            if let Err(lost) = pointers.covers(address, length) {
                return gate(
                    "pointers",
                    format!(
                        "the job reaches {lost:#x}, for which the recording has no place; say which with --map"
                    ),
                );
            }
        }
        Ok(Self {
            title: job.title(),
            origin: format!(
                "job {index} ({}) of {} with SHA-256 {}",
                job.title(),
                theirs.name(),
                sha256(&theirs.recorded().files().bytes)
            ),
            launch: target.launch(),
            code,
            descriptors,
            held,
        })
    }

    /// Kernel name, or hash.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Recording and job.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Sizes of the launch.
    pub fn launch(&self) -> Launch {
        self.launch
    }

    pub(crate) fn compute(&self) -> Option<&Compute> {
        match &self.descriptors {
            Descriptors::Bifrost(descriptors) => Some(&descriptors.compute),
            Descriptors::Valhall(_) => None,
        }
    }

    pub(crate) fn code(&self) -> &[u8] {
        &self.code
    }

    /// A tensor in the replaced uniforms would have no effect.
    ///
    /// # Errors
    /// There is such a tensor.
    pub(crate) fn replaces(
        &self,
        view: &View<'_>,
        memory: &Memory,
        job: &Job,
        old: Target<'_>,
    ) -> Result<()> {
        let (_, held) = Descriptors::of(memory, job, old);
        match tensor_in(view, &held.ranges) {
            Some(name) => gate(
                "uniforms",
                format!(
                    "tensor {name} lies in the recorded job's uniforms, which another job does not read; take its shader alone"
                ),
            ),
            None => Ok(()),
        }
    }

    pub(crate) fn is(&self, memory: &Memory, job: &Job, old: Target<'_>) -> bool {
        let (descriptors, held) = Descriptors::of(memory, job, old);
        old.code().ok() == Some(&self.code)
            && descriptors.bare() == self.descriptors.bare()
            && held.uniforms == self.held.uniforms
            && held.buffers == self.held.buffers
    }

    pub(crate) fn storage(&self, profile: &Profile) -> [u64; 2] {
        let cores = u64::from(profile.core_id_range());
        let [thread, groups] = match &self.descriptors {
            Descriptors::Bifrost(descriptors) => descriptors.storage(),
            Descriptors::Valhall(descriptors) => descriptors.storage(),
        };
        let threads = thread * u64::from(profile.max_threads);
        [threads, groups].map(|bytes| round_up(bytes * cores, PAGE))
    }

    pub(crate) fn lay(&self, places: Places) -> Laid {
        match &self.descriptors {
            Descriptors::Bifrost(descriptors) => descriptors.lay(&self.held, places),
            Descriptors::Valhall(descriptors) => descriptors.lay(&self.held, places),
        }
    }
}
