// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a shader was given by the job that it was compiled for. Code does not say all of it: how many bytes of storage there are, for
//! example. It stands in a file beside the code, and another job must give at least as much.

use gpureplay_jobs::{Compute, Job};
use mali_facts::{Architecture, Profile, RendererState};
use mali_isa::Shader;
use serde::{Deserialize, Serialize};

use crate::error::{EditError, Result};

const VERSION: u32 = 1;

/// What code is known by, in hexadecimal; none if it cannot be read.
pub(crate) fn hash(code: &[u8]) -> Option<String> {
    let identity = Shader::identify(|offset: u32| {
        let at = offset as usize;
        let word = code
            .get(at..at.saturating_add(16))
            .and_then(|it| it.try_into().ok());
        word.ok_or(mali_isa::DecodeError::Truncated { offset: at })
    });
    let (_, identity) = identity.ok()?;
    Some(format!("{:016x}", identity.hash))
}

/// What a shader was given. Numbers are counts, storage is bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// [`VERSION`].
    version: u32,
    /// The GPU that it was compiled for, such as `g52`.
    pub gpu: String,
    /// The shader's hash in hexadecimal.
    pub hash: String,
    /// Name of the kernel, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Slots of 64 bits of push uniforms.
    pub uniforms: u64,
    /// What is in registers when a thread starts.
    pub initial: Vec<String>,
    /// Registers of each thread: 32 or 64.
    pub registers: u32,
    /// Threads wait for their work group.
    pub barrier: bool,
    /// Bytes of storage of each thread.
    pub thread_storage: u64,
    /// Bytes of storage that a work group shares.
    pub group_storage: u64,
    /// Textures.
    pub textures: u64,
    /// Samplers.
    pub samplers: u64,
    /// Attributes and images.
    pub attributes: u64,
    /// Uniform buffers.
    pub uniform_buffers: u64,
}

/// What a renderer state puts into registers, by name, from r55 on.
pub(crate) fn preloads(state: &RendererState) -> [(&'static str, bool); 8] {
    [
        ("local x and y", state.preload_local_xy()),
        ("local z", state.preload_local_z()),
        ("work group x", state.preload_workgroup_x()),
        ("work group y", state.preload_workgroup_y()),
        ("work group z", state.preload_workgroup_z()),
        ("global x", state.preload_global_x()),
        ("global y", state.preload_global_y()),
        ("global z", state.preload_global_z()),
    ]
    .map(|(name, there)| (name, there != 0))
}

/// Registers that a job gives each thread.
pub(crate) fn registers(compute: &Compute, profile: &Profile) -> u32 {
    let few =
        profile.architecture == Architecture::V7 && compute.job.state.register_allocation() == 2;
    if few { 32 } else { 64 }
}

impl Interface {
    /// What a job gives its shader; none if it is no compute job, or its code cannot be read.
    pub fn of(job: &Job, profile: &Profile) -> Option<Self> {
        let compute = job.compute.as_ref()?;
        let state = &compute.job.state;
        let initial = preloads(state).into_iter().filter(|(_, there)| *there);
        Some(Self {
            version: VERSION,
            gpu: profile.name.into(),
            hash: format!("{:016x}", compute.identity()?.hash),
            kernel: job.name.as_deref().map(str::to_owned),
            uniforms: state.uniform_count(),
            initial: initial.map(|(name, _)| name.to_owned()).collect(),
            registers: registers(compute, profile),
            barrier: state.contains_barrier() != 0,
            thread_storage: compute.thread_storage(),
            group_storage: compute.group_storage(),
            textures: state.texture_count(),
            samplers: state.sampler_count(),
            attributes: state.attribute_count(),
            uniform_buffers: state.uniform_buffer_count(),
        })
    }

    /// Whether a job gives all of it to a shader with this code.
    ///
    /// # Errors
    /// The first gate that it does not pass.
    pub fn fits(&self, code: &[u8], compute: &Compute, profile: &Profile) -> Result<()> {
        let gate = |gate: &'static str, reason: String| Err(EditError::Gate { gate, reason });
        if self.version != VERSION {
            return gate(
                "code",
                format!(
                    "the file beside it has version {}, and this program reads {VERSION}",
                    self.version
                ),
            );
        }
        if hash(code).as_ref() != Some(&self.hash) {
            return gate(
                "code",
                format!("the file beside it belongs to shader {}", self.hash),
            );
        }
        if self.gpu != profile.name {
            return gate(
                "product",
                format!(
                    "it was compiled for {}, and the job runs on {}",
                    self.gpu, profile.name
                ),
            );
        }
        let state = &compute.job.state;
        for (name, there) in preloads(state) {
            if !there && self.initial.iter().any(|wanted| wanted == name) {
                return gate(
                    "initial registers",
                    format!(
                        "it was compiled to find {name} there, and the job does not put it there"
                    ),
                );
            }
        }
        if self.registers > registers(compute, profile) {
            return gate(
                "register allocation",
                "it was compiled for 64 registers, and the job gives each thread 32".into(),
            );
        }
        if self.barrier && state.contains_barrier() == 0 {
            return gate(
                "barrier",
                "it was compiled with a barrier, and the job says that there is none".into(),
            );
        }
        let limits = [
            (
                "uniforms",
                "slots of push uniforms",
                self.uniforms,
                state.uniform_count(),
            ),
            (
                "thread storage",
                "bytes of storage of each thread",
                self.thread_storage,
                compute.thread_storage(),
            ),
            (
                "group storage",
                "bytes that a work group shares",
                self.group_storage,
                compute.group_storage(),
            ),
            (
                "resources",
                "textures",
                self.textures,
                state.texture_count(),
            ),
            (
                "resources",
                "samplers",
                self.samplers,
                state.sampler_count(),
            ),
            (
                "resources",
                "attributes",
                self.attributes,
                state.attribute_count(),
            ),
            (
                "resources",
                "uniform buffers",
                self.uniform_buffers,
                state.uniform_buffer_count(),
            ),
        ];
        for (name, what, wanted, given) in limits {
            if wanted > given {
                return gate(
                    name,
                    format!("it was compiled for {wanted} {what}, and the job gives {given}"),
                );
            }
        }
        Ok(())
    }
}
