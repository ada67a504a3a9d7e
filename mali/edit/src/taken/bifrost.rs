// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole job of Bifrost.

use gpureplay_jobs::Compute;
use mali_facts::{
    Draw, LocalStorage, Memory as _, RendererState, UniformBuffer, descriptor_address, job,
};

use super::held::Held;
use super::{Laid, Places, Put, gate};
use crate::error::Result;
use crate::scene::Memory;

/// Units of 16 bytes.
const UNIFORM_SHIFT: u32 = 4;

#[derive(Clone, Debug)]
pub(super) struct Bifrost {
    pub(super) compute: Compute,
    buffers: Vec<UniformBuffer>,
}

impl Bifrost {
    pub(super) fn of(memory: &Memory, compute: &Compute) -> (Self, Held) {
        let at = compute.job.draw.push_uniforms();
        let mut held = Held::of(memory, at, compute.job.state.uniform_bytes());
        let count = compute.job.state.uniform_buffer_count();
        let buffers = (0..count)
            .map(|index| {
                let at = compute.job.draw.uniform_buffers().wrapping_add(8 * index);
                let mut bytes = [0; UniformBuffer::SIZE];
                memory.read(at, &mut bytes);
                let buffer = UniformBuffer::from_bytes(&bytes);
                held.buffer(memory, buffer.pointer(), buffer.bytes());
                buffer
            })
            .collect();
        let compute = compute.clone();
        (Self { compute, buffers }, held)
    }

    pub(super) fn stands_alone(&self) -> Result<()> {
        let state = &self.compute.job.state;
        let counts = [
            ("textures", state.texture_count()),
            ("samplers", state.sampler_count()),
            ("attributes or images", state.attribute_count()),
        ];
        match counts.into_iter().find(|(_, count)| *count != 0) {
            Some((what, count)) => gate(
                "resources",
                format!("the job has {count} {what}, which are not taken along"),
            ),
            None => Ok(()),
        }
    }

    /// Descriptors without addresses.
    pub(super) fn bare(&self) -> Vec<Vec<u8>> {
        let job = &self.compute.job;
        let state: RendererState = job.state.with("Shader", 0);
        let storage = job.storage.map(|storage| {
            let storage: LocalStorage = storage.with("TLS base pointer", 0);
            let storage: LocalStorage = storage.with("WLS base pointer", 0);
            storage.to_bytes().to_vec()
        });
        vec![
            state.to_bytes().to_vec(),
            storage.unwrap_or_default(),
            job.invocation.to_bytes().to_vec(),
            job.parameters.to_bytes().to_vec(),
        ]
    }

    /// Bytes per thread, and of all work groups of a core.
    pub(super) fn storage(&self) -> [u64; 2] {
        self.compute.job.storage.map_or([0; 2], |storage| {
            let groups = match storage.wls_base() {
                0 => 0,
                _ => storage.wls_bytes() * storage.wls_instances(),
            };
            [storage.tls_bytes(), groups]
        })
    }

    pub(super) fn lay(&self, held: &Held, places: Places) -> Laid {
        let mut put = Put::at(places.descriptors);
        let compute = &self.compute;
        let flags = |pointer: u64| pointer - descriptor_address(pointer);
        let shader = compute.job.state.shader();
        let state: RendererState = compute
            .job
            .state
            .with("Shader", places.code | (shader & 15));
        let state = put.put(&state.to_bytes());
        let uniforms = put.put(&held.uniforms);
        let mut table = Vec::new();
        for (buffer, held) in self.buffers.iter().zip(&held.buffers) {
            let buffer: UniformBuffer = match held.is_empty() {
                true => *buffer,
                false => buffer.with("Pointer", put.put(held) >> UNIFORM_SHIFT),
            };
            table.extend(buffer.to_bytes());
        }
        let table = put.put(&table);
        let storage = compute.job.storage.map(|storage| {
            let mut new = storage;
            if storage.tls_base() != 0 {
                new = new.with("TLS base pointer", places.threads);
            }
            if storage.wls_base() != 0 {
                new = new.with("WLS base pointer", places.groups);
            }
            put.put(&new.to_bytes())
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
        Laid {
            payload: vec![
                (job::INVOCATION, compute.job.invocation.to_bytes().to_vec()),
                (
                    job::COMPUTE_PARAMETERS,
                    compute.job.parameters.to_bytes().to_vec(),
                ),
                (job::COMPUTE_DRAW, draw.to_bytes().to_vec()),
            ],
            descriptors: put.bytes,
        }
    }
}
