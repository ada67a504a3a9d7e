// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks what a Valhall shader reaches.

use super::{
    Attribute, Buffer, ComputePayload, LocalStorage, Plane, Resource, Sampler, ShaderEnvironment,
    ShaderProgram, Texture, descriptor_type, stage,
};
use crate::walk::{Pointer, Problem, Purpose, Reading, Visitor, descriptor};
use crate::{Layout, Memory, Profile, job};

/// Most descriptors listed of a table, and planes of a texture.
pub const LONGEST_TABLE: u64 = 4096;

const ENVIRONMENT: u64 = ComputePayload::SIZE as u64;

/// Resource table of uniform buffers in Mesa's OpenGL and OpenCL drivers.
const UNIFORM_BUFFERS: u64 = 0;

/// Header, payload, environment.
pub const COMPUTE_BYTES: u64 = job::PAYLOAD + ENVIRONMENT + ShaderEnvironment::SIZE as u64;

pub(crate) fn compute(reading: &mut Reading<'_>, job: u64) {
    let at = job.wrapping_add(job::PAYLOAD);
    if let Some(payload) = descriptor!(reading, ComputePayload, at, Pointer::Chain) {
        if [payload.offset_x(), payload.offset_y(), payload.offset_z()] != [0; 3] {
            reading.visitor.problem(at, &Problem::Offsets);
        }
        let at = at.wrapping_add(ENVIRONMENT);
        reading.environment(at, |offset| {
            Pointer::Job(job::PAYLOAD + ENVIRONMENT + offset)
        });
    }
}

/// Walks an environment and all that it names.
pub fn environment(memory: &dyn Memory, profile: &Profile, at: u64, visitor: &mut dyn Visitor) {
    let word = |offset| Pointer::Word {
        at: at.wrapping_add(offset),
        shift: 0,
    };
    Reading::new(memory, profile, visitor).environment(at, word);
}

fn word(layout: &Layout, field: &str, at: u64) -> Pointer {
    layout
        .offset_of(field)
        .map_or(Pointer::Fixed, |offset| Pointer::Word {
            at: at.wrapping_add(offset),
            shift: 0,
        })
}

impl Reading<'_> {
    /// `named`: the pointer at an offset in the environment.
    fn environment(&mut self, at: u64, named: impl Fn(u64) -> Pointer) {
        let Some(environment) = descriptor!(self, ShaderEnvironment, at, Pointer::Chain) else {
            return;
        };
        let pointer = |field| {
            let offset = ShaderEnvironment::LAYOUT.offset_of(field);
            offset.map_or(Pointer::Fixed, &named)
        };
        let place = environment.program();
        // An environment without code names no program.
        if place != 0
            && let Some(program) = descriptor!(self, ShaderProgram, place, pointer("Shader"))
        {
            let kind = (program.descriptor_type() as u32, program.stage() as u32);
            if kind != (descriptor_type::SHADER, stage::COMPUTE) {
                self.visitor.problem(place, &Problem::Program);
            }
            let purpose = Purpose::Shader;
            self.uses(purpose, 0, program.binary(), None, Pointer::Fixed);
        }
        if environment.uniform_count() != 0 {
            let (start, length) = (environment.uniforms(), environment.uniform_bytes());
            let purpose = Purpose::PushUniforms;
            self.uses(purpose, 0, start, Some(length), pointer("FAU"));
        }
        let place = environment.storage_at();
        if place != 0
            && let Some(storage) = descriptor!(self, LocalStorage, place, pointer("Thread storage"))
        {
            self.storage(
                [storage.tls_address(), storage.wls_base()],
                [storage.tls_bytes(), storage.wls_bytes()],
                storage.wls_instances(),
            );
        }
        let (list, count) = environment.resource_list();
        for index in 0..count {
            let at = list.wrapping_add(index * Resource::SIZE as u64);
            let number = Some(index as u32);
            let list = pointer("Resources");
            let Some(resource) = descriptor!(self, Resource, at, list, number) else {
                return;
            };
            match resource.contains_descriptors() {
                1 => self.table(index, at, &resource),
                _ if resource.size() == 0 => {}
                _ => {
                    let (start, length) = (resource.address(), Some(resource.size()));
                    let purpose = Purpose::AttributeBuffer;
                    self.uses(purpose, index as u32, start, length, Pointer::Fixed);
                }
            }
        }
    }

    fn table(&mut self, table: u64, resource_at: u64, resource: &Resource) {
        let size = Buffer::SIZE as u64;
        // The address is in the word's low 56 bits.
        let pointer = Pointer::Word {
            at: resource_at,
            shift: 0,
        };
        if resource.size() != 0 {
            // Untyped entries are looked at, too.
            let (start, length) = (resource.address(), Some(resource.size()));
            self.uses(Purpose::Descriptor, 0, start, length, pointer);
        }
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
                        self.planes(index as u32, &texture);
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
                        let named = word(Buffer::LAYOUT, "Address", at);
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

    fn planes(&mut self, index: u32, texture: &Texture) {
        for number in 0..texture.plane_count().min(LONGEST_TABLE) {
            if !self.visitor.wants_more() {
                return;
            }
            let place = texture.surfaces().wrapping_add(number * Plane::SIZE as u64);
            let number = Some(number as u32);
            let Some(plane) = descriptor!(self, Plane, place, Pointer::Fixed, number) else {
                return;
            };
            let (start, length) = (plane.pointer(), Some(plane.size()));
            self.uses(Purpose::Texels, index, start, length, Pointer::Fixed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::Found;

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

    fn walked_over_repeated(word: u32, most: u32) -> Counted {
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
        environment(&read, &crate::PROFILES[0], u64::MAX - 7, &mut counted);
        counted
    }

    #[test]
    fn hostile_lists_end_where_the_visitor_does() {
        // The visitor's limit, and one more per resource.
        for kind in [1, 2, 9] {
            let counted = walked_over_repeated(0xffff_ffc0 | kind, 1000);
            assert!((1000..1100).contains(&counted.descriptors), "{kind}");
            // What the environment names as its program is none.
            assert_eq!(counted.problems, 1);
        }
        // Unknown types are told, and tables end.
        let counted = walked_over_repeated(0xffff_ffff, 1000);
        assert_eq!(u64::from(counted.problems), 63 * LONGEST_TABLE + 1);
    }

    #[test]
    fn unknown_memory_is_told_once() {
        let mut counted = Counted {
            descriptors: 0,
            problems: 0,
            most: 1,
        };
        let nothing = |_: u64, _: &mut [u8]| false;
        let mut reading = Reading::new(&nothing, &crate::PROFILES[0], &mut counted);
        compute(&mut reading, 0);
        assert_eq!((counted.descriptors, counted.problems), (0, 1));
    }
}
