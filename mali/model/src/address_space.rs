// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of one address space.

use std::sync::Arc;

use gpureplay_shader::MmuFault;
use mali_facts::Profile;
use mali_facts::registers::{AddressSpaceCommand, address_space as register};

use crate::space::{Space, fault_status};
use crate::walk::Translation;

#[derive(Debug)]
pub(crate) struct AddressSpaceRegisters {
    words: [u32; (register::STRIDE / 4) as usize],
    space: Arc<Space>,
}

impl AddressSpaceRegisters {
    pub(crate) fn new() -> AddressSpaceRegisters {
        AddressSpaceRegisters {
            words: [0; (register::STRIDE / 4) as usize],
            space: Arc::default(),
        }
    }

    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.space
    }

    pub(crate) fn word(&self, register: u32) -> u32 {
        self.words.get(register as usize / 4).copied().unwrap_or(0)
    }

    pub(crate) fn set_word(&mut self, register: u32, value: u32) {
        if let Some(word) = self.words.get_mut(register as usize / 4) {
            *word = value;
        }
    }

    fn pair(&self, low: u32) -> u64 {
        u64::from(self.word(low)) | u64::from(self.word(low + 4)) << 32
    }

    /// Without caches, UNLOCK and FLUSH_PT only retry a stalled access. FLUSH_MEM does not: drivers flush before they
    /// give a space up.
    pub(crate) fn command(&mut self, command: AddressSpaceCommand, profile: &Profile) {
        match command {
            AddressSpaceCommand::Nop
            | AddressSpaceCommand::Lock
            | AddressSpaceCommand::FlushMemory => {}
            AddressSpaceCommand::Update => {
                let table = self.pair(register::TRANSTAB_LO);
                let config = self.pair(register::TRANSCFG_LO);
                self.space.update(Translation::new(table, config, profile));
            }
            AddressSpaceCommand::Unlock | AddressSpaceCommand::FlushPageTables => {
                self.space.retry()
            }
        }
    }

    pub(crate) fn report(&mut self, fault: &MmuFault) {
        self.set_word(register::FAULTSTATUS, fault_status(fault).0);
        self.set_word(register::FAULTADDRESS_LO, fault.va as u32);
        self.set_word(register::FAULTADDRESS_HI, (fault.va >> 32) as u32);
        self.set_word(register::FAULTEXTRA_LO, 0);
        self.set_word(register::FAULTEXTRA_HI, 0);
    }
}
