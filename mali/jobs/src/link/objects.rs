// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job's descriptors and uniforms, and pointers to them.

pub(crate) use mali_facts::walk::Pointer;
use mali_facts::walk::{Found, MemoryUse, Problem, Purpose, Visitor, walk_job};
use mali_facts::{Job, JobType, Memory, Profile, valhall};

/// Bytes of uniforms searched for addresses: with longer ones, a job's reach is unknown.
const MAX_UNIFORMS: u64 = 1 << 20;

/// Per job; a table counts once. Bifrost's have at most 255 uniform buffers.
const MAX_OBJECTS: usize = 300;

/// Offset of the next job's address.
pub(crate) const NEXT: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) address: u64,
    pub(crate) length: u64,
    pub(crate) pointer: Pointer,
}

impl Object {
    pub(crate) fn end(&self) -> u64 {
        self.address.saturating_add(self.length)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// The first is the job.
    pub(crate) objects: Vec<Object>,
    /// First and last byte of buffers, storage, texels.
    pub(crate) outside: Vec<(u64, u64)>,
    pub(crate) words: Vec<u64>,
}

/// `None`: a descriptor is not in memory, or recordings lack such jobs.
pub(crate) fn reach(memory: &dyn Memory, profile: &Profile, job: &Job) -> Option<Reach> {
    let kind = job.job_type().filter(|kind| kind.is_replayed())?;
    let (at, layout) = kind.parts().last()?;
    let length = match kind {
        JobType::Compute if profile.architecture.has_resource_tables() => valhall::COMPUTE_BYTES,
        _ => at + 4 * layout.words as u64,
    };
    let mut reach = Reach::default();
    reach.add(job.address, length, Pointer::Chain);
    let mut collector = Collector {
        memory,
        reach,
        unknown: false,
    };
    walk_job(memory, profile, job, &mut collector);
    let known = collector.wants_more();
    known.then_some(collector.reach)
}

struct Collector<'m> {
    memory: &'m dyn Memory,
    reach: Reach,
    unknown: bool,
}

impl Visitor for Collector<'_> {
    fn wants_more(&self) -> bool {
        !self.unknown && self.reach.objects.len() < MAX_OBJECTS
    }

    fn descriptor(&mut self, found: &Found<'_>) {
        let size = 4 * found.layout.words as u64;
        match found.pointer {
            Pointer::Chain => {}
            Pointer::Job(_) | Pointer::Word { .. } => {
                let before = u64::from(found.index.unwrap_or(0)) * size;
                let table = found.address.wrapping_sub(before);
                self.reach.add(table, before + size, found.pointer);
            }
            Pointer::Fixed => {
                let last = found.address.saturating_add(size - 1);
                self.reach.outside.push((found.address, last));
            }
        }
    }

    fn memory(&mut self, memory: &MemoryUse) {
        let last = match memory.purpose {
            Purpose::Descriptor | Purpose::Status => return,
            Purpose::PushUniforms | Purpose::UniformBuffer if memory.pointer != Pointer::Fixed => {
                let length = memory.length.unwrap_or(0);
                self.reach.add(memory.address, length, memory.pointer);
                let found = self.look_for_addresses(memory.address, length);
                self.unknown |= found.is_none();
                return;
            }
            Purpose::Shader => memory.address,
            // Without a known end it may reach memory's end.
            _ => memory.length.map_or(u64::MAX, |length| {
                memory.address.saturating_add(length.saturating_sub(1))
            }),
        };
        self.reach.outside.push((memory.address, last));
    }

    fn problem(&mut self, _: u64, problem: &Problem) {
        self.unknown |= matches!(problem, Problem::Unknown(_));
    }
}

impl Reach {
    fn add(&mut self, address: u64, length: u64, pointer: Pointer) {
        let mut objects = self.objects.iter_mut();
        match objects.find(|object| object.pointer == pointer) {
            Some(object) => object.length = object.length.max(length),
            None if length != 0 => self.objects.push(Object {
                address,
                length,
                pointer,
            }),
            None => {}
        }
    }
}

impl Collector<'_> {
    /// Shaders read uniforms in words of four bytes.
    fn look_for_addresses(&mut self, at: u64, length: u64) -> Option<()> {
        if length == 0 {
            return Some(());
        }
        if length > MAX_UNIFORMS {
            return None;
        }
        let mut bytes = vec![0; length as usize];
        if !self.memory.read(at, &mut bytes) {
            return None;
        }
        let pairs = bytes.windows(8).step_by(4);
        let words = pairs.filter_map(|pair| Some(u64::from_le_bytes(pair.try_into().ok()?)));
        self.reach.words.extend(words.filter(|word| *word != 0));
        Some(())
    }
}
