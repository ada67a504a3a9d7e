// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole job of another recording: its shader, uniforms, storage and sizes, with pointers to data of the recording that gets it.

use gpureplay_format::Recording as View;
use gpureplay_jobs::{Compute, Jobs};
use gpureplay_library::{Bindings, Recording, weights::sha256};
use mali_facts::{
    Draw, Invocation, LocalStorage, Profile, RendererState, UniformBuffer, descriptor_address,
};

use crate::error::{EditError, Result};
use crate::footprint::PAGE;
use crate::launch::Launch;
use crate::pointers::{Pair, Pointers};
use crate::scene::{Memory, Scene, compute_job};

/// Descriptors and uniforms lie at multiples of this.
const ALIGNMENT: u64 = 64;
/// The address of a uniform buffer is kept in units of 16 bytes.
const UNIFORM_SHIFT: u32 = 4;

/// A whole job, ready to be put into one recording.
#[derive(Clone, Debug)]
pub struct Taken {
    title: String,
    origin: String,
    compute: Compute,
    code: Vec<u8>,
    uniforms: Vec<u8>,
    /// Uniform buffers with what is in them.
    buffers: Vec<(UniformBuffer, Vec<u8>)>,
}

/// Where the parts of a job go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Its code.
    pub(crate) code: u64,
    /// Its descriptors and uniforms.
    pub(crate) descriptors: u64,
    /// Its storage of threads.
    pub(crate) threads: u64,
    /// Its storage of work groups.
    pub(crate) groups: u64,
}

/// What a job's descriptors become.
pub(crate) struct Laid {
    /// The job's own words behind its header: sizes, parameters, pointers.
    pub(crate) payload: [(u64, Vec<u8>); 3],
    /// Descriptors and uniforms, with their addresses.
    pub(crate) descriptors: Vec<(u64, Vec<u8>)>,
}

fn gate<T>(gate: &'static str, reason: String) -> Result<T> {
    Err(EditError::Gate { gate, reason })
}

fn round_up(bytes: u64, to: u64) -> u64 {
    bytes.div_ceil(to).saturating_mul(to)
}

/// What a job's uniforms and uniform buffers hold.
struct Given {
    uniforms: Vec<u8>,
    buffers: Vec<(UniformBuffer, Vec<u8>)>,
    /// Where that is.
    ranges: Vec<(u64, u64)>,
}

fn given(memory: &Memory, compute: &Compute) -> Given {
    let at = compute.job.draw.push_uniforms();
    let length = compute.job.state.uniform_bytes();
    let mut ranges = vec![(at, length)];
    let count = compute.job.state.uniform_buffer_count();
    let buffers = (0..count)
        .map(|index| {
            let at = compute.job.draw.uniform_buffers().wrapping_add(8 * index);
            let mut bytes = [0; UniformBuffer::SIZE];
            mali_facts::Memory::read(memory, at, &mut bytes);
            let buffer = UniformBuffer::from_bytes(&bytes);
            if buffer.pointer() == 0 {
                return (buffer, Vec::new());
            }
            ranges.push((buffer.pointer(), buffer.bytes()));
            let held = memory.bytes(buffer.pointer(), buffer.bytes() as usize);
            (buffer, held)
        })
        .collect();
    Given {
        uniforms: memory.bytes(at, length as usize),
        buffers,
        ranges,
    }
}

/// The tensor that lies in the uniforms of a job, if there is one: its values are given anew for each run.
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
    /// Takes a job, as it is in a run with these values, for the recording `ours`. Pointers to tensors lead to tensors of the same name, or to
    /// what `pairs` say; others stay if both recordings have the same region there.
    ///
    /// # Errors
    /// The job does not fit: another GPU, textures, a tensor in its uniforms, or data that `ours` does not have; or it does not run.
    pub fn new(
        ours: &Recording,
        theirs: &Recording,
        jobs: &Jobs,
        index: usize,
        bindings: &Bindings,
        pairs: &[Pair],
        work_limit: Option<u64>,
    ) -> Result<Self> {
        let (job, compute) = compute_job(jobs, index)?;
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
        let code = match &compute.code {
            Ok(code) => code.bytes.clone(),
            Err(error) => return gate("code", format!("the job's shader cannot be read: {error}")),
        };
        let state = &compute.job.state;
        let counts = [
            ("textures", state.texture_count()),
            ("samplers", state.sampler_count()),
            ("attributes or images", state.attribute_count()),
        ];
        if let Some((what, count)) = counts.into_iter().find(|(_, count)| *count != 0) {
            return gate(
                "resources",
                format!("the job has {count} {what}, which are not taken along"),
            );
        }
        let scene = Scene::take(theirs, jobs, bindings, index, work_limit)?;
        let outcome = scene.run("as it is", None)?;
        let mut given = given(&scene.memory, compute);
        if let Some(name) = tensor_in(theirs.verified().recording(), &given.ranges) {
            return gate(
                "uniforms",
                format!("tensor {name} lies in the job's uniforms, which are taken as they are"),
            );
        }
        let pointers = Pointers::between(theirs, ours, pairs)?;
        pointers.replace(&mut given.uniforms, "its push uniforms")?;
        for (number, (_, held)) in given.buffers.iter_mut().enumerate() {
            pointers.replace(held, &format!("uniform buffer {number}"))?;
        }
        // What it reaches besides must be there, too: pointers may also lie in data.
        let mut reached = outcome.footprint.read.clone();
        reached.union(&outcome.footprint.written);
        for (address, length) in reached.ranges() {
            let of_its_own = |(first, bytes): &(u64, u64)| {
                address >= *first && address + length <= first + bytes
            };
            if given.ranges.iter().any(of_its_own) {
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
            compute: compute.clone(),
            code,
            uniforms: given.uniforms,
            buffers: given.buffers,
        })
    }

    /// The kernel's name, or its hash.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Which job of which recording it is.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Its sizes.
    pub fn launch(&self) -> Launch {
        Launch::of(&self.compute)
    }

    pub(crate) fn compute(&self) -> &Compute {
        &self.compute
    }

    pub(crate) fn code(&self) -> &[u8] {
        &self.code
    }

    /// Refuses a place in a recording whose own uniforms are a tensor, which would have no effect any more.
    ///
    /// # Errors
    /// There is such a tensor.
    pub(crate) fn replaces(&self, view: &View<'_>, memory: &Memory, old: &Compute) -> Result<()> {
        match tensor_in(view, &given(memory, old).ranges) {
            Some(name) => gate(
                "uniforms",
                format!(
                    "tensor {name} lies in the recorded job's uniforms, which another job does not read; take its shader alone"
                ),
            ),
            None => Ok(()),
        }
    }

    /// Whether it is the recorded job.
    pub(crate) fn is(&self, memory: &Memory, old: &Compute) -> bool {
        let here = given(memory, old);
        let bare = |compute: &Compute| {
            let state: RendererState = compute.job.state.with("Shader", 0);
            let storage = compute.job.storage.map(|storage| {
                let storage: LocalStorage = storage.with("TLS base pointer", 0);
                let storage: LocalStorage = storage.with("WLS base pointer", 0);
                storage.to_bytes()
            });
            (
                state.to_bytes(),
                storage,
                compute.job.invocation.to_bytes(),
                compute.job.parameters.to_bytes(),
            )
        };
        let held = |buffers: &[(UniformBuffer, Vec<u8>)]| -> Vec<Vec<u8>> {
            buffers.iter().map(|(_, held)| held.clone()).collect()
        };
        let code = old.code.as_ref().map(|code| &code.bytes);
        code == Ok(&self.code)
            && bare(old) == bare(&self.compute)
            && here.uniforms == self.uniforms
            && held(&here.buffers) == held(&self.buffers)
    }

    /// Bytes of storage that it needs, of threads and of work groups.
    pub(crate) fn storage(&self, profile: &Profile) -> [u64; 2] {
        let cores = u64::from(profile.core_id_range());
        self.compute.job.storage.map_or([0; 2], |storage| {
            let threads = storage.tls_bytes() * u64::from(profile.max_threads) * cores;
            let groups = match storage.wls_base() {
                0 => 0,
                _ => storage.wls_bytes() * storage.wls_instances() * cores,
            };
            [threads, groups].map(|bytes| round_up(bytes, PAGE))
        })
    }

    /// Its descriptors and uniforms for these places.
    pub(crate) fn lay(&self, places: Places) -> Laid {
        let mut at = places.descriptors;
        let mut descriptors = Vec::new();
        let mut put = |bytes: Vec<u8>| {
            let here = at;
            at = round_up(at.saturating_add(bytes.len().max(1) as u64), ALIGNMENT);
            descriptors.push((here, bytes));
            here
        };
        let compute = &self.compute;
        let flags = |pointer: u64| pointer - descriptor_address(pointer);
        let shader = compute.job.state.shader();
        let state: RendererState = compute
            .job
            .state
            .with("Shader", places.code | (shader & 15));
        let state = put(state.to_bytes().to_vec());
        let uniforms = put(self.uniforms.clone());
        let mut table = Vec::new();
        for (buffer, held) in &self.buffers {
            let buffer: UniformBuffer = match held.is_empty() {
                true => *buffer,
                false => buffer.with("Pointer", put(held.clone()) >> UNIFORM_SHIFT),
            };
            table.extend(buffer.to_bytes());
        }
        let table = put(table);
        let storage = compute.job.storage.map(|storage| {
            let mut new = storage;
            if storage.tls_base() != 0 {
                new = new.with("TLS base pointer", places.threads);
            }
            if storage.wls_base() != 0 {
                new = new.with("WLS base pointer", places.groups);
            }
            put(new.to_bytes().to_vec())
        });
        let old = &compute.job.draw;
        let mut draw: Draw = old.with("State", state | flags(old.state()));
        for (name, value) in [
            ("Push uniforms", uniforms),
            ("Uniform buffers", table),
            (
                "Thread storage",
                storage.map_or(0, |at| at | flags(old.thread_storage())),
            ),
            ("Textures", 0),
            ("Samplers", 0),
            ("Attributes", 0),
            ("Attribute buffers", 0),
        ] {
            draw = draw.with(name, value);
        }
        use mali_facts::job;
        let invocation: &Invocation = &compute.job.invocation;
        Laid {
            payload: [
                (job::INVOCATION, invocation.to_bytes().to_vec()),
                (
                    job::COMPUTE_PARAMETERS,
                    compute.job.parameters.to_bytes().to_vec(),
                ),
                (job::COMPUTE_DRAW, draw.to_bytes().to_vec()),
            ],
            descriptors,
        }
    }
}
