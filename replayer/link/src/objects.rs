// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job consists of in memory: its own descriptors and uniforms, and where the pointer to each of them is.

use mali_descriptors::walk::{Found, MemoryUse, Purpose, Visitor, walk_chain};
use mali_descriptors::{
    Attribute, AttributeBuffer, Draw, Job, JobHeader, JobType, LocalStorage, Memory, Profile,
    RendererState, Sampler, Surface, Texture, UniformBuffer, WriteValue, descriptor_address, job,
};

/// Bytes of one job's uniforms in which addresses are looked for.
const MAX_UNIFORMS: u64 = 1 << 20;

/// Bytes from the start of a job to the address of the next one.
pub(crate) const NEXT: usize = 24;

/// Where the address of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pointer {
    /// In the header before it, or in the submission.
    Chain,
    /// In a field of the job's [`Draw`].
    Draw(&'static str),
    /// In an entry of the job's table of uniform buffers, at this address.
    Table(u64),
}

/// Bytes that a job reads as descriptors or uniforms, and that can lie elsewhere if the pointer to them says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Its first byte.
    pub(crate) address: u64,
    /// Its bytes.
    pub(crate) length: u64,
    /// Where its address is written.
    pub(crate) pointer: Pointer,
}

impl Object {
    /// The address after its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.address.saturating_add(self.length)
    }
}

/// What a job reaches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// What can lie elsewhere. The first one is the job itself.
    pub(crate) objects: Vec<Object>,
    /// First and last byte of what stays where it is: buffers, storage, texels.
    pub(crate) outside: Vec<(u64, u64)>,
    /// Words of uniforms that may be addresses.
    pub(crate) words: Vec<u64>,
}

/// What a job reaches. `None`: a descriptor is not in memory, or the job is of a type that no recording has.
pub(crate) fn reach(memory: &dyn Memory, profile: &Profile, job: &Job) -> Option<Reach> {
    let mut reach = Reach::default();
    let own = match job.job_type()? {
        JobType::Null => JobHeader::SIZE as u64,
        JobType::WriteValue => job::PAYLOAD + WriteValue::SIZE as u64,
        JobType::CacheFlush => job::PAYLOAD + mali_descriptors::CacheFlush::SIZE as u64,
        JobType::Compute => job::COMPUTE_BYTES,
        _ => return None,
    };
    reach.add(job.address, own, Pointer::Chain);
    if job.job_type() == Some(JobType::Compute) {
        reach.compute(memory, job)?;
    }
    // The walk that verification uses names the rest. It sees this job alone.
    let alone = |va: u64, to: &mut [u8]| {
        let known = memory.read(va, to);
        if va == job.address
            && let Some(next) = to.get_mut(NEXT..JobHeader::SIZE)
        {
            next.fill(0);
        }
        known
    };
    let mut others = Others(&mut reach.outside);
    walk_chain(&alone, profile, job.address, &mut others);
    Some(reach)
}

/// Collects memory that a job names and that is no object.
struct Others<'r>(&'r mut Vec<(u64, u64)>);

impl Visitor for Others<'_> {
    fn descriptor(&mut self, found: &Found<'_>) {
        if found.layout.name == Surface::LAYOUT.name {
            let last = found.address.saturating_add(Surface::SIZE as u64 - 1);
            self.0.push((found.address, last));
        }
    }

    fn memory(&mut self, memory: &MemoryUse) {
        let stays = matches!(
            memory.purpose,
            Purpose::AttributeBuffer
                | Purpose::Texels
                | Purpose::ThreadStorage
                | Purpose::WorkgroupStorage
                | Purpose::Value
                | Purpose::Shader
        );
        if !stays {
            return;
        }
        // What has no known end may reach as far as there is memory.
        let last = match memory.length {
            Some(length) => memory.address.saturating_add(length.saturating_sub(1)),
            None if memory.purpose == Purpose::Shader => memory.address,
            None => u64::MAX,
        };
        self.0.push((memory.address, last));
    }
}

impl Reach {
    fn add(&mut self, address: u64, length: u64, pointer: Pointer) {
        if length != 0 {
            self.objects.push(Object {
                address,
                length,
                pointer,
            });
        }
    }

    fn compute(&mut self, memory: &dyn Memory, job: &Job) -> Option<()> {
        let at = job.address.checked_add(job::COMPUTE_DRAW)?;
        let draw = Draw::from_bytes(&read(memory, at)?);
        let state_at = descriptor_address(draw.state());
        let state = RendererState::from_bytes(&read(memory, state_at)?);
        self.add(state_at, RendererState::SIZE as u64, Pointer::Draw("State"));
        let push = state.uniform_bytes();
        self.add(draw.push_uniforms(), push, Pointer::Draw("Push uniforms"));
        self.look_for_addresses(memory, draw.push_uniforms(), push)?;
        let buffers = state.uniform_buffer_count();
        let size = UniformBuffer::SIZE as u64;
        self.add(
            draw.uniform_buffers(),
            buffers * size,
            Pointer::Draw("Uniform buffers"),
        );
        for index in 0..buffers {
            let at = draw.uniform_buffers().checked_add(index * size)?;
            let buffer = UniformBuffer::from_bytes(&read(memory, at)?);
            if buffer.pointer() != 0 {
                self.add(buffer.pointer(), buffer.bytes(), Pointer::Table(at));
                self.look_for_addresses(memory, buffer.pointer(), buffer.bytes())?;
            }
        }
        let storage = descriptor_address(draw.thread_storage());
        if storage != 0 {
            let length = LocalStorage::SIZE as u64;
            self.add(storage, length, Pointer::Draw("Thread storage"));
        }
        self.attributes(memory, &draw, &state)?;
        let textures = state.texture_count() * Texture::SIZE as u64;
        self.add(draw.textures(), textures, Pointer::Draw("Textures"));
        let samplers = state.sampler_count() * Sampler::SIZE as u64;
        self.add(draw.samplers(), samplers, Pointer::Draw("Samplers"));
        Some(())
    }

    fn attributes(
        &mut self,
        memory: &dyn Memory,
        draw: &Draw,
        state: &RendererState,
    ) -> Option<()> {
        let size = Attribute::SIZE as u64;
        let count = state.attribute_count();
        self.add(draw.attributes(), count * size, Pointer::Draw("Attributes"));
        let mut buffers = 0;
        for index in 0..count {
            let at = draw.attributes().checked_add(index * size)?;
            let attribute = Attribute::from_bytes(&read(memory, at)?);
            let number = attribute.buffer_index();
            let at = draw
                .attribute_buffers()
                .checked_add(number * AttributeBuffer::SIZE as u64)?;
            let buffer = AttributeBuffer::from_bytes(&read(memory, at)?);
            buffers = buffers.max(number + 1 + u64::from(buffer.is_3d()));
        }
        let length = buffers * AttributeBuffer::SIZE as u64;
        self.add(
            draw.attribute_buffers(),
            length,
            Pointer::Draw("Attribute buffers"),
        );
        Some(())
    }

    /// Keeps what may be an address among uniforms: shaders read them in words of four bytes.
    fn look_for_addresses(&mut self, memory: &dyn Memory, at: u64, length: u64) -> Option<()> {
        if length == 0 {
            return Some(());
        }
        if length > MAX_UNIFORMS {
            return None;
        }
        let mut bytes = vec![0; length as usize];
        if !memory.read(at, &mut bytes) {
            return None;
        }
        let pairs = bytes.windows(8).step_by(4);
        let words = pairs.filter_map(|pair| Some(u64::from_le_bytes(pair.try_into().ok()?)));
        self.words.extend(words.filter(|word| *word != 0));
        Some(())
    }
}

pub(crate) fn read<const N: usize>(memory: &dyn Memory, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    memory.read(at, &mut bytes).then_some(bytes)
}
