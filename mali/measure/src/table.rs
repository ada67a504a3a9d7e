// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs with descriptors and shaders.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gpureplay_format::SegmentKind;
use gpureplay_library::{Layer, Recording};
use mali_facts::registers::GpuId;
use mali_facts::valhall::ComputePayload;
use mali_facts::{ComputeJob, JobType, Launch, Product, Profile};
use mali_isa::Identity;
use mali_jobs::walk::{
    Code, Codes, Descriptors, Full, Image, MAX_LISTED_JOBS, Submission, Waits, Words,
};

/// Why jobs cannot be listed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobsError {
    /// Its descriptors are unknown.
    #[error("is for {0}, whose descriptors are not known")]
    Gpu(GpuId),
    /// More is uploaded than kept.
    #[error("action {action} uploads to {address:#x} more than is kept of a recording's memory")]
    Memory {
        /// Index.
        action: u32,
        /// Destination.
        address: u64,
    },
    /// Too many jobs.
    #[error("has more than {MAX_LISTED_JOBS} jobs, which is as many as are listed")]
    TooMany,
}

impl From<Full> for JobsError {
    fn from(full: Full) -> Self {
        Self::Memory {
            action: full.action,
            address: full.address,
        }
    }
}

/// Bifrost job's descriptors.
#[derive(Clone, Debug)]
pub struct Compute {
    /// Address of the first clause.
    pub shader: u64,
    /// Code, or why it cannot be decoded.
    pub code: Result<Arc<Code>, String>,
    /// Threads of a work group, by dimension.
    pub local: [u32; 3],
    /// Work groups, by dimension.
    pub groups: [u32; 3],
    /// Descriptors.
    pub job: ComputeJob,
}

/// Valhall job's descriptors.
#[derive(Clone, Debug)]
pub struct Valhall {
    /// What the descriptors say.
    pub launch: Launch,
    /// Its descriptor, with the sizes.
    pub payload: ComputePayload,
    /// Code, or why it cannot be decoded.
    pub code: Result<Arc<Words>, String>,
}

impl Compute {
    /// Threads by dimension, at most 2^32 − 1: sizes and counts are packed into 32 bits.
    pub fn global(&self) -> [u64; 3] {
        let [x, y, z] = self.local;
        let [gx, gy, gz] = self.groups;
        [(x, gx), (y, gy), (z, gz)].map(|(size, count)| u64::from(size) * u64::from(count))
    }

    /// Bytes per thread.
    pub fn thread_storage(&self) -> u64 {
        self.job.storage.map_or(0, |storage| storage.tls_bytes())
    }

    /// Bytes per work group.
    pub fn group_storage(&self) -> u64 {
        self.job.storage.map_or(0, |storage| storage.wls_bytes())
    }

    /// The code's identity, if it decodes.
    pub fn identity(&self) -> Option<Identity> {
        self.code.as_ref().ok().map(|code| code.identity)
    }
}

/// Job of a chain.
#[derive(Clone, Debug)]
pub struct Job {
    /// From 0, set-up included, as for `run --trace` and `disasm`.
    pub index: usize,
    /// Number.
    pub chain: usize,
    /// Of its header or instruction, as on the model.
    pub address: u64,
    /// Type, if it exists.
    pub kind: Option<JobType>,
    /// From the manifest; jobs of a chain share it.
    pub name: Option<Arc<str>>,
    /// Number in the app, from the manifest.
    pub launch: Option<u32>,
    /// What it waits for.
    pub waits: Waits,
    /// On Bifrost, if descriptors make sense.
    pub compute: Option<Compute>,
    /// On Valhall, if descriptors make sense.
    pub valhall: Option<Valhall>,
}

impl Job {
    /// The kernel's name, else its hash, else the job's type.
    pub fn title(&self) -> String {
        let hash = || Some(format!("{:016x}", self.hash()?));
        let kind = || self.kind.map_or("unknown", JobType::name).to_owned();
        let name = self.name.as_deref().map(str::to_owned);
        name.or_else(hash).unwrap_or_else(kind)
    }

    /// Launch, if descriptors make sense.
    pub fn work(&self) -> Option<Launch> {
        let bifrost = || self.compute.as_ref()?.job.launch();
        self.valhall.as_ref().map(|it| it.launch).or_else(bifrost)
    }

    /// Hash of its code, if that decodes.
    pub fn hash(&self) -> Option<u64> {
        let bifrost = || Some(self.compute.as_ref()?.identity()?.hash);
        match &self.valhall {
            Some(valhall) => Some(valhall.code.as_ref().ok()?.hash),
            None => bifrost(),
        }
    }
}

/// Submitted chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// From 0, set-up included.
    pub number: usize,
    /// Index.
    pub segment: u32,
    /// Index; none in set-up and finish.
    pub layer: Option<usize>,
    /// Index.
    pub action: u32,
    /// Job slot.
    pub slot: u8,
    /// Address of the first job's header; 0 for a command stream.
    pub head: u64,
    /// Indices.
    pub jobs: Range<usize>,
}

/// All jobs of a recording.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// Recorded GPU.
    pub gpu: GpuId,
    /// Facts about the GPU.
    pub profile: &'static Profile,
    /// As the library lists them.
    pub layers: Vec<Layer>,
    /// In the order of submission.
    pub chains: Vec<Chain>,
    /// In the order of their run.
    pub jobs: Vec<Job>,
}

impl Jobs {
    /// Finds a recording's jobs.
    ///
    /// # Errors
    /// Its GPU is unknown, or it is larger than any network.
    pub fn of(recording: &Recording) -> Result<Self, JobsError> {
        let verified = recording.verified();
        let gpu = GpuId(verified.recording().gpu_id());
        let profile = Product::by_id(gpu).ok_or(JobsError::Gpu(gpu))?.profile();
        let mut found = Self {
            gpu,
            profile,
            layers: recording.layers().to_vec(),
            chains: Vec::new(),
            jobs: Vec::new(),
        };
        let mut codes = Codes::default();
        verified.submissions(|submission| found.add(submission, &mut codes))?;
        if let Some(manifest) = recording.manifest() {
            for named in &manifest.jobs {
                let Some(chain) = found.chains.get(named.submission) else {
                    continue;
                };
                let jobs = found.jobs.get_mut(chain.jobs.clone()).unwrap_or_default();
                let name: Arc<str> = named.kernel.as_str().into();
                for (at, job) in jobs.iter_mut().enumerate() {
                    if job.work().is_some() && named.job.is_none_or(|it| it == at) {
                        job.name = Some(name.clone());
                        job.launch = Some(named.launch);
                    }
                }
            }
        }
        Ok(found)
    }

    fn add(&mut self, submission: &Submission<'_>, codes: &mut Codes) -> Result<(), JobsError> {
        let memory = submission.memory;
        let first = self.jobs.len();
        let number = self.chains.len();
        for found in submission.jobs(self.profile) {
            if self.jobs.len() >= MAX_LISTED_JOBS {
                return Err(JobsError::TooMany);
            }
            let (compute, valhall) = match found.descriptors {
                Descriptors::None => (None, None),
                Descriptors::Bifrost(job) => (compute(memory, job, codes), None),
                Descriptors::Valhall(launch, payload) => {
                    let code = codes.words_at(memory, launch.shader);
                    let code = code.map_err(|error| error.to_string());
                    let valhall = Valhall {
                        launch,
                        payload,
                        code,
                    };
                    (None, Some(valhall))
                }
            };
            self.jobs.push(Job {
                index: self.jobs.len(),
                chain: number,
                address: found.address,
                kind: found.kind,
                name: None,
                launch: None,
                waits: found.waits,
                compute,
                valhall,
            });
        }
        let layer = self
            .layers
            .binary_search_by_key(&submission.segment, |layer| layer.segment)
            .ok();
        self.chains.push(Chain {
            number,
            segment: submission.segment,
            layer,
            action: submission.action,
            slot: submission.slot,
            head: submission.head,
            jobs: first..self.jobs.len(),
        });
        Ok(())
    }

    /// Layer of a job; none in set-up and finish.
    pub fn layer(&self, job: &Job) -> Option<&Layer> {
        let chain = self.chains.get(job.chain)?;
        self.layers.get(chain.layer?)
    }

    /// For each job the earlier ones of its chain that may still run: no dependency or barrier is between. A chain
    /// begins after the end of the one before it.
    pub fn unordered(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut all = BTreeMap::new();
        for chain in &self.chains {
            let jobs = self.jobs.get(chain.jobs.clone()).unwrap_or_default();
            let mut before: Vec<Vec<bool>> = Vec::new();
            for (at, job) in jobs.iter().enumerate() {
                // Jobs that end before it starts.
                let mut ended = vec![false; at];
                if job.waits.barrier {
                    ended.fill(true);
                } else if let Some(last) = before.last() {
                    ended
                        .iter_mut()
                        .zip(last)
                        .for_each(|(ended, known)| *ended |= known);
                    let named = job
                        .waits
                        .dependencies
                        .into_iter()
                        .filter(|index| *index != 0);
                    for index in named {
                        let found = jobs.iter().take(at).rposition(|it| it.waits.index == index);
                        if let Some(found) = found {
                            ended
                                .iter_mut()
                                .skip(found)
                                .take(1)
                                .for_each(|it| *it = true);
                        }
                    }
                }
                let beside: Vec<usize> = (jobs.iter().zip(&ended))
                    .filter(|(_, ended)| !**ended)
                    .map(|(job, _)| job.index)
                    .collect();
                if !beside.is_empty() {
                    all.insert(job.index, beside);
                }
                before.push(ended);
            }
        }
        all
    }

    /// `jobs are 0 to 19`.
    pub fn known(&self) -> String {
        match self.jobs.len() {
            0 => "the recording has no jobs".into(),
            1 => "the only job is 0".into(),
            jobs => format!("jobs are 0 to {}", jobs - 1),
        }
    }
}

pub(crate) fn phase(kind: u8) -> &'static str {
    SegmentKind::from_code(kind.into()).map_or("", SegmentKind::name)
}

fn compute(memory: &Image, job: ComputeJob, codes: &mut Codes) -> Option<Compute> {
    let (local, groups) = job.invocation.dimensions()?;
    let code = codes.at(memory, job.shader());
    Some(Compute {
        shader: job.shader(),
        code: code.map_err(|error| error.to_string()),
        local,
        groups,
        job,
    })
}
