// SPDX-License-Identifier: MIT OR Apache-2.0
//! The walk over what a Valhall shader reaches: program, storage, uniforms, and the tables of the list of resources.

use super::{
    Attribute, Buffer, ComputePayload, LocalStorage, Plane, Resource, Sampler, ShaderEnvironment,
    ShaderProgram, Texture, descriptor_type,
};
use crate::walk::{Pointer, Problem, Purpose, Reading, Visitor, descriptor};
use crate::{Memory, job};

/// Descriptors of a table, and planes of a texture, beyond this number are not listed.
pub const LONGEST_TABLE: u64 = 4096;

/// Where a compute job has its environment, from its payload.
const ENVIRONMENT: u64 = ComputePayload::SIZE as u64;

/// The table that Mesa's OpenGL and OpenCL drivers put uniform buffers in.
const UNIFORM_BUFFERS: u64 = 0;

/// Walks the payload of the compute job at an address.
pub(crate) fn compute(reading: &mut Reading<'_>, job: u64) {
    let payload = job.wrapping_add(job::PAYLOAD);
    if descriptor!(reading, ComputePayload, payload, Pointer::Chain).is_some() {
        let at = payload.wrapping_add(ENVIRONMENT);
        reading.environment(at, Pointer::Chain);
    }
}

/// Walks a shader environment and all that it names.
pub fn environment(memory: &dyn Memory, at: u64, pointer: Pointer, visitor: &mut dyn Visitor) {
    Reading { memory, visitor }.environment(at, pointer);
}

impl Reading<'_> {
    fn environment(&mut self, at: u64, pointer: Pointer) {
        let Some(environment) = descriptor!(self, ShaderEnvironment, at, pointer) else {
            return;
        };
        let pointer = Pointer::Descriptor(at);
        let place = environment.program();
        if let Some(program) = descriptor!(self, ShaderProgram, place, pointer) {
            let named = Pointer::Descriptor(place);
            self.uses(Purpose::Shader, 0, program.binary(), None, named);
        }
        if environment.uniform_count() != 0 {
            let (start, length) = (environment.uniforms(), environment.uniform_bytes());
            self.uses(Purpose::PushUniforms, 0, start, Some(length), pointer);
        }
        let place = environment.storage_at();
        if place != 0
            && let Some(storage) = descriptor!(self, LocalStorage, place, pointer)
        {
            self.storage(place, &storage);
        }
        let (list, count) = environment.resource_list();
        for index in 0..count {
            let at = list.wrapping_add(index * Resource::SIZE as u64);
            let number = Some(index as u32);
            let Some(resource) = descriptor!(self, Resource, at, pointer, number) else {
                return;
            };
            if resource.contains_descriptors() == 1 {
                self.table(index, at, &resource);
            }
        }
    }

    fn storage(&mut self, at: u64, storage: &LocalStorage) {
        let pointer = Pointer::Descriptor(at);
        if storage.tls_bytes() != 0 {
            let start = storage.tls_address();
            self.uses(Purpose::ThreadStorage, 0, start, None, pointer);
        }
        if storage.wls_base() != 0 {
            let start = storage.wls_base();
            self.uses(Purpose::WorkgroupStorage, 0, start, None, pointer);
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
            let whole = match u32::from(first[0] & 15) {
                descriptor_type::NONE => true,
                descriptor_type::SAMPLER => {
                    descriptor!(self, Sampler, at, pointer, number).is_some()
                }
                descriptor_type::ATTRIBUTE => {
                    descriptor!(self, Attribute, at, pointer, number).is_some()
                }
                descriptor_type::PLANE => descriptor!(self, Plane, at, pointer, number).is_some(),
                descriptor_type::TEXTURE => {
                    let texture = descriptor!(self, Texture, at, pointer, number);
                    texture.is_some_and(|texture| {
                        self.planes(index as u32, at, &texture);
                        true
                    })
                }
                descriptor_type::BUFFER => {
                    let buffer = descriptor!(self, Buffer, at, pointer, number);
                    buffer.is_some_and(|buffer| {
                        let purpose = match table {
                            UNIFORM_BUFFERS => Purpose::UniformBuffer,
                            _ => Purpose::AttributeBuffer,
                        };
                        let (start, length) = (buffer.address(), Some(buffer.size()));
                        let named = Pointer::Descriptor(at);
                        self.uses(purpose, index as u32, start, length, named);
                        true
                    })
                }
                other => {
                    let problem = Problem::DescriptorType(other);
                    self.visitor.problem(at, &problem);
                    true
                }
            };
            if !whole {
                return;
            }
        }
    }

    fn planes(&mut self, index: u32, at: u64, texture: &Texture) {
        for number in 0..texture.plane_count().min(LONGEST_TABLE) {
            if !self.visitor.wants_more() {
                return;
            }
            let place = texture.surfaces().wrapping_add(number * Plane::SIZE as u64);
            let (pointer, number) = (Pointer::Descriptor(at), Some(number as u32));
            let Some(plane) = descriptor!(self, Plane, place, pointer, number) else {
                return;
            };
            let length = Some(plane.size());
            let named = Pointer::Descriptor(place);
            self.uses(Purpose::Texels, index, plane.pointer(), length, named);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::Found;

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
        let mut reading = Reading {
            memory: &|_: u64, _: &mut [u8]| false,
            visitor: &mut counted,
        };
        compute(&mut reading, 0);
        assert_eq!((counted.descriptors, counted.problems), (0, 1));
    }
}
