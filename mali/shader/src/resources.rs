// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uniform buffers by number; descriptors by handle.

use gpureplay_shader::FaultKind;
use gpureplay_shader::core::{Tlb, Trouble, UniformBuffer};
use mali_facts::UniformBuffer as Entry;
use mali_facts::valhall::{Buffer, Resource, descriptor_type};

use super::state::State;

impl State {
    pub(super) fn numbered_buffer(
        &mut self,
        index: u32,
        read: &mut Tlb<'_>,
    ) -> Result<Option<UniformBuffer>, Trouble> {
        let Some(known) = self.uniform_buffers.get_mut(index as usize) else {
            return Ok(None);
        };
        if known.is_some() {
            return Ok(*known);
        }
        let mut bytes = [0; Entry::SIZE];
        let at = u64::from(index) * bytes.len() as u64;
        let va = self.dispatch.uniform_buffers.wrapping_add(at);
        read.read(va, &mut bytes)?;
        let entry = Entry::from_bytes(&bytes);
        *known = Some(UniformBuffer {
            address: entry.pointer(),
            // An entry of zeros is none.
            bytes: if entry.words == [0; 2] {
                0
            } else {
                entry.bytes()
            },
        });
        Ok(*known)
    }

    fn named(&self, handle: u32, read: &mut Tlb<'_>) -> Result<Option<u64>, Trouble> {
        let (table, place) = (handle >> 24, u64::from(handle & 0xff_ffff));
        if table >= self.dispatch.resource_count {
            return Ok(None);
        }
        let mut bytes = [0; Resource::SIZE];
        let at = u64::from(table) * Resource::SIZE as u64;
        let at = self.dispatch.resources.wrapping_add(at);
        read.read(at, &mut bytes)?;
        let resource = Resource::from_bytes(&bytes);
        let size = Buffer::SIZE as u64;
        let inside = resource.contains_descriptors() == 1 && (place + 1) * size <= resource.size();
        Ok(inside.then(|| resource.address().wrapping_add(place * size)))
    }

    pub(crate) fn descriptor(&self, handle: u32, read: &mut Tlb<'_>) -> Result<[u32; 8], Trouble> {
        let Some(at) = self.named(handle, read)? else {
            let text = format!("no resource table has a descriptor {handle:#x}");
            return Err(Trouble::new(FaultKind::InvalidData, 0, text));
        };
        let mut bytes = [0; Buffer::SIZE];
        read.read(at, &mut bytes)?;
        Ok(Buffer::from_bytes(&bytes).words)
    }

    /// `None`: loads give zero.
    pub(super) fn named_buffer(
        &mut self,
        handle: u32,
        read: &mut Tlb<'_>,
    ) -> Result<Option<UniformBuffer>, Trouble> {
        let mut known = self.named_buffers.iter();
        if let Some((_, buffer)) = known.find(|(of, _)| *of == handle) {
            return Ok(Some(*buffer));
        }
        let Some(at) = self.named(handle, read)? else {
            return Ok(None);
        };
        let mut bytes = [0; Buffer::SIZE];
        read.read(at, &mut bytes)?;
        let buffer = Buffer::from_bytes(&bytes);
        let buffer = match buffer.descriptor_type() as u32 {
            descriptor_type::BUFFER => UniformBuffer {
                address: buffer.address(),
                bytes: buffer.size(),
            },
            descriptor_type::NONE => UniformBuffer {
                address: 0,
                bytes: 0,
            },
            other => {
                let text = format!("descriptor {handle:#x} has type {other} and is no buffer");
                return Err(Trouble::new(FaultKind::InvalidData, 0, text));
            }
        };
        self.named_buffers.push((handle, buffer));
        Ok(Some(buffer))
    }
}
