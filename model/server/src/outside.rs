// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that no GPU has, for guest modules: caches and power.
//!
//! Only with `--non-coherent` or `--power-domain`. [`OPERATION`] acts on the lines named before; a read of [`DONE`]
//! returns when it has.

use gpureplay_memory::{Cached, LINE_SIZE, Maintenance};
use mali_model::{Level, Log};

/// In BAR 0, without GPU registers.
const FIRST: u32 = 0xf000;
/// Read: [`PRESENT`].
const MAGIC: u32 = FIRST;
/// First line's bus address, in lines.
const LINE: u32 = FIRST + 0x4;
const COUNT: u32 = FIRST + 0x8;
const OPERATION: u32 = FIRST + 0xc;
const DONE: u32 = FIRST + 0x10;

/// Bit 0: on. Off, registers read 0, ignore writes, and count in [`UNPOWERED`].
const POWER: u32 = FIRST + 0x14;
/// Accesses without power, and power losses under a chain.
const UNPOWERED: u32 = FIRST + 0x18;

/// Resets to carry out, plus one; later ones are ignored. 0: all.
const RESETS: u32 = FIRST + 0x1c;

/// "CACH": the registers are there.
const PRESENT: u32 = 0x4341_4348;
/// At most a gibibyte.
const MAXIMUM: u32 = 1 << 24;

pub(crate) fn has(register: u32) -> bool {
    register & !0xfff == FIRST
}

pub(crate) struct Registers {
    line: u32,
    count: u32,
    /// By operation number.
    done: [u32; 5],
    powered: bool,
    unpowered: u32,
    resets: u32,
}

impl Registers {
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

    pub(crate) fn powered(&self) -> bool {
        self.powered
    }

    pub(crate) fn resets(&mut self) -> bool {
        let carried_out = self.resets != 1;
        self.resets = self.resets.saturating_sub(u32::from(carried_out));
        carried_out
    }

    /// Hardware would hang or raise a bus error.
    pub(crate) fn miss(&mut self, log: &dyn Log, register: u32) {
        self.complain(
            log,
            format_args!("access to register {register:#x} without power"),
        );
    }

    pub(crate) fn interrupt(&mut self, log: &dyn Log) {
        self.complain(log, format_args!("power switched off under a chain"));
    }

    fn complain(&mut self, log: &dyn Log, what: std::fmt::Arguments<'_>) {
        self.unpowered = self.unpowered.saturating_add(1);
        log.write(Level::Error, what);
    }

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
