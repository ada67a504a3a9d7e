// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drawing, as far as runtimes fill images by a rectangle.
//!
//! An indexed vertex job ([`vertex`]), on Valhall a malloc vertex job ([`valhall`]), computes positions and varyings,
//! and notes primitives in the tiler's heap ([`tiler`]). A fragment job ([`fragment`]) fills its framebuffer
//! ([`framebuffer`]) by tiles: clear, frame shader, triangles ([`primitive`], [`shading`]), writeback. What is not
//! modelled ends with JOB_CONFIG_FAULT, nonsense with DATA_INVALID_FAULT.

pub(crate) mod fragment;
mod framebuffer;
mod primitive;
mod shading;
mod tiler;
pub(crate) mod valhall;
pub(crate) mod vertex;

use gpureplay_memory::Bus;
use gpureplay_shader::Grid;
use mali_facts::registers::JobStatus;
use mali_facts::{Draw, LocalStorage, descriptor_address};
use mali_shader::{Dispatch, Stage};

use crate::compute::{product, shader_fault, thread_storage};
use crate::environment::{Environment, JobFault};
use crate::space::JobMemory;

pub(crate) struct Job<'a, B: Bus> {
    pub(crate) environment: &'a Environment<B>,
    pub(crate) memory: &'a JobMemory<'a, B>,
    pub(crate) address: u64,
}

impl<B: Bus> Job<'_, B> {
    fn unmodelled(&self, what: impl std::fmt::Display) -> JobFault {
        let text = format!("{what}: not modelled");
        JobFault::new(JobStatus::JOB_CONFIG_FAULT, self.address, text)
    }

    fn invalid(&self, what: impl Into<String>) -> JobFault {
        JobFault::new(JobStatus::DATA_INVALID_FAULT, self.address, what)
    }

    fn demand(&self, conditions: &[(bool, &str)]) -> Result<(), JobFault> {
        match conditions.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(self.unmodelled(what)),
            None => Ok(()),
        }
    }

    fn has_packets(&self) -> bool {
        self.environment.profile.architecture.has_resource_tables()
    }

    fn spend(&self, clauses: u64) -> Result<(), JobFault> {
        if self.environment.control.shader.spend(clauses) {
            return Ok(());
        }
        let text = "the job was told to stop or used up its budget";
        Err(JobFault::new(JobStatus::TERMINATED, self.address, text))
    }

    fn dispatch(&self, draw: &Draw) -> Result<Dispatch, JobFault> {
        let profile = self.environment.profile;
        let storage = match descriptor_address(draw.thread_storage()) {
            0 => None,
            at => Some(LocalStorage::from_bytes(&self.memory.bytes(at)?)),
        };
        Ok(Dispatch {
            grid: Grid {
                workgroup_size: [1; 3],
                push_uniforms: draw.push_uniforms(),
                thread_storage: thread_storage(profile, storage.as_ref()),
                ..Grid::default()
            },
            architecture: profile.architecture,
            product: product(profile),
            uniform_buffers: draw.uniform_buffers(),
            attributes: draw.attributes(),
            attribute_buffers: draw.attribute_buffers(),
            textures: draw.textures(),
            samplers: draw.samplers(),
            ..Dispatch::default()
        })
    }

    fn run(&self, dispatch: &Dispatch, stage: &Stage) -> Result<(), JobFault> {
        let environment = self.environment;
        let (threads, control) = (&environment.threads, &environment.control.shader);
        mali_shader::draw(dispatch, stage, self.memory, threads, control)
            .map(|_| ())
            .map_err(|fault| shader_fault(dispatch.grid.shader, fault))
    }
}
