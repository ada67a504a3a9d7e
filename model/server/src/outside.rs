// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that no GPU has: kernel modules of a guest tell the model what happens outside of the GPU, to the processor's caches
//! and to the GPU's power.
//!
//! They are there with `--non-coherent` or `--power-domain` only. A write of [`OPERATION`] takes effect on the lines that were named
//! before; a read of [`DONE`] afterwards returns when it has.

use mali_memory::{Cached, LINE_SIZE, Maintenance};
use mali_model::{Level, Log};

/// Offset of the first in BAR 0: a page without registers of the GPU.
const FIRST: u32 = 0xf000;
/// Read: [`PRESENT`].
const MAGIC: u32 = FIRST;
/// Bus address of the first line, in lines.
const LINE: u32 = FIRST + 0x4;
/// Number of lines.
const COUNT: u32 = FIRST + 0x8;
/// What to do with them.
const OPERATION: u32 = FIRST + 0xc;
/// Operations so far.
const DONE: u32 = FIRST + 0x10;

/// Bit 0: the GPU has power. Without it its registers read 0, ignore what is written, and say so in [`UNPOWERED`].
const POWER: u32 = FIRST + 0x14;
/// Accesses to registers of a GPU without power, and times that it was switched off under a chain that ran.
const UNPOWERED: u32 = FIRST + 0x18;

/// Resets that the GPU still carries out, and one: it takes no notice of those that follow. 0: it carries out all of them.
const RESETS: u32 = FIRST + 0x1c;

/// "CACH": the registers are there.
const PRESENT: u32 = 0x4341_4348;
/// Lines of one operation at most: a gibibyte.
const MAXIMUM: u32 = 1 << 24;

pub(crate) fn has(register: u32) -> bool {
    register & !0xfff == FIRST
}

pub(crate) struct Registers {
    line: u32,
    count: u32,
    /// By operation, in the order of their numbers.
    done: [u32; 5],
    powered: bool,
    unpowered: u32,
    resets: u32,
}

impl Registers {
    /// No operation yet; the GPU has power.
    pub(crate) fn new() -> Registers {
        Registers {
            line: 0,
            count: 0,
            done: [0; 5],
            powered: true,
            unpowered: 0,
            resets: 0,
        }
    }

    /// Whether the GPU has power.
    pub(crate) fn powered(&self) -> bool {
        self.powered
    }

    /// Whether the GPU carries out the reset that it is asked for now.
    pub(crate) fn resets(&mut self) -> bool {
        let carried_out = self.resets != 1;
        self.resets = self.resets.saturating_sub(u32::from(carried_out));
        carried_out
    }

    /// What must not be: an access to a register of the GPU, which has no power, where hardware would hang or raise an error of the bus.
    pub(crate) fn miss(&mut self, log: &dyn Log, register: u32) {
        self.complain(
            log,
            format_args!("access to register {register:#x} without power"),
        );
    }

    /// What must not be: the power goes under a chain that runs.
    pub(crate) fn interrupt(&mut self, log: &dyn Log) {
        self.complain(log, format_args!("power switched off under a chain"));
    }

    fn complain(&mut self, log: &dyn Log, what: std::fmt::Arguments<'_>) {
        self.unpowered = self.unpowered.saturating_add(1);
        log.write(Level::Error, what);
    }

    /// The value of a register; 0 if there is none.
    pub(crate) fn read(&self, register: u32) -> u32 {
        match register {
            MAGIC => PRESENT,
            LINE => self.line,
            COUNT => self.count,
            POWER => u32::from(self.powered),
            UNPOWERED => self.unpowered,
            RESETS => self.resets,
            DONE => self.done.iter().fold(0, |sum, &n| sum.wrapping_add(n)),
            _ => 0,
        }
    }

    /// Writes a register, and does to `memory` what it says.
    pub(crate) fn write(&mut self, memory: &Cached, log: &dyn Log, register: u32, value: u32) {
        match register {
            LINE => self.line = value,
            COUNT => self.count = value,
            OPERATION => self.operate(memory, log, value),
            POWER => self.powered = value & 1 != 0,
            RESETS => self.resets = value,
            _ => {}
        }
    }

    fn operate(&mut self, memory: &Cached, log: &dyn Log, operation: u32) {
        let address = u64::from(self.line) * LINE_SIZE as u64;
        let lines = u64::from(self.count.min(MAXIMUM));
        log.write(
            Level::Debug,
            format_args!("cache operation {operation}: {lines} lines from {address:#x}"),
        );
        match operation {
            1 => memory.maintain(Maintenance::Clean, address, lines),
            2 => memory.maintain(Maintenance::Invalidate, address, lines),
            3 => memory.maintain(Maintenance::CleanInvalidate, address, lines),
            4 => memory.set_uncached(address, lines),
            5 => memory.forget(address, lines),
            _ => {
                let message = format_args!("there is no cache operation {operation}");
                log.write(Level::Warning, message);
                return;
            }
        }
        let done = operation
            .checked_sub(1)
            .and_then(|at| self.done.get_mut(at as usize));
        if let Some(done) = done {
            *done = done.wrapping_add(1);
        }
    }

    /// How often each was done, for the last lines of the log.
    pub(crate) fn report(&self, log: &dyn Log) {
        let [cleaned, invalidated, both, uncached, forgotten] = self.done;
        log.write(
            Level::Info,
            format_args!(
                "caches: {cleaned} times cleaned, {invalidated} invalidated, {both} both, {uncached} uncached, {forgotten} forgotten"
            ),
        );
    }
}
