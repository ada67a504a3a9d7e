// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a shader's job gave it, in a file beside the code: code does not say all, such as bytes of storage. Another
//! job must give as much.

use gpureplay_jobs::{Compute, Job};
use mali_facts::{Architecture, Profile, RendererState};
use mali_isa::Shader;
use serde::{Deserialize, Serialize};

use crate::error::{Result, gate};
use crate::shader::{preloads, registers};
use crate::words;

const VERSION: u32 = 1;

/// `None` if the code cannot be read.
pub(crate) fn hash(code: &[u8], architecture: Architecture) -> Option<String> {
    let hash = match architecture.has_clauses() {
        true => clauses(code)?,
        false => words::decoded(code).ok()?.hash,
    };
    Some(format!("{hash:016x}"))
}

fn clauses(code: &[u8]) -> Option<u64> {
    let identity = Shader::identify(|offset: u32| {
        let at = offset as usize;
        let word = code
            .get(at..at.saturating_add(16))
            .and_then(|it| it.try_into().ok());
        word.ok_or(mali_isa::DecodeError::Truncated { offset: at })
    });
    let (_, identity) = identity.ok()?;
    Some(identity.hash)
}

/// Counts, and bytes of storage. On Valhall no descriptor has the optional ones but a kernel's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    version: u32,
    /// Such as `g52`.
    pub gpu: String,
    /// In hexadecimal.
    pub hash: String,
    /// Name, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Push uniform slots of 64 bits.
    pub uniforms: u64,
    /// Registers filled when a thread starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Vec<String>>,
    /// Per thread: 32 or 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// Threads wait for their work group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barrier: Option<bool>,
    /// Bytes per thread.
    pub thread_storage: u64,
    /// Bytes per work group.
    pub group_storage: u64,
    /// Textures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub textures: Option<u64>,
    /// Samplers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samplers: Option<u64>,
    /// Attributes and images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<u64>,
    /// Uniform buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uniform_buffers: Option<u64>,
}

impl Interface {
    /// `None`: no compute job, or unreadable code.
    pub fn of(job: &Job, profile: &Profile) -> Option<Self> {
        let work = job.work()?;
        let [thread_storage, group_storage] = work.storage_bytes;
        let compute = job.compute.as_ref();
        let state = compute.map(|compute| &compute.job.state);
        let initial = |state| {
            let there = preloads(state).into_iter().filter(|(_, there)| *there);
            there.map(|(name, _)| name.to_owned()).collect()
        };
        Some(Self {
            version: VERSION,
            gpu: profile.name.into(),
            hash: format!("{:016x}", job.hash()?),
            kernel: job.name.as_deref().map(str::to_owned),
            uniforms: work.uniform_bytes / 8,
            initial: state.map(initial),
            registers: compute.map(|compute| registers(compute, profile)),
            barrier: state.map(|state| state.contains_barrier() != 0),
            thread_storage,
            group_storage,
            textures: state.map(RendererState::texture_count),
            samplers: state.map(RendererState::sampler_count),
            attributes: state.map(RendererState::attribute_count),
            uniform_buffers: state.map(RendererState::uniform_buffer_count),
        })
    }

    /// Whether a job gives all of it.
    ///
    /// # Errors
    /// The first failed gate.
    pub fn fits(&self, code: &[u8], job: &Job, profile: &Profile) -> Result<()> {
        if self.version != VERSION {
            return gate(
                "code",
                format!(
                    "the file beside it has version {}, and this program reads {VERSION}",
                    self.version
                ),
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
        if hash(code, profile.architecture).as_ref() != Some(&self.hash) {
            return gate(
                "code",
                format!("the file beside it belongs to shader {}", self.hash),
            );
        }
        if let Some(compute) = &job.compute {
            self.fits_state(compute, profile)?;
        }
        let Some(work) = job.work() else {
            return gate("descriptors", "the job launches no work groups".into());
        };
        let [thread, group] = work.storage_bytes;
        for (name, what, wanted, given) in [
            (
                "uniforms",
                "slots of push uniforms",
                self.uniforms,
                work.uniform_bytes / 8,
            ),
            (
                "thread storage",
                "bytes of storage of each thread",
                self.thread_storage,
                thread,
            ),
            (
                "group storage",
                "bytes that a work group shares",
                self.group_storage,
                group,
            ),
        ] {
            at_most(name, what, wanted, given)?;
        }
        Ok(())
    }

    /// Only Bifrost has a renderer state.
    fn fits_state(&self, compute: &Compute, profile: &Profile) -> Result<()> {
        let state = &compute.job.state;
        let initial = self.initial.as_deref().unwrap_or_default();
        for (name, there) in preloads(state) {
            if !there && initial.iter().any(|wanted| wanted == name) {
                return gate(
                    "initial registers",
                    format!(
                        "it was compiled to find {name} there, and the job does not put it there"
                    ),
                );
            }
        }
        if self.registers > Some(registers(compute, profile)) {
            return gate(
                "register allocation",
                "it was compiled for 64 registers, and the job gives each thread 32".into(),
            );
        }
        if self.barrier == Some(true) && state.contains_barrier() == 0 {
            return gate(
                "barrier",
                "it was compiled with a barrier, and the job says that there is none".into(),
            );
        }
        for (what, wanted, given) in [
            ("textures", self.textures, state.texture_count()),
            ("samplers", self.samplers, state.sampler_count()),
            ("attributes", self.attributes, state.attribute_count()),
            (
                "uniform buffers",
                self.uniform_buffers,
                state.uniform_buffer_count(),
            ),
        ] {
            at_most("resources", what, wanted.unwrap_or_default(), given)?;
        }
        Ok(())
    }
}

fn at_most(name: &'static str, what: &str, wanted: u64, given: u64) -> Result<()> {
    match wanted > given {
        true => gate(
            name,
            format!("it was compiled for {wanted} {what}, and the job gives {given}"),
        ),
        false => Ok(()),
    }
}
