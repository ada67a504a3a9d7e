// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows descriptors to a visitor.

use super::{MemoryUse, Pointer, Problem, Purpose, Visitor};
use crate::{Layout, Memory, Profile};

pub(crate) struct Reading<'a> {
    pub(crate) memory: &'a dyn Memory,
    pub(crate) profile: &'a Profile,
    pub(crate) visitor: &'a mut dyn Visitor,
}

macro_rules! descriptor {
    ($reading:expr, $type:ident, $address:expr, $pointer:expr) => {
        descriptor!($reading, $type, $address, $pointer, None)
    };
    ($reading:expr, $type:ident, $address:expr, $pointer:expr, $index:expr) => {{
        let (address, pointer, mut bytes) = ($address, $pointer, [0; $type::SIZE]);
        if $reading.known(address, Some(&mut bytes), $type::LAYOUT, pointer) {
            let descriptor = $type::from_bytes(&bytes);
            let (layout, words) = ($type::LAYOUT, &descriptor.words);
            $reading.visitor.descriptor(&crate::walk::Found {
                layout,
                index: $index,
                address,
                words,
                pointer,
            });
            Some(descriptor)
        } else {
            None
        }
    }};
}

pub(crate) use descriptor;

impl<'a> Reading<'a> {
    pub(crate) fn new(
        memory: &'a dyn Memory,
        profile: &'a Profile,
        visitor: &'a mut dyn Visitor,
    ) -> Self {
        Self {
            memory,
            profile,
            visitor,
        }
    }

    pub(crate) fn known(
        &mut self,
        address: u64,
        to: Option<&mut [u8]>,
        layout: &Layout,
        pointer: Pointer,
    ) -> bool {
        let length = Some(4 * layout.words as u64);
        self.uses(Purpose::Descriptor, 0, address, length, pointer);
        let known = to.is_some_and(|to| self.memory.read(address, to));
        if !known {
            self.visitor
                .problem(address, &Problem::Unknown(layout.name));
        }
        known
    }

    pub(crate) fn uses(
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

    /// `bytes`: per thread and per work group. Each core has storage for all that it can run.
    pub(crate) fn storage(&mut self, bases: [u64; 2], bytes: [u64; 2], instances: u64) {
        let cores = u64::from(self.profile.core_id_range());
        let threads = u64::from(self.profile.max_threads);
        let [(thread, each), (group, every)] = [(bases[0], bytes[0]), (bases[1], bytes[1])];
        if each != 0 {
            let length = each.saturating_mul(threads * cores);
            let purpose = Purpose::ThreadStorage;
            self.uses(purpose, 0, thread, Some(length), Pointer::Fixed);
        }
        if group != 0 && every != 0 {
            let length = every.saturating_mul(instances).saturating_mul(cores);
            let purpose = Purpose::WorkgroupStorage;
            self.uses(purpose, 0, group, Some(length), Pointer::Fixed);
        }
    }
}
