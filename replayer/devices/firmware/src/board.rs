// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's machine: registers, memory, interrupts.

use core::sync::atomic::{AtomicBool, Ordering};

use gpureplay_bare::{Machine, Memory};

use crate::{cpu, gic, machine};

/// By the interrupt handler, which leaves the GPU's line disabled.
static RAISED: AtomicBool = AtomicBool::new(false);
static LATE: AtomicBool = AtomicBool::new(false);

/// Notes and silences interrupts.
pub fn interrupt() {
    while let Some(id) = gic::acknowledge() {
        if id == machine::TIMER_INTERRUPT {
            cpu::stop_timer();
            LATE.store(true, Ordering::Release);
        } else {
            gic::disable(id);
            RAISED.store(true, Ordering::Release);
        }
        gic::end(id);
    }
}

pub struct Board {
    registers: usize,
    interrupt: u32,
    memory: Memory,
    /// So far.
    pub interrupts: u32,
}

impl Board {
    /// All lines share one interrupt; pages come from `start` to `end`.
    pub const fn new(registers: usize, interrupt: u32, start: usize, end: usize) -> Self {
        Self {
            registers,
            interrupt,
            memory: Memory {
                start: core::ptr::with_exposed_provenance_mut(start),
                bytes: end.saturating_sub(start),
                bus: start as u64,
            },
            interrupts: 0,
        }
    }
}

impl Machine for Board {
    fn read32(&mut self, register: u32) -> u32 {
        machine::read32(self.registers + register as usize)
    }

    fn write32(&mut self, register: u32, value: u32) {
        cpu::barrier();
        machine::write32(self.registers + register as usize, value);
    }

    fn now_us(&mut self) -> u64 {
        cpu::microseconds(cpu::ticks())
    }

    fn wait_interrupt(&mut self, timeout_us: u32) {
        RAISED.store(false, Ordering::Release);
        LATE.store(false, Ordering::Release);
        cpu::start_timer(timeout_us.into());
        gic::enable(self.interrupt);
        while !RAISED.load(Ordering::Acquire) && !LATE.load(Ordering::Acquire) {
            cpu::sleep_unless(|| RAISED.load(Ordering::Acquire) || LATE.load(Ordering::Acquire));
        }
        cpu::stop_timer();
        gic::disable(self.interrupt);
        if RAISED.load(Ordering::Acquire) {
            self.interrupts += 1;
        }
    }

    fn memory(&self) -> Memory {
        self.memory
    }
}
