// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks job chains in GPU memory without running them: for dumps, and for checks before a replay.
//!
//! [`walk_chain`] finds every descriptor of a chain and every piece of memory that the jobs name, and shows them to a
//! [`Visitor`]. [`Text`] is the visitor that writes them out.

use std::collections::HashSet;
use std::fmt;

use mali_shader::Access;

use crate::compute::{DESCRIPTOR_MASK, DRAW_OFFSET, INVOCATION_OFFSET};
use crate::descriptor::{
    Attribute, AttributeBuffer, AttributeBuffer3d, CacheFlush, ComputeParameters, Draw, Invocation,
    JobHeader, JobType, Layout, LocalStorage, RendererState, Sampler, Surface, Texture,
    UniformBuffer, WriteValue,
};
use crate::profile::{Architecture, Profile};

/// Bytes from a job's start to the payload of WRITE_VALUE and CACHE_FLUSH jobs.
const PAYLOAD_OFFSET: u64 = 32;
/// Bytes from a compute job's start to its parameters.
const PARAMETERS_OFFSET: u64 = 40;
/// Surfaces beyond this number are not listed; no real texture has that many.
const MAXIMUM_SURFACES: u64 = 4096;

/// GPU virtual memory, as far as it is known.
pub trait Memory {
    /// Fills `to` from `va` on. False: some of it is unknown.
    fn read(&self, va: u64, to: &mut [u8]) -> bool;
}

/// What a piece of memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Descriptors.
    Descriptor,
    /// Status words that the GPU writes back into a job's header.
    Status,
    /// Instructions. The length is unknown.
    Shader,
    /// Push uniforms.
    PushUniforms,
    /// A uniform buffer.
    UniformBuffer,
    /// Memory of an attribute or image.
    AttributeBuffer,
    /// Texels.
    Texels,
    /// Storage of threads.
    ThreadStorage,
    /// Storage of work groups.
    WorkgroupStorage,
    /// Target of a WRITE_VALUE job.
    Value,
}

impl Purpose {
    /// In words.
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

/// Memory that a job names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// What it is for.
    pub purpose: Purpose,
    /// Which of several, for tables.
    pub index: u32,
    /// Its first byte.
    pub address: u64,
    /// Its length in bytes; `None` when the descriptors do not say.
    pub length: Option<u64>,
    /// What the job does with it.
    pub access: Access,
}

/// A descriptor in memory.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Its shape.
    pub layout: &'static Layout,
    /// Which of several, for tables.
    pub index: Option<u32>,
    /// Where it is.
    pub address: u64,
    /// Its words.
    pub words: &'a [u32],
}

/// Shown what [`walk_chain`] finds. All methods have empty defaults.
pub trait Visitor {
    /// A job begins; the rest up to the next one belongs to it.
    fn job(&mut self, address: u64, job_type: Option<JobType>) {
        let _ = (address, job_type);
    }

    /// A descriptor.
    fn descriptor(&mut self, found: &Found<'_>) {
        let _ = found;
    }

    /// Memory that the job names.
    fn memory(&mut self, memory: &MemoryUse) {
        let _ = memory;
    }

    /// Something that would make the job fail, or that cannot be read.
    fn problem(&mut self, address: u64, text: &str) {
        let _ = (address, text);
    }
}

/// Walks the chain that starts at `head` and returns how many jobs it has. Chains that form a loop end where they
/// meet themselves.
pub fn walk_chain(
    memory: &dyn Memory,
    profile: &Profile,
    head: u64,
    visitor: &mut dyn Visitor,
) -> usize {
    let mut walker = Walker {
        memory,
        profile,
        visitor,
    };
    let mut seen = HashSet::new();
    let mut address = head;
    while address != 0 {
        if !seen.insert(address) {
            walker
                .visitor
                .problem(address, "the chain returns to this job");
            break;
        }
        match walker.job(address) {
            Some(next) => address = next,
            None => break,
        }
    }
    seen.len()
}

struct Walker<'a> {
    memory: &'a dyn Memory,
    profile: &'a Profile,
    visitor: &'a mut dyn Visitor,
}

/// Reads a descriptor, shows it, and returns it; `None` when it cannot be read.
macro_rules! descriptor {
    ($walker:expr, $type:ident, $address:expr) => {
        descriptor!($walker, $type, $address, None)
    };
    ($walker:expr, $type:ident, $address:expr, $index:expr) => {{
        let (address, mut bytes) = ($address, [0; $type::SIZE]);
        if $walker.read(address, &mut bytes, $type::LAYOUT.name) {
            let descriptor = $type::from_bytes(&bytes);
            let (layout, words) = ($type::LAYOUT, &descriptor.words);
            $walker.visitor.descriptor(&Found {
                layout,
                index: $index,
                address,
                words,
            });
            Some(descriptor)
        } else {
            None
        }
    }};
}

impl Walker<'_> {
    fn read(&mut self, address: u64, to: &mut [u8], what: &str) -> bool {
        self.uses(
            Purpose::Descriptor,
            0,
            address,
            Some(to.len() as u64),
            Access::Read,
        );
        let known = self.memory.read(address, to);
        if !known {
            self.visitor
                .problem(address, &format!("{what} cannot be read"));
        }
        known
    }

    fn uses(
        &mut self,
        purpose: Purpose,
        index: u32,
        address: u64,
        length: Option<u64>,
        access: Access,
    ) {
        self.visitor.memory(&MemoryUse {
            purpose,
            index,
            address,
            length,
            access,
        });
    }

    /// Shows one job and returns the address of the next.
    fn job(&mut self, address: u64) -> Option<u64> {
        if !address.is_multiple_of(64) {
            self.visitor
                .problem(address, "the job is not aligned to 64 bytes");
            return None;
        }
        let mut bytes = [0; JobHeader::SIZE];
        let known = self.memory.read(address, &mut bytes);
        let header = JobHeader::from_bytes(&bytes);
        let job_type = JobType::from_bits(header.job_type());
        self.visitor.job(address, job_type.filter(|_| known));
        descriptor!(self, JobHeader, address)?;
        self.uses(Purpose::Status, 0, address, Some(16), Access::Write);
        match job_type {
            Some(JobType::Null) => {}
            Some(JobType::WriteValue) => {
                if let Some(value) =
                    descriptor!(self, WriteValue, address.wrapping_add(PAYLOAD_OFFSET))
                {
                    let length = match value.value_type() {
                        kind @ 4..=7 => 1 << (kind - 4),
                        _ => 8,
                    };
                    self.uses(
                        Purpose::Value,
                        0,
                        value.address(),
                        Some(length),
                        Access::Write,
                    );
                }
            }
            Some(JobType::CacheFlush) => {
                descriptor!(self, CacheFlush, address.wrapping_add(PAYLOAD_OFFSET));
            }
            Some(JobType::Compute) => self.compute(address),
            Some(JobType::NotStarted) | None => {
                self.visitor.problem(
                    address,
                    &format!("job type {} does not exist", header.job_type()),
                );
            }
            Some(other) => self.visitor.problem(
                address,
                &format!("the descriptors of {} jobs are not shown", other.name()),
            ),
        }
        Some(header.next())
    }

    fn compute(&mut self, address: u64) {
        let invocation = descriptor!(self, Invocation, address.wrapping_add(INVOCATION_OFFSET));
        if invocation.is_some_and(|invocation| invocation.dimensions().is_none()) {
            self.visitor
                .problem(address, "the invocation's shifts are out of order");
        }
        descriptor!(
            self,
            ComputeParameters,
            address.wrapping_add(PARAMETERS_OFFSET)
        );
        let Some(draw) = descriptor!(self, Draw, address.wrapping_add(DRAW_OFFSET)) else {
            return;
        };
        let Some(state) = descriptor!(self, RendererState, draw.state() & DESCRIPTOR_MASK) else {
            return;
        };
        self.uses(
            Purpose::Shader,
            0,
            state.shader() & !15,
            None,
            Access::Execute,
        );
        if state.uniform_count() != 0 {
            let length = Some(state.uniform_count() * 8);
            self.uses(
                Purpose::PushUniforms,
                0,
                draw.push_uniforms(),
                length,
                Access::Read,
            );
        }
        for index in 0..state.uniform_buffer_count() as u32 {
            let at = draw.uniform_buffers().wrapping_add(u64::from(index) * 8);
            let Some(buffer) = descriptor!(self, UniformBuffer, at, Some(index)) else {
                break;
            };
            if buffer.pointer() != 0 {
                let length = Some(buffer.entries() * 16);
                self.uses(
                    Purpose::UniformBuffer,
                    index,
                    buffer.pointer(),
                    length,
                    Access::Read,
                );
            }
        }
        if draw.thread_storage() & DESCRIPTOR_MASK != 0 {
            self.storage(draw.thread_storage() & DESCRIPTOR_MASK);
        }
        self.attributes(&draw, &state);
        self.textures(&draw, &state);
    }

    fn storage(&mut self, address: u64) {
        let Some(storage) = descriptor!(self, LocalStorage, address) else {
            return;
        };
        let cores = u64::from(self.profile.core_id_range());
        if storage.tls_bytes() != 0 {
            let length = storage.tls_bytes() * u64::from(self.profile.max_threads) * cores;
            self.uses(
                Purpose::ThreadStorage,
                0,
                storage.tls_base(),
                Some(length),
                Access::Write,
            );
        }
        if storage.wls_base() != 0 && storage.wls_bytes() != 0 {
            let length = storage.wls_bytes() * storage.wls_instances() * cores;
            self.uses(
                Purpose::WorkgroupStorage,
                0,
                storage.wls_base(),
                Some(length),
                Access::Write,
            );
        }
    }

    fn attributes(&mut self, draw: &Draw, state: &RendererState) {
        for index in 0..state.attribute_count() as u32 {
            let at = draw
                .attributes()
                .wrapping_add(u64::from(index) * Attribute::SIZE as u64);
            let Some(attribute) = descriptor!(self, Attribute, at, Some(index)) else {
                return;
            };
            let number = attribute.buffer_index();
            let size = AttributeBuffer::SIZE as u64;
            let at = draw.attribute_buffers().wrapping_add(number * size);
            let Some(buffer) = descriptor!(self, AttributeBuffer, at, Some(number as u32)) else {
                return;
            };
            if matches!(buffer.buffer_type(), 5 | 6) {
                descriptor!(
                    self,
                    AttributeBuffer3d,
                    at.wrapping_add(size),
                    Some(number as u32 + 1)
                );
            }
            let length = Some(buffer.size());
            self.uses(
                Purpose::AttributeBuffer,
                index,
                buffer.pointer(),
                length,
                Access::Write,
            );
        }
    }

    fn textures(&mut self, draw: &Draw, state: &RendererState) {
        for index in 0..state.texture_count() as u32 {
            let at = draw
                .textures()
                .wrapping_add(u64::from(index) * Texture::SIZE as u64);
            let Some(texture) = descriptor!(self, Texture, at, Some(index)) else {
                break;
            };
            let faces = if texture.dimension() == 0 { 6 } else { 1 };
            let surfaces = texture.levels() * texture.array_size() * texture.sample_count() * faces;
            for surface in 0..surfaces.min(MAXIMUM_SURFACES) {
                let at = texture
                    .surfaces()
                    .wrapping_add(surface * Surface::SIZE as u64);
                let Some(found) = descriptor!(self, Surface, at, Some(surface as u32)) else {
                    break;
                };
                self.uses(Purpose::Texels, index, found.pointer(), None, Access::Read);
            }
        }
        for index in 0..state.sampler_count() as u32 {
            let at = draw
                .samplers()
                .wrapping_add(u64::from(index) * Sampler::SIZE as u64);
            if descriptor!(self, Sampler, at, Some(index)).is_none() {
                break;
            }
        }
    }
}

/// Writes everything out, one line for each field that is not 0.
pub struct Text<'a> {
    out: &'a mut dyn fmt::Write,
    architecture: Architecture,
    result: fmt::Result,
}

impl<'a> Text<'a> {
    /// Writes to `out`, with the fields that the architecture has.
    pub fn new(out: &'a mut dyn fmt::Write, architecture: Architecture) -> Text<'a> {
        Text {
            out,
            architecture,
            result: Ok(()),
        }
    }

    /// Whether everything could be written.
    pub fn finish(self) -> fmt::Result {
        self.result
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        if self.result.is_ok() {
            self.result = self
                .out
                .write_fmt(line)
                .and_then(|()| self.out.write_char('\n'));
        }
    }

    fn fields(&mut self, found: &Found<'_>) -> fmt::Result {
        for field in found.layout.fields {
            if field.since > self.architecture || field.raw(found.words) == 0 {
                continue;
            }
            write!(self.out, "    {}: ", field.name)?;
            field.format(found.words, self.out)?;
            self.out.write_char('\n')?;
        }
        Ok(())
    }
}

impl Visitor for Text<'_> {
    fn job(&mut self, address: u64, job_type: Option<JobType>) {
        self.line(format_args!(
            "job {address:#x} {}",
            job_type.map_or("unknown", JobType::name)
        ));
    }

    fn descriptor(&mut self, found: &Found<'_>) {
        let (name, address) = (found.layout.name, found.address);
        match found.index {
            Some(index) => self.line(format_args!("  {name} {index} at {address:#x}")),
            None => self.line(format_args!("  {name} at {address:#x}")),
        }
        if found.layout.name == Invocation::LAYOUT.name {
            let words = [found.words[0], found.words[1]];
            if let Some((size, count)) = (Invocation { words }).dimensions() {
                self.line(format_args!(
                    "    work groups of {size:?} threads: {count:?}"
                ));
                return;
            }
        }
        if self.result.is_ok() {
            self.result = self.fields(found);
        }
    }

    fn problem(&mut self, address: u64, text: &str) {
        self.line(format_args!("  ! {address:#x}: {text}"));
    }
}
