// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares two devices in lock-step.

use gpureplay_format::Access;

use crate::clean_caches;
use gpureplay_core::gpu::{Chain, Gpu, Lines, Submission, UsedUp, Wrapper};
use gpureplay_core::{DeviceError, ErrorKind};

/// First difference, after so many chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// Chains, offset, both values.
    Register(u32, u32, u32, u32),
    /// Chains, first byte's address, both values.
    Memory(u32, u64, u8, u8),
    /// Chains; only one device refused.
    Refused(u32),
}

/// Two devices with the same calls; the caller sees the first.
#[derive(Debug)]
pub struct Diff<A, B> {
    first: A,
    second: B,
    chains: u32,
    divergence: Option<Divergence>,
    ignored: fn(u32) -> bool,
}

impl<A: Gpu, B: Gpu> Diff<A, B> {
    /// All read memory, and registers except `ignored` (counters, flush ids).
    pub const fn new(first: A, second: B, ignored: fn(u32) -> bool) -> Self {
        Self {
            first,
            second,
            chains: 0,
            divergence: None,
            ignored,
        }
    }

    /// The first difference so far.
    pub const fn divergence(&self) -> Option<Divergence> {
        self.divergence
    }

    /// Both devices.
    pub const fn get_ref(&self) -> (&A, &B) {
        (&self.first, &self.second)
    }

    /// Changes to one do not reach the other.
    pub const fn get_mut(&mut self) -> (&mut A, &mut B) {
        (&mut self.first, &mut self.second)
    }

    /// Gives both devices back.
    pub fn into_inner(self) -> (A, B) {
        (self.first, self.second)
    }

    fn differ(&mut self, divergence: Divergence) {
        self.divergence.get_or_insert(divergence);
    }

    fn both(
        &mut self,
        first: Result<(), DeviceError>,
        second: Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        if first.is_ok() != second.is_ok() {
            self.differ(Divergence::Refused(self.chains));
        }
        first
    }
}

impl<A: Gpu, B: Gpu> Diff<A, B> {
    /// Compares whole steps of devices without registers; both must lack them.
    fn whole(
        &mut self,
        first: Option<Result<(), ErrorKind>>,
        second: Option<Result<(), ErrorKind>>,
    ) -> Option<Result<(), ErrorKind>> {
        let (first, second) = match (first, second) {
            (None, None) => return None,
            (Some(first), Some(second)) => (first, second),
            _ => (Err(MIXED), Ok(())),
        };
        if first.is_ok() != second.is_ok() {
            self.differ(Divergence::Refused(self.chains));
        }
        Some(first)
    }
}

/// Only one device has registers.
const MIXED: ErrorKind = ErrorKind::Device(DeviceError::Refused(0));

/// Reset; memory stays.
fn as_if_lent(gpu: &mut impl Gpu) -> Result<(), DeviceError> {
    clean_caches(gpu).map_err(|_| DeviceError::ResetFailed)?;
    gpu.reset()
}

// A call forgotten here reaches only the first device.
#[deny(clippy::missing_trait_methods)]
impl<A: Gpu, B: Gpu> Wrapper for Diff<A, B> {
    type Inner = A;

    fn inner(&mut self) -> &mut A {
        &mut self.first
    }

    fn read32(&mut self, register: u32) -> u32 {
        let first = self.first.read32(register);
        let second = self.second.read32(register);
        if first != second && !(self.ignored)(register) {
            self.differ(Divergence::Register(self.chains, register, first, second));
        }
        first
    }

    fn write32(&mut self, register: u32, value: u32) {
        self.first.write32(register, value);
        self.second.write32(register, value);
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        let first = self.first.wait_irq(lines, timeout_us);
        // The second device may be slower.
        let second = self.second.wait_irq(lines, timeout_us);
        if first == Lines::NONE { second } else { first }
    }

    fn now_us(&mut self) -> u64 {
        self.first.now_us()
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        let (first, second) = (
            self.first.map(va, pages, access),
            self.second.map(va, pages, access),
        );
        self.both(first, second)
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        let (first, second) = (self.first.activate(), self.second.activate());
        self.both(first.map(drop), second.map(drop))?;
        first
    }

    fn release(&mut self) {
        self.first.release();
        self.second.release();
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let (first, second) = (
            self.first.write_memory(va, bytes),
            self.second.write_memory(va, bytes),
        );
        self.both(first, second)
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let mut va = va;
        for part in bytes.chunks_mut(256) {
            let mut other = [0; 256];
            let other = other.get_mut(..part.len()).unwrap_or_default();
            let first = self.first.read_memory(va, part);
            let second = self.second.read_memory(va, other);
            self.both(first, second)?;
            let differing = (va..)
                .zip(part.iter().zip(other.iter()))
                .find(|(_, (a, b))| a != b);
            if let Some((at, (&a, &b))) = differing {
                self.differ(Divergence::Memory(self.chains, at, a, b));
            }
            va = va.wrapping_add(part.len() as u64);
        }
        Ok(())
    }

    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        let (first, second) = (
            self.first.fill_memory(va, length, byte),
            self.second.fill_memory(va, length, byte),
        );
        self.both(first, second)
    }

    fn apply(&mut self, register: u32, value: u32) -> Option<Result<(), ErrorKind>> {
        let first = self.first.apply(register, value);
        let second = self.second.apply(register, value);
        self.whole(first, second)
    }

    fn start(&mut self, unused_cores: u32) -> Option<Result<(), ErrorKind>> {
        let first = self.first.start(unused_cores);
        let second = self.second.start(unused_cores);
        self.whole(first, second)
    }

    fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        let first = self.first.run_chain(work);
        let second = self.second.run_chain(work);
        self.whole(first, second)
    }

    fn lend(&mut self) -> Result<bool, DeviceError> {
        let (first, second) = (self.first.lend()?, self.second.lend()?);
        match (first, second) {
            (true, false) => as_if_lent(&mut self.second)?,
            (false, true) => as_if_lent(&mut self.first)?,
            _ => {}
        }
        Ok(first || second)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        let (first, second) = (self.first.reset(), self.second.reset());
        self.both(first, second)
    }

    fn expect_recording(&mut self, bytes: u64) {
        self.first.expect_recording(bytes);
        self.second.expect_recording(bytes);
    }

    fn used_up(&mut self) -> Option<UsedUp> {
        self.first.used_up().or_else(|| self.second.used_up())
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        self.chains = self.chains.wrapping_add(1);
        let first = self.first.before_chain(chain);
        let second = self.second.before_chain(chain);
        self.both(first, second)
    }

    fn after_chain(&mut self, chain: &Chain, result: Result<(), ErrorKind>) {
        self.first.after_chain(chain, result);
        self.second.after_chain(chain, result);
    }
}
