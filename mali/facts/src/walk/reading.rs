// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors are read from memory and shown to a visitor.

use super::{MemoryUse, Pointer, Problem, Purpose, Visitor};
use crate::{Layout, Memory};

/// Where descriptors are, and who sees them.
pub(crate) struct Reading<'a> {
    pub(crate) memory: &'a dyn Memory,
    pub(crate) visitor: &'a mut dyn Visitor,
}

/// Reads a descriptor, shows it, and returns it; `None` when it cannot be read.
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

impl Reading<'_> {
    /// Fills `to`, if it is given, with the descriptor at `address`. False: it is in memory that is not known.
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

    /// Shows memory that something names.
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
}
