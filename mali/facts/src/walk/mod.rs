// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks a chain's descriptors without running it.
//!
//! [`walk_chain`] shows descriptors and memory to a [`Visitor`], such as [`Text`](crate::Text).

mod reading;

use core::fmt;

pub(crate) use self::reading::{Reading, descriptor};

use crate::chain::{ChainEnd, Memory, follow};
use crate::{
    Access, Attribute, AttributeBuffer, AttributeBuffer3d, CacheFlush, ComputeParameters, Draw,
    Invocation, Job, JobHeader, JobType, Layout, LocalStorage, Profile, RendererState, Sampler,
    Surface, Texture, UniformBuffer, WriteValue, clause_address, job, valhall,
};

/// Most surfaces listed of a texture; real ones have fewer.
const MAXIMUM_SURFACES: u64 = 4096;

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Descriptors.
    Descriptor,
    /// Written by the GPU to headers.
    Status,
    /// Instructions, of unknown length.
    Shader,
    /// Push uniforms.
    PushUniforms,
    /// A uniform buffer.
    UniformBuffer,
    /// Or of an image.
    AttributeBuffer,
    /// Texels.
    Texels,
    /// Of threads.
    ThreadStorage,
    /// Of work groups.
    WorkgroupStorage,
    /// Target of a WRITE_VALUE job.
    Value,
}

impl Purpose {
    /// Shaders decide whether they write attribute buffers.
    pub const fn access(self) -> Access {
        match self {
            Purpose::Descriptor
            | Purpose::PushUniforms
            | Purpose::UniformBuffer
            | Purpose::Texels => Access::Read,
            Purpose::Shader => Access::Execute,
            _ => Access::Write,
        }
    }

    /// Purpose in words.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Descriptor => "descriptor",
            Purpose::Status => "job status",
            Purpose::Shader => "shader",
            Purpose::PushUniforms => "push uniforms",
            Purpose::UniformBuffer => "uniform buffer",
            Purpose::AttributeBuffer => "attribute buffer",
            Purpose::Texels => "texels",
            Purpose::ThreadStorage => "thread storage",
            Purpose::WorkgroupStorage => "work group storage",
            Purpose::Value => "value",
        }
    }
}

/// Where an address is written, in eight bytes; tables' entries share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// In the previous header or submission.
    Chain,
    /// Bytes from the job's start.
    Job(u64),
    /// In a descriptor.
    Word {
        /// Address of the word.
        at: u64,
        /// Its left shift there.
        shift: u32,
    },
    /// In another form, or by a shader; the target must stay.
    Fixed,
}

const fn in_draw(field: &str) -> Pointer {
    match Draw::LAYOUT.offset_of(field) {
        Some(offset) => Pointer::Job(job::COMPUTE_DRAW + offset),
        None => Pointer::Fixed,
    }
}

/// Left shift of the address in a [`UniformBuffer`].
const UNIFORM_SHIFT: u32 = 8;

/// Memory that a job names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Purpose.
    pub purpose: Purpose,
    /// Number in a table.
    pub index: u32,
    /// First byte.
    pub address: u64,
    /// In bytes; `None` if unknown.
    pub length: Option<u64>,
    /// By the job.
    pub access: Access,
    /// Where its address is written.
    pub pointer: Pointer,
}

/// A descriptor in memory.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Shape.
    pub layout: &'static Layout,
    /// Number in a table.
    pub index: Option<u32>,
    /// Address.
    pub address: u64,
    /// Words.
    pub words: &'a [u32],
    /// Pointer to it, or to its table.
    pub pointer: Pointer,
}

/// The job would fail, or cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The chain ends too early.
    Chain(ChainEnd),
    /// A descriptor of this name is in unknown memory.
    Unknown(&'static str),
    /// No such type.
    JobType(u64),
    /// The walk does not know such jobs.
    NotShown(JobType),
    /// Shifts of an [`Invocation`] are out of order.
    Shifts,
    /// Tables have no descriptors of this type.
    DescriptorType(u32),
    /// No program, or one of another stage.
    Program,
    /// Offsets of work groups are not 0.
    Offsets,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Chain(end) => end.fmt(f),
            Problem::Unknown(name) => write!(f, "{name} cannot be read"),
            Problem::JobType(number) => write!(f, "job type {number} does not exist"),
            Problem::NotShown(kind) => {
                write!(f, "the descriptors of {} jobs are not shown", kind.name())
            }
            Problem::Shifts => f.write_str("the invocation's shifts are out of order"),
            Problem::DescriptorType(number) => write!(f, "descriptor type {number} in a table"),
            Problem::Program => f.write_str("the descriptor is none of a compute shader"),
            Problem::Offsets => f.write_str("work groups do not begin at 0"),
        }
    }
}

/// For [`walk_chain`]; by default does nothing.
pub trait Visitor {
    /// Whether to show more tables: a hostile job may name 65,535 textures with 4096 surfaces each.
    fn wants_more(&self) -> bool {
        true
    }

    /// A job; what follows is its, up to the next one.
    fn job(&mut self, address: u64, job_type: Option<JobType>) {
        let _ = (address, job_type);
    }

    /// Visits a descriptor.
    fn descriptor(&mut self, found: &Found<'_>) {
        let _ = found;
    }

    /// Memory that the job names.
    fn memory(&mut self, memory: &MemoryUse) {
        let _ = memory;
    }

    /// An error, or something unreadable.
    fn problem(&mut self, address: u64, problem: &Problem) {
        let _ = (address, problem);
    }
}

/// Walks a job of any chain.
pub fn walk_job(memory: &dyn Memory, profile: &Profile, job: &Job, visitor: &mut dyn Visitor) {
    let reading = Reading::new(memory, profile, visitor);
    let mut walker = Walker { reading };
    walker.job(job);
}

/// Walks a chain from `head`; returns its jobs. Loops end where they meet.
pub fn walk_chain(
    memory: &dyn Memory,
    profile: &Profile,
    head: u64,
    visitor: &mut dyn Visitor,
) -> u32 {
    let reading = Reading::new(memory, profile, visitor);
    let mut walker = Walker { reading };
    let chain = follow(memory, head);
    for job in chain.jobs(memory) {
        walker.job(&job);
    }
    match chain.end {
        ChainEnd::Complete => {}
        ChainEnd::Unknown(address) => {
            walker.reading.visitor.job(address, None);
            walker
                .reading
                .known(address, None, JobHeader::LAYOUT, Pointer::Chain);
        }
        ChainEnd::Misaligned(at) | ChainEnd::Loop(at) | ChainEnd::TooLong(at) => {
            walker
                .reading
                .visitor
                .problem(at, &Problem::Chain(chain.end));
        }
    }
    chain.length
}

struct Walker<'a> {
    reading: Reading<'a>,
}

impl Walker<'_> {
    fn job(&mut self, job: &Job) {
        let (address, job_type) = (job.address, job.job_type());
        self.reading.visitor.job(address, job_type);
        if descriptor!(self.reading, JobHeader, address, Pointer::Chain).is_none() {
            return;
        }
        let written = Some(job::WRITTEN_BACK);
        self.reading
            .uses(Purpose::Status, 0, address, written, Pointer::Chain);
        let payload = address.wrapping_add(job::PAYLOAD);
        match job_type {
            Some(JobType::Null) => {}
            Some(JobType::WriteValue) => {
                if let Some(value) = descriptor!(self.reading, WriteValue, payload, Pointer::Chain)
                {
                    let (at, length) = (value.address(), Some(value.bytes()));
                    self.reading
                        .uses(Purpose::Value, 0, at, length, Pointer::Fixed);
                }
            }
            Some(JobType::CacheFlush) => {
                descriptor!(self.reading, CacheFlush, payload, Pointer::Chain);
            }
            Some(JobType::Compute) if self.reading.profile.architecture.has_resource_tables() => {
                valhall::compute(&mut self.reading, address);
            }
            Some(JobType::Compute) => self.compute(address),
            Some(JobType::NotStarted) | None => {
                let number = job.header.job_type();
                self.reading
                    .visitor
                    .problem(address, &Problem::JobType(number));
            }
            Some(other) => self
                .reading
                .visitor
                .problem(address, &Problem::NotShown(other)),
        }
    }

    fn compute(&mut self, address: u64) {
        let at = |offset| address.wrapping_add(offset);
        let invocation = descriptor!(
            self.reading,
            Invocation,
            at(job::INVOCATION),
            Pointer::Chain
        );
        if invocation.is_some_and(|invocation| invocation.dimensions().is_none()) {
            self.reading.visitor.problem(address, &Problem::Shifts);
        }
        let parameters = at(job::COMPUTE_PARAMETERS);
        descriptor!(self.reading, ComputeParameters, parameters, Pointer::Chain);
        let Some(draw) = descriptor!(self.reading, Draw, at(job::COMPUTE_DRAW), Pointer::Chain)
        else {
            return;
        };
        let state_at = draw.state_at();
        let pointer = in_draw("State");
        let Some(state) = descriptor!(self.reading, RendererState, state_at, pointer) else {
            return;
        };
        let shader = clause_address(state.shader());
        self.reading
            .uses(Purpose::Shader, 0, shader, None, Pointer::Fixed);
        if state.uniform_count() != 0 {
            let (at, length) = (draw.push_uniforms(), Some(state.uniform_bytes()));
            let pointer = in_draw("Push uniforms");
            self.reading
                .uses(Purpose::PushUniforms, 0, at, length, pointer);
        }
        let table = in_draw("Uniform buffers");
        for index in 0..state.uniform_buffer_count() as u32 {
            if !self.reading.visitor.wants_more() {
                return;
            }
            let at = draw.uniform_buffers().wrapping_add(u64::from(index) * 8);
            let Some(buffer) = descriptor!(self.reading, UniformBuffer, at, table, Some(index))
            else {
                break;
            };
            if buffer.pointer() != 0 {
                let (start, length) = (buffer.pointer(), Some(buffer.bytes()));
                let shift = UNIFORM_SHIFT;
                let pointer = Pointer::Word { at, shift };
                self.reading
                    .uses(Purpose::UniformBuffer, index, start, length, pointer);
            }
        }
        if let Some(storage) = draw.storage_at() {
            self.storage(storage);
        }
        self.attributes(&draw, &state);
        self.textures(&draw, &state);
    }

    fn storage(&mut self, address: u64) {
        let pointer = in_draw("Thread storage");
        let Some(storage) = descriptor!(self.reading, LocalStorage, address, pointer) else {
            return;
        };
        self.reading.storage(
            [storage.tls_base(), storage.wls_base()],
            [storage.tls_bytes(), storage.wls_bytes()],
            storage.wls_instances(),
        );
    }

    fn attributes(&mut self, draw: &Draw, state: &RendererState) {
        let tables = [in_draw("Attributes"), in_draw("Attribute buffers")];
        for index in 0..state.attribute_count() as u32 {
            if !self.reading.visitor.wants_more() {
                return;
            }
            let at = draw
                .attributes()
                .wrapping_add(u64::from(index) * Attribute::SIZE as u64);
            let Some(attribute) = descriptor!(self.reading, Attribute, at, tables[0], Some(index))
            else {
                return;
            };
            let number = attribute.buffer_index();
            let (size, next) = (AttributeBuffer::SIZE as u64, Some(number as u32 + 1));
            let at = draw.attribute_buffers().wrapping_add(number * size);
            let number = Some(number as u32);
            let Some(buffer) = descriptor!(self.reading, AttributeBuffer, at, tables[1], number)
            else {
                return;
            };
            if buffer.is_3d() {
                let at = at.wrapping_add(size);
                descriptor!(self.reading, AttributeBuffer3d, at, tables[1], next);
            }
            let (start, length) = (buffer.pointer(), Some(buffer.size()));
            let purpose = Purpose::AttributeBuffer;
            self.reading
                .uses(purpose, index, start, length, Pointer::Fixed);
        }
    }

    fn textures(&mut self, draw: &Draw, state: &RendererState) {
        for index in 0..state.texture_count() as u32 {
            if !self.reading.visitor.wants_more() {
                return;
            }
            let at = draw
                .textures()
                .wrapping_add(u64::from(index) * Texture::SIZE as u64);
            let pointer = in_draw("Textures");
            let Some(texture) = descriptor!(self.reading, Texture, at, pointer, Some(index)) else {
                break;
            };
            let surfaces = texture.surface_count();
            for surface in 0..surfaces.min(MAXIMUM_SURFACES) {
                if !self.reading.visitor.wants_more() {
                    return;
                }
                let at = texture
                    .surfaces()
                    .wrapping_add(surface * Surface::SIZE as u64);
                let number = Some(surface as u32);
                let Some(found) = descriptor!(self.reading, Surface, at, Pointer::Fixed, number)
                else {
                    break;
                };
                let (purpose, start) = (Purpose::Texels, found.pointer());
                self.reading
                    .uses(purpose, index, start, None, Pointer::Fixed);
            }
        }
        for index in 0..state.sampler_count() as u32 {
            if !self.reading.visitor.wants_more() {
                return;
            }
            let at = draw
                .samplers()
                .wrapping_add(u64::from(index) * Sampler::SIZE as u64);
            let pointer = in_draw("Samplers");
            if descriptor!(self.reading, Sampler, at, pointer, Some(index)).is_none() {
                break;
            }
        }
    }
}
