// SPDX-License-Identifier: MIT OR Apache-2.0
//! The walk over what a Valhall shader reaches: program, storage, uniforms, and the tables of the list of resources.

use super::{
    Attribute, Buffer, ComputePayload, LocalStorage, Plane, Resource, Sampler, ShaderEnvironment,
    ShaderProgram, Texture, descriptor_type,
};
use crate::walk::{Found, MemoryUse, Pointer, Problem, Purpose, Visitor};
use crate::{Layout, Memory, job};

/// Descriptors of a table, and planes of a texture, beyond this number are not listed.
pub const LONGEST_TABLE: u64 = 4096;

/// Where a compute job has its environment, from its payload.
const ENVIRONMENT: u64 = ComputePayload::SIZE as u64;

/// The table that Mesa's OpenGL and OpenCL drivers put uniform buffers in.
const UNIFORM_BUFFERS: u64 = 0;

struct Walker<'a> {
    memory: &'a dyn Memory,
    visitor: &'a mut dyn Visitor,
}

/// Walks the payload of the compute job at an address.
pub(crate) fn compute(memory: &dyn Memory, job: u64, visitor: &mut dyn Visitor) {
    let payload = job.wrapping_add(job::PAYLOAD);
    let mut walker = Walker { memory, visitor };
    let words = &mut [0; ComputePayload::SIZE / 4];
    if walker.read(ComputePayload::LAYOUT, words, payload, None, Pointer::Chain) {
        environment(
            memory,
            payload.wrapping_add(ENVIRONMENT),
            Pointer::Chain,
            visitor,
        );
    }
}

/// Walks a shader environment and all that it names.
pub fn environment(memory: &dyn Memory, at: u64, pointer: Pointer, visitor: &mut dyn Visitor) {
    let mut walker = Walker { memory, visitor };
    let mut environment = ShaderEnvironment { words: [0; 16] };
    let layout = ShaderEnvironment::LAYOUT;
    if walker.read(layout, &mut environment.words, at, None, pointer) {
        walker.environment(at, &environment);
    }
}

impl Walker<'_> {
    /// Reads a descriptor into `words` and shows it. False: it is in memory that is not known.
    fn read(
        &mut self,
        layout: &'static Layout,
        words: &mut [u32],
        address: u64,
        index: Option<u32>,
        pointer: Pointer,
    ) -> bool {
        let length = Some(4 * layout.words as u64);
        self.uses(Purpose::Descriptor, 0, address, length, pointer);
        let mut bytes = [0; 64];
        let Some(bytes) = bytes.get_mut(..4 * layout.words) else {
            return false;
        };
        if !self.memory.read(address, bytes) {
            let problem = Problem::Unknown(layout.name);
            self.visitor.problem(address, &problem);
            return false;
        }
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        self.visitor.descriptor(&Found {
            layout,
            index,
            address,
            words,
            pointer,
        });
        true
    }

    fn uses(
        &mut self,
        purpose: Purpose,
        index: u32,
        address: u64,
        length: Option<u64>,
        pointer: Pointer,
    ) {
        self.visitor.memory(&MemoryUse {
            purpose,
            index,
            address,
            length,
            access: purpose.access(),
            pointer,
        });
    }

    fn environment(&mut self, at: u64, environment: &ShaderEnvironment) {
        let pointer = Pointer::Descriptor(at);
        let mut program = ShaderProgram { words: [0; 8] };
        let place = environment.program();
        if self.read(
            ShaderProgram::LAYOUT,
            &mut program.words,
            place,
            None,
            pointer,
        ) {
            let named = Pointer::Descriptor(place);
            self.uses(Purpose::Shader, 0, program.binary(), None, named);
        }
        if environment.uniform_count() != 0 {
            let length = Some(environment.uniform_bytes());
            self.uses(
                Purpose::PushUniforms,
                0,
                environment.uniforms(),
                length,
                pointer,
            );
        }
        let place = environment.storage_at();
        let mut storage = LocalStorage { words: [0; 8] };
        if place != 0
            && self.read(
                LocalStorage::LAYOUT,
                &mut storage.words,
                place,
                None,
                pointer,
            )
        {
            self.storage(place, &storage);
        }
        let (list, count) = environment.resource_list();
        for index in 0..count {
            let mut resource = Resource { words: [0; 4] };
            let at = list.wrapping_add(index * Resource::SIZE as u64);
            let layout = Resource::LAYOUT;
            if !self.read(layout, &mut resource.words, at, Some(index as u32), pointer) {
                return;
            }
            if resource.contains_descriptors() == 1 {
                self.table(index, at, &resource);
            }
        }
    }

    fn storage(&mut self, at: u64, storage: &LocalStorage) {
        let pointer = Pointer::Descriptor(at);
        if storage.tls_bytes() != 0 {
            self.uses(
                Purpose::ThreadStorage,
                0,
                storage.tls_address(),
                None,
                pointer,
            );
        }
        if storage.wls_base() != 0 {
            self.uses(
                Purpose::WorkgroupStorage,
                0,
                storage.wls_base(),
                None,
                pointer,
            );
        }
    }

    /// A table of descriptors: each says what it is.
    fn table(&mut self, table: u64, resource_at: u64, resource: &Resource) {
        let size = Buffer::SIZE as u64;
        for index in 0..(resource.size() / size).min(LONGEST_TABLE) {
            if !self.visitor.wants_more() {
                return;
            }
            let at = resource.address().wrapping_add(index * size);
            let mut first = [0; 4];
            if !self.memory.read(at, &mut first) {
                let problem = Problem::Unknown(Resource::LAYOUT.name);
                self.visitor.problem(at, &problem);
                return;
            }
            let pointer = Pointer::Descriptor(resource_at);
            let number = Some(index as u32);
            let mut words = [0; 8];
            let layout = match u32::from(first[0] & 15) {
                descriptor_type::NONE => continue,
                descriptor_type::SAMPLER => Sampler::LAYOUT,
                descriptor_type::TEXTURE => Texture::LAYOUT,
                descriptor_type::ATTRIBUTE => Attribute::LAYOUT,
                descriptor_type::BUFFER => Buffer::LAYOUT,
                descriptor_type::PLANE => Plane::LAYOUT,
                other => {
                    let problem = Problem::DescriptorType(other);
                    self.visitor.problem(at, &problem);
                    continue;
                }
            };
            if !self.read(layout, &mut words, at, number, pointer) {
                return;
            }
            match u32::from(first[0] & 15) {
                descriptor_type::TEXTURE => self.planes(index as u32, at, &Texture { words }),
                descriptor_type::BUFFER => {
                    let buffer = Buffer { words };
                    let purpose = match table {
                        UNIFORM_BUFFERS => Purpose::UniformBuffer,
                        _ => Purpose::AttributeBuffer,
                    };
                    let (start, length) = (buffer.address(), Some(buffer.size()));
                    let named = Pointer::Descriptor(at);
                    self.uses(purpose, index as u32, start, length, named);
                }
                _ => {}
            }
        }
    }

    fn planes(&mut self, index: u32, at: u64, texture: &Texture) {
        for number in 0..texture.plane_count().min(LONGEST_TABLE) {
            if !self.visitor.wants_more() {
                return;
            }
            let place = texture.surfaces().wrapping_add(number * Plane::SIZE as u64);
            let mut plane = Plane { words: [0; 8] };
            let (layout, pointer) = (Plane::LAYOUT, Pointer::Descriptor(at));
            if !self.read(
                layout,
                &mut plane.words,
                place,
                Some(number as u32),
                pointer,
            ) {
                return;
            }
            let length = Some(plane.size());
            let named = Pointer::Descriptor(place);
            self.uses(Purpose::Texels, index, plane.pointer(), length, named);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts, and ends the walk after so many descriptors.
    struct Counted {
        descriptors: u32,
        problems: u32,
        most: u32,
    }

    impl Visitor for Counted {
        fn wants_more(&self) -> bool {
            self.descriptors < self.most
        }

        fn descriptor(&mut self, _: &Found<'_>) {
            self.descriptors += 1;
        }

        fn problem(&mut self, _: u64, _: &Problem) {
            self.problems += 1;
        }
    }

    /// Walks an environment in memory that is the same word everywhere.
    fn walked(word: u32, most: u32) -> Counted {
        let read = |_: u64, to: &mut [u8]| {
            for bytes in to.chunks_exact_mut(4) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            true
        };
        let mut counted = Counted {
            descriptors: 0,
            problems: 0,
            most,
        };
        environment(&read, u64::MAX - 7, Pointer::Chain, &mut counted);
        counted
    }

    #[test]
    fn hostile_lists_end_where_the_visitor_does() {
        // Samplers, textures, buffers: as many as the visitor takes, and one more of each resource.
        for kind in [1, 2, 9] {
            let counted = walked(0xffff_ffc0 | kind, 1000);
            assert!((1000..1100).contains(&counted.descriptors), "{kind}");
            assert_eq!(counted.problems, 0);
        }
        // Types that no table has: each is told, and tables have an end.
        let counted = walked(0xffff_ffff, 1000);
        assert_eq!(u64::from(counted.problems), 63 * LONGEST_TABLE);
    }

    #[test]
    fn unknown_memory_is_told_once() {
        let mut counted = Counted {
            descriptors: 0,
            problems: 0,
            most: 1,
        };
        compute(&|_: u64, _: &mut [u8]| false, 0, &mut counted);
        assert_eq!((counted.descriptors, counted.problems), (0, 1));
    }
}
