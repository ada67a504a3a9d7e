// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole job of Valhall.

use mali_facts::valhall::{
    Buffer, ComputePayload, LONGEST_TABLE, LocalStorage, Resource, ShaderEnvironment,
    ShaderProgram, address_mode, descriptor_type,
};
use mali_facts::{Memory as _, job};

use super::held::Held;
use super::{Laid, Places, Put, gate};
use crate::error::Result;
use crate::scene::Memory;

const ENTRY: u64 = Buffer::SIZE as u64;
const UNIFORM_BUFFERS: u64 = 0;
/// Bits left out of an address.
const PACKED: u32 = 8;

#[derive(Clone, Debug)]
pub(super) struct Valhall {
    payload: ComputePayload,
    environment: ShaderEnvironment,
    program: ShaderProgram,
    storage: Option<LocalStorage>,
    resources: Vec<(Resource, Vec<Buffer>)>,
}

/// The verifier has found it mapped.
fn read<const BYTES: usize>(memory: &Memory, at: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    memory.read(at, &mut bytes);
    bytes
}

fn is_uniform(table: usize, descriptor: &Buffer) -> bool {
    table as u64 == UNIFORM_BUFFERS
        && descriptor.descriptor_type() as u32 == descriptor_type::BUFFER
}

impl Valhall {
    pub(super) fn of(memory: &Memory, address: u64) -> (Self, Held) {
        let at = address.wrapping_add(job::PAYLOAD);
        let payload = ComputePayload::from_bytes(&read(memory, at));
        let at = at.wrapping_add(ComputePayload::SIZE as u64);
        let environment = ShaderEnvironment::from_bytes(&read(memory, at));
        let place = environment.storage_at();
        let storage = (place != 0).then(|| LocalStorage::from_bytes(&read(memory, place)));
        let length = environment.uniform_bytes();
        let mut held = Held::of(memory, environment.uniforms(), length);
        let (list, count) = environment.resource_list();
        let entries = |resource: &Resource| -> Vec<Buffer> {
            let count = match resource.contains_descriptors() {
                0 => 0,
                _ => (resource.size() / ENTRY).min(LONGEST_TABLE),
            };
            let at = |index| resource.address().wrapping_add(index * ENTRY);
            let descriptor = |index| Buffer::from_bytes(&read(memory, at(index)));
            (0..count).map(descriptor).collect()
        };
        let resources: Vec<(Resource, Vec<Buffer>)> = (0..count)
            .map(|index| {
                let at = list.wrapping_add(index * Resource::SIZE as u64);
                let resource = Resource::from_bytes(&read(memory, at));
                let entries = entries(&resource);
                (resource, entries)
            })
            .collect();
        for (table, (_, entries)) in resources.iter().enumerate() {
            let buffers = entries.iter().filter(|entry| is_uniform(table, entry));
            buffers.for_each(|buffer| held.buffer(memory, buffer.address(), buffer.size()));
        }
        let program = ShaderProgram::from_bytes(&read(memory, environment.program()));
        let all = Self {
            payload,
            environment,
            program,
            storage,
            resources,
        };
        (all, held)
    }

    pub(super) fn stands_alone(&self) -> Result<()> {
        for (table, (resource, entries)) in self.resources.iter().enumerate() {
            if entries.is_empty() && resource.size() != 0 {
                return gate(
                    "resources",
                    format!("resource {table} of the job is memory, which is not taken along"),
                );
            }
            let other = entries.iter().find(|entry| {
                let kind = entry.descriptor_type() as u32;
                let alone = [descriptor_type::NONE, descriptor_type::SAMPLER].contains(&kind);
                !alone && !is_uniform(table, entry)
            });
            if let Some(other) = other {
                let kind = other.descriptor_type() as u32;
                let known = descriptor_type::NAMES
                    .iter()
                    .find(|(code, _)| *code == kind);
                let kind = known.map_or("descriptor of no known type", |(_, name)| name);
                return gate(
                    "resources",
                    format!("table {table} of the job has a {kind}, which is not taken along"),
                );
            }
        }
        Ok(())
    }

    pub(super) fn bare(&self) -> Vec<Vec<u8>> {
        let environment = self
            .environment
            .with("Resources", self.environment.resource_list().1)
            .with("Shader", 0)
            .with("Thread storage", 0)
            .with("FAU", 0);
        let storage = self.storage.map(|storage| {
            let storage = storage.with("TLS base pointer", 0);
            storage.with("WLS base pointer", 0).to_bytes().to_vec()
        });
        let mut bare = vec![
            self.payload.to_bytes().to_vec(),
            environment.to_bytes().to_vec(),
            self.program.with("Binary", 0).to_bytes().to_vec(),
            storage.unwrap_or_default(),
        ];
        for (table, (resource, entries)) in self.resources.iter().enumerate() {
            bare.push(resource.with("Address", 0).to_bytes().to_vec());
            bare.extend(entries.iter().map(|entry| {
                let entry = match is_uniform(table, entry) {
                    true => entry.with("Address", 0),
                    false => *entry,
                };
                entry.to_bytes().to_vec()
            }));
        }
        bare
    }

    pub(super) fn storage(&self) -> [u64; 2] {
        self.storage.map_or([0; 2], |storage| {
            let groups = match storage.wls_base() {
                0 => 0,
                _ => storage.wls_bytes() * storage.wls_instances(),
            };
            [storage.tls_bytes(), groups]
        })
    }

    pub(super) fn lay(&self, held: &Held, places: Places) -> Laid {
        let mut put = Put::at(places.descriptors);
        let old = &self.environment;
        let program = self.program.with("Binary", places.code);
        let program = put.put(&program.to_bytes()) | (old.shader() ^ old.program());
        let uniforms = put.put(&held.uniforms);
        let storage = self.storage.map_or(0, |storage| {
            let mut new = storage;
            if storage.tls_base() != 0 {
                let packed = storage.tls_mode() as u32 == address_mode::PACKED;
                let shift = if packed { PACKED } else { 0 };
                new = new.with("TLS base pointer", places.threads >> shift);
            }
            if storage.wls_base() != 0 {
                new = new.with("WLS base pointer", places.groups);
            }
            put.put(&new.to_bytes()) | (old.storage() ^ old.storage_at())
        });
        let mut contents = held.buffers.iter();
        let mut list = Vec::new();
        for (table, (resource, entries)) in self.resources.iter().enumerate() {
            let mut bytes = Vec::new();
            for entry in entries {
                let content = is_uniform(table, entry).then(|| contents.next()).flatten();
                let entry = match content.filter(|content| !content.is_empty()) {
                    Some(content) => entry.with("Address", put.put(content)),
                    None => *entry,
                };
                bytes.extend(entry.to_bytes());
            }
            let resource = match bytes.is_empty() {
                true => resource.with("Address", 0),
                false => resource.with("Address", put.put(&bytes)),
            };
            list.extend(resource.to_bytes());
        }
        let (_, count) = old.resource_list();
        let list = match list.is_empty() {
            true => 0,
            false => put.put(&list) | count,
        };
        let environment = old
            .with("Resources", list)
            .with("Shader", program)
            .with("Thread storage", storage)
            .with("FAU", uniforms);
        let words = [&self.payload.to_bytes()[..], &environment.to_bytes()].concat();
        Laid {
            payload: vec![(job::PAYLOAD, words)],
            descriptors: put.bytes,
        }
    }
}
