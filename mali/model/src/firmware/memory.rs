// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of memory that driver and firmware share.

use std::sync::Arc;

use gpureplay_memory::Bus;
use gpureplay_shader::MmuFault;

use crate::space::{JobMemory, Space};

pub(super) struct Memory<B: Bus> {
    bus: Arc<B>,
    space: Arc<Space>,
}

impl<B: Bus> Memory<B> {
    pub(super) fn new(bus: Arc<B>, space: Arc<Space>) -> Memory<B> {
        Memory { bus, space }
    }

    fn mapped(&self) -> JobMemory<'_, B> {
        JobMemory {
            bus: &*self.bus,
            space: &self.space,
            stall: None,
            observer: None,
        }
    }

    pub(super) fn get(&self, address: u32) -> Result<u32, MmuFault> {
        let word = self.mapped().bytes(address.into())?;
        Ok(u32::from_le_bytes(word))
    }

    pub(super) fn put(&self, address: u32, value: u32) -> Result<(), MmuFault> {
        self.mapped().write(address.into(), &value.to_le_bytes())
    }

    pub(super) fn get_wide(&self, address: u64) -> Result<u64, MmuFault> {
        Ok(u64::from_le_bytes(self.mapped().bytes(address)?))
    }

    pub(super) fn put_wide(&self, address: u64, value: u64) -> Result<(), MmuFault> {
        self.mapped().write(address, &value.to_le_bytes())
    }

    pub(super) fn read_words(&self, address: u64, words: &mut [u32]) -> Result<(), MmuFault> {
        let mut bytes = vec![0; 4 * words.len()];
        self.mapped().read(address, &mut bytes)?;
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        Ok(())
    }

    pub(super) fn write_words(&self, address: u64, words: &[u32]) -> Result<(), MmuFault> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.mapped().write(address, &bytes)
    }
}
