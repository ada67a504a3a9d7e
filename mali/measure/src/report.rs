// SPDX-License-Identifier: MIT OR Apache-2.0
//! Report; see `docs/reference/schemas/jobs.json`.

use std::collections::{BTreeMap, HashMap, HashSet};

use gpureplay_host::statistics::Spread;
use gpureplay_library::{Recording, weights::sha256};
use mali_facts::{Architecture, JobType};
use serde::{Deserialize, Serialize};

pub use crate::figures::{Measurement, Work};
use crate::measure::Measured;
use crate::registers;
use crate::table::{Job, Jobs};

/// Changes when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// All that is known about the jobs of a recording.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this structure: 1.
    pub schema: u32,
    /// Name of the recording.
    pub recording: String,
    /// SHA-256 of the file in hexadecimal.
    pub recording_sha256: String,
    /// The GPU that was recorded.
    pub gpu: String,
    /// What was selected, as it was written; nothing for all jobs.
    pub selection: Option<String>,
    /// How times and work were found; nothing if the recording was not run.
    pub measurement: Option<Measurement>,
    /// All layers of the recording, independent of the selection.
    pub layers: Vec<LayerReport>,
    /// Chains that have a selected job.
    pub chains: Vec<ChainReport>,
    /// The selected jobs.
    pub jobs: Vec<JobReport>,
    /// The shaders of the selected jobs, in the order of their first job.
    pub kernels: Vec<KernelReport>,
}

/// A layer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerReport {
    /// Its number, from 1 as `gpureplay info` counts.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// Numbers of its jobs.
    pub jobs: Vec<usize>,
}

/// A chain.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainReport {
    /// Its number in the recording, from 0, set-up included.
    pub number: usize,
    /// `setup`, `run` or `finish`.
    pub phase: String,
    /// Name of its layer; nothing outside of runs.
    pub layer: Option<String>,
    /// Job slot.
    pub slot: u8,
    /// Address of the first job's header, hexadecimal.
    pub address: String,
    /// Numbers of all of its jobs.
    pub jobs: Vec<usize>,
    /// Time on the clock of the measurement. Set-up runs once, so its chains have one time.
    pub seconds: Option<Spread>,
    /// Cycles of the GPU's clock around the chain, if the GPU's counters were read.
    #[serde(default)]
    pub gpu_cycles: Option<Spread>,
    /// Ticks of the system's counter around the chain, if the GPU's counters were read.
    #[serde(default)]
    pub gpu_ticks: Option<Spread>,
}

/// A job.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// Its number in the recording, from 0, set-up included.
    pub index: usize,
    /// Number of its chain.
    pub chain: usize,
    /// `setup`, `run` or `finish`.
    pub phase: String,
    /// Name of its layer; nothing outside of runs.
    pub layer: Option<String>,
    /// Address of its header, hexadecimal.
    pub address: String,
    /// Type of the job: `COMPUTE`, `WRITE_VALUE`, ….
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the kernel, where the manifest knows it.
    pub name: Option<String>,
    /// Number of the launch in the app, where the manifest knows it.
    pub launch: Option<u32>,
    /// Hash of the shader, 16 hexadecimal digits; nothing for jobs without a shader and for code that does not decode.
    pub kernel: Option<String>,
    /// Address of the shader, hexadecimal.
    pub shader: Option<String>,
    /// Jobs of the whole recording that run the same shader, this one included.
    pub occurrences: usize,
    /// Threads of a work group by dimension.
    pub local: Option<[u32; 3]>,
    /// Work groups by dimension.
    pub groups: Option<[u32; 3]>,
    /// Threads by dimension.
    pub global: Option<[u64; 3]>,
    /// Different registers that the shader's instructions name, those among them that hold ids when a thread starts.
    pub registers: Option<u32>,
    /// Registers that the job's descriptor gives each thread.
    pub registers_allocated: Option<u32>,
    /// Bytes of storage that each thread has.
    pub thread_storage_bytes: Option<u64>,
    /// Bytes of storage that the threads of a work group share.
    pub group_storage_bytes: Option<u64>,
    /// Whether the job's descriptor says that the shader has a barrier.
    pub barrier: Option<bool>,
    /// Bytes of uniforms that the shader reads directly.
    pub uniform_bytes: Option<u64>,
    /// What the model's shader cores did.
    pub work: Option<Work>,
    /// Memory lines that its warps touched, where they were counted: `jobs --sort lines`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_lines: Option<u64>,
    /// Time that the model took for this job alone, on the clock of the measurement. Other devices see whole chains only.
    pub seconds: Option<Spread>,
}

/// A shader, with all selected jobs that run it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    /// Its hash, 16 hexadecimal digits.
    pub hash: String,
    /// Names that the manifest gives it.
    pub names: Vec<String>,
    /// Numbers of the selected jobs that run it.
    pub jobs: Vec<usize>,
    /// Bytes of code.
    pub bytes: u64,
    /// Clauses that control flow can reach; 0 on Valhall, which has none.
    pub clauses: u32,
    /// Its instructions, those that do nothing included.
    pub instructions: usize,
    /// Different registers that its instructions name.
    pub registers: u32,
    /// Work of these jobs together.
    pub work: Option<Work>,
    /// Memory lines of these jobs together, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_lines: Option<u64>,
    /// Median times of these jobs together in seconds.
    pub seconds: Option<f64>,
}

impl Report {
    /// Sets memory lines by job; one without a count has none.
    pub fn set_lines(&mut self, lines: &BTreeMap<usize, u64>) {
        let of = |job: usize| lines.get(&job).copied().unwrap_or(0);
        for job in &mut self.jobs {
            job.memory_lines = Some(of(job.index));
        }
        for kernel in &mut self.kernels {
            let counts = kernel.jobs.iter().map(|job| of(*job));
            kernel.memory_lines = Some(counts.fold(0, u64::saturating_add));
        }
    }

    /// `selected`: jobs, ascending; `selection`: how they were chosen.
    pub fn new(
        recording: &Recording,
        jobs: &Jobs,
        selected: &[usize],
        selection: Option<String>,
        measured: Option<&Measured>,
    ) -> Self {
        let mut occurrences: BTreeMap<u64, usize> = BTreeMap::new();
        for job in &jobs.jobs {
            if let Some(hash) = job.hash() {
                *occurrences.entry(hash).or_default() += 1;
            }
        }
        let phases = phases(recording);
        let chosen: Vec<&Job> = selected
            .iter()
            .filter_map(|at| jobs.jobs.get(*at))
            .collect();
        let reports: Vec<JobReport> = chosen
            .iter()
            .map(|job| job_report(jobs, job, &phases, &occurrences, measured))
            .collect();
        Self {
            schema: SCHEMA,
            recording: recording.name(),
            recording_sha256: sha256(&recording.recorded().files().bytes),
            gpu: jobs.gpu.to_string(),
            selection,
            measurement: measured.map(|measured| measured.measurement.clone()),
            layers: layers(jobs),
            chains: chains(jobs, &chosen, &phases, measured),
            kernels: kernels(&chosen, &reports),
            jobs: reports,
        }
    }
}

fn phases(recording: &Recording) -> Vec<&'static str> {
    let segments = recording.verified().recording().segments().iter();
    segments
        .map(|segment| crate::table::phase(segment.kind))
        .collect()
}

fn phase(phases: &[&'static str], segment: u32) -> String {
    let phase = phases.get(segment as usize).copied();
    phase.unwrap_or_default().to_owned()
}

fn layers(jobs: &Jobs) -> Vec<LayerReport> {
    let numbered = jobs.layers.iter().enumerate();
    let mut reports: Vec<LayerReport> = numbered
        .map(|(at, layer)| LayerReport {
            number: at + 1,
            name: layer.name.clone(),
            jobs: Vec::new(),
        })
        .collect();
    for chain in &jobs.chains {
        if let Some(report) = chain.layer.and_then(|at| reports.get_mut(at)) {
            report.jobs.extend(chain.jobs.clone());
        }
    }
    reports
}

fn chains(
    jobs: &Jobs,
    chosen: &[&Job],
    phases: &[&'static str],
    measured: Option<&Measured>,
) -> Vec<ChainReport> {
    let mut numbers: Vec<usize> = chosen.iter().map(|job| job.chain).collect();
    numbers.dedup();
    let chains = numbers.into_iter().filter_map(|at| jobs.chains.get(at));
    chains
        .map(|chain| {
            let counters = measured.map(|measured| measured.counters(chain.number));
            let [gpu_cycles, gpu_ticks] = counters.unwrap_or_default();
            ChainReport {
                number: chain.number,
                phase: phase(phases, chain.segment),
                layer: chain
                    .layer
                    .and_then(|at| jobs.layers.get(at))
                    .map(|layer| layer.name.clone()),
                slot: chain.slot,
                address: format!("{:#x}", chain.head),
                jobs: chain.jobs.clone().collect(),
                seconds: measured.and_then(|measured| measured.chain(chain.number)),
                gpu_cycles,
                gpu_ticks,
            }
        })
        .collect()
}

fn job_report(
    jobs: &Jobs,
    job: &Job,
    phases: &[&'static str],
    occurrences: &BTreeMap<u64, usize>,
    measured: Option<&Measured>,
) -> JobReport {
    let compute = job.compute.as_ref();
    let (work, hash) = (job.work(), job.hash());
    let segment = jobs.chains.get(job.chain).map_or(0, |chain| chain.segment);
    JobReport {
        index: job.index,
        chain: job.chain,
        phase: phase(phases, segment),
        layer: jobs.layer(job).map(|layer| layer.name.clone()),
        address: format!("{:#x}", job.address),
        kind: job.kind.map_or("unknown", JobType::name).to_owned(),
        name: job.name.as_deref().map(str::to_owned),
        launch: job.launch,
        kernel: hash.map(|hash| format!("{hash:016x}")),
        shader: work.map(|work| format!("{:#x}", work.shader)),
        occurrences: hash
            .and_then(|hash| occurrences.get(&hash).copied())
            .unwrap_or(1),
        local: work.map(|work| work.size),
        groups: work.map(|work| work.count),
        global: work.map(|work| work.items()),
        registers: counts(job).map(|counts| counts.registers),
        registers_allocated: compute
            .filter(|_| jobs.profile.architecture == Architecture::V7)
            .and_then(|compute| match compute.job.state.register_allocation() {
                0 => Some(64),
                2 => Some(32),
                _ => None,
            }),
        thread_storage_bytes: work.map(|work| work.storage_bytes[0]),
        group_storage_bytes: work.map(|work| work.storage_bytes[1]),
        barrier: compute.map(|compute| compute.job.state.contains_barrier() != 0),
        uniform_bytes: work.map(|work| work.uniform_bytes),
        work: measured.and_then(|measured| measured.work(job.index)),
        memory_lines: None,
        seconds: measured.and_then(|measured| measured.job(job.index)),
    }
}

fn counts(job: &Job) -> Option<KernelReport> {
    let bifrost = || {
        let code = job.compute.as_ref()?.code.as_ref().ok()?;
        Some(KernelReport {
            bytes: code.identity.bytes,
            clauses: code.identity.clauses,
            instructions: code.shader.instructions(),
            registers: registers::named(&code.shader).count_ones(),
            ..KernelReport::default()
        })
    };
    let words = || {
        let code = job.valhall.as_ref()?.code.as_ref().ok()?;
        Some(KernelReport {
            bytes: code.bytes.len() as u64,
            instructions: code.instructions(),
            registers: code.registers.count_ones(),
            ..KernelReport::default()
        })
    };
    bifrost().or_else(words)
}

fn kernels(chosen: &[&Job], reports: &[JobReport]) -> Vec<KernelReport> {
    let mut kernels: Vec<KernelReport> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut names: HashSet<(usize, &str)> = HashSet::new();
    for (job, report) in chosen.iter().zip(reports) {
        let Some(hash) = &report.kernel else {
            continue;
        };
        let at = *places.entry(hash.as_str()).or_insert_with(|| {
            kernels.push(KernelReport {
                hash: hash.clone(),
                ..counts(job).unwrap_or_default()
            });
            kernels.len() - 1
        });
        let Some(kernel) = kernels.get_mut(at) else {
            continue;
        };
        kernel.jobs.push(report.index);
        if let Some(name) = &report.name
            && names.insert((at, name.as_str()))
        {
            kernel.names.push(name.clone());
        }
        if let Some(work) = &report.work {
            kernel.work.get_or_insert_default().add(work);
        }
        if let Some(seconds) = report.seconds {
            *kernel.seconds.get_or_insert_default() += seconds.median;
        }
    }
    kernels
}
