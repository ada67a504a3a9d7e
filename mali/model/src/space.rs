// SPDX-License-Identifier: MIT OR Apache-2.0
//! An address space: translation and stalls.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use gpureplay_memory::{Bus, PAGE_SIZE, Page};
use gpureplay_shader::{Access, AddressSpace, Control, MmuFault};
use mali_facts::registers::{FaultAccess, FaultStatus, JobStatus};

use crate::observer::Observer;
use crate::walk::Translation;

/// What a refused access does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultPolicy {
    /// The job fails at once.
    #[default]
    Report,
    /// The access waits, as on hardware, for the next command to the space after the MMU's interrupt. For software
    /// that maps on demand; another thread must serve the registers.
    Stall,
}

#[derive(Debug)]
struct State {
    translation: Translation,
    waiting: Option<MmuFault>,
    unreported: bool,
    /// The running chain's fault is in the registers.
    shown: bool,
    /// So far; each ends a wait.
    commands: u64,
}

#[derive(Debug)]
pub(crate) struct Space {
    state: Mutex<State>,
    changed: Condvar,
}

impl Default for Space {
    fn default() -> Space {
        Space {
            state: Mutex::new(State {
                translation: Translation::UNMAPPED,
                waiting: None,
                unreported: false,
                shown: false,
                commands: 0,
            }),
            changed: Condvar::new(),
        }
    }
}

impl Space {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshot(&self) -> (Translation, u64) {
        let state = self.lock();
        (state.translation, state.commands)
    }

    pub(crate) fn update(&self, translation: Translation) {
        self.lock().translation = translation;
        self.retry();
    }

    pub(crate) fn retry(&self) {
        self.lock().commands += 1;
        self.changed.notify_all();
    }

    pub(crate) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    pub(crate) fn take_unreported(&self) -> Option<MmuFault> {
        let mut state = self.lock();
        if !state.unreported {
            return None;
        }
        state.unreported = false;
        state.shown = true;
        state.waiting
    }

    pub(crate) fn take_shown(&self) -> bool {
        std::mem::take(&mut self.lock().shown)
    }

    /// Waits for software to handle a fault found after `seen` commands. True: retry.
    ///
    /// A space that maps nothing was given up: software will not answer.
    fn stall(&self, fault: MmuFault, seen: u64, stall: &Stall<'_>) -> bool {
        let hopeless =
            |state: &State| stall.control.is_aborted() || state.translation.is_unmapped();
        let mut state = self.lock();
        while state.waiting.is_some() && !hopeless(&state) {
            state = self.wait(state);
        }
        if hopeless(&state) {
            return false;
        }
        if state.commands != seen {
            return true;
        }
        state.waiting = Some(fault);
        state.unreported = true;
        drop(state);
        (stall.notify)(true);
        let mut state = self.lock();
        while state.commands == seen && !hopeless(&state) {
            state = self.wait(state);
        }
        state.waiting = None;
        state.unreported = false;
        let retry = !hopeless(&state);
        drop(state);
        self.changed.notify_all();
        (stall.notify)(false);
        retry
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Stall<'a> {
    pub(crate) control: &'a Control,
    /// As [`Options::stalled`](crate::Options::stalled).
    pub(crate) notify: &'a (dyn Fn(bool) + Sync),
}

pub(crate) struct JobMemory<'a, B: Bus> {
    pub(crate) bus: &'a B,
    pub(crate) space: &'a Space,
    /// `None`: faults are reported at once.
    pub(crate) stall: Option<Stall<'a>>,
    pub(crate) observer: Option<&'a dyn Observer>,
}

impl<B: Bus> JobMemory<'_, B> {
    pub(crate) fn read(&self, va: u64, to: &mut [u8]) -> Result<(), MmuFault> {
        let mut done = 0;
        while done < to.len() {
            let at = va.wrapping_add(done as u64);
            let page = self.translate(at, Access::Read)?;
            done += page.copy_to_slice(at as usize & (PAGE_SIZE - 1), &mut to[done..]);
        }
        Ok(())
    }

    pub(crate) fn write(&self, va: u64, from: &[u8]) -> Result<(), MmuFault> {
        let mut done = 0;
        while done < from.len() {
            let at = va.wrapping_add(done as u64);
            let page = self.translate(at, Access::Write)?;
            done += page.copy_from_slice(at as usize & (PAGE_SIZE - 1), &from[done..]);
        }
        Ok(())
    }

    pub(crate) fn bytes<const N: usize>(&self, va: u64) -> Result<[u8; N], MmuFault> {
        let mut bytes = [0; N];
        self.read(va, &mut bytes)?;
        Ok(bytes)
    }
}

impl<B: Bus> AddressSpace for JobMemory<'_, B> {
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault> {
        loop {
            let (translation, seen) = self.space.snapshot();
            let code = match translation.translate(self.bus, va, access) {
                Ok(address) => match self.bus.page(address) {
                    Some(page) => {
                        if let Some(observer) = self.observer {
                            observer.page(va, access);
                        }
                        return Ok(page);
                    }
                    None => JobStatus::DELAYED_BUS_FAULT,
                },
                Err(code) => code,
            };
            let fault = MmuFault {
                va,
                access,
                code: code.0 as u8,
            };
            match &self.stall {
                Some(stall) if self.space.stall(fault, seen, stall) => {}
                _ => return Err(fault),
            }
        }
    }
}

pub(crate) fn fault_status(fault: &MmuFault) -> FaultStatus {
    let access = match fault.access {
        Access::Read => FaultAccess::Read,
        Access::Write => FaultAccess::Write,
        Access::Execute => FaultAccess::Execute,
    };
    FaultStatus::new(JobStatus(fault.code.into()), access, 0)
}

/// Bus faults have their own interrupt bits.
pub(crate) fn is_bus_fault(fault: &MmuFault) -> bool {
    matches!(fault.code, 0x80 | 0xd0..=0xd7)
}
