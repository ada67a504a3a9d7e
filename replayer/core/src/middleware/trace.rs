// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports every call to a device.

use gpureplay_format::Access;

use crate::error::{DeviceError, ErrorKind};
use crate::gpu::{Chain, Gpu, Lines, Wrapper};

/// A device call that has returned, or a chain about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Register read: offset, value.
    Read(u32, u32),
    /// Register written: offset, value.
    Write(u32, u32),
    /// Waited for lines; got lines.
    Wait(Lines, Lines),
    /// Pages mapped: address, number, access.
    Map(u64, u32, Access),
    /// The address space got its tables.
    Activate,
    /// Everything was unmapped.
    Release,
    /// Memory written: address, bytes.
    Store(u64, u64),
    /// Memory read: address, bytes.
    Load(u64, u64),
    /// Memory filled: address, bytes, value.
    Fill(u64, u64, u8),
    /// The device could be lent.
    Lend,
    /// The GPU was reset.
    Reset,
    /// About to start.
    Start(Chain),
    /// Ended.
    End(Chain, Result<(), ErrorKind>),
}

/// Calls `sink` after every call.
#[derive(Debug)]
pub struct Trace<G, F> {
    gpu: G,
    sink: F,
}

impl<G: Gpu, F: FnMut(Call)> Trace<G, F> {
    /// Watches a device.
    pub const fn new(gpu: G, sink: F) -> Self {
        Self { gpu, sink }
    }

    /// The device.
    pub const fn get_ref(&self) -> &G {
        &self.gpu
    }

    /// Access without trace.
    pub const fn get_mut(&mut self) -> &mut G {
        &mut self.gpu
    }

    /// The device.
    pub fn into_inner(self) -> G {
        self.gpu
    }
}

impl<G: Gpu, F: FnMut(Call)> Wrapper for Trace<G, F> {
    type Inner = G;

    fn inner(&mut self) -> &mut G {
        &mut self.gpu
    }

    fn read32(&mut self, register: u32) -> u32 {
        let value = self.gpu.read32(register);
        (self.sink)(Call::Read(register, value));
        value
    }

    fn write32(&mut self, register: u32, value: u32) {
        self.gpu.write32(register, value);
        (self.sink)(Call::Write(register, value));
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        let raised = self.gpu.wait_irq(lines, timeout_us);
        (self.sink)(Call::Wait(lines, raised));
        raised
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        let result = self.gpu.map(va, pages, access);
        (self.sink)(Call::Map(va, pages, access));
        result
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        let result = self.gpu.activate();
        (self.sink)(Call::Activate);
        result
    }

    fn release(&mut self) {
        self.gpu.release();
        (self.sink)(Call::Release);
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let result = self.gpu.write_memory(va, bytes);
        (self.sink)(Call::Store(va, bytes.len() as u64));
        result
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let result = self.gpu.read_memory(va, bytes);
        (self.sink)(Call::Load(va, bytes.len() as u64));
        result
    }

    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        let result = self.gpu.fill_memory(va, length, byte);
        (self.sink)(Call::Fill(va, length, byte));
        result
    }

    fn lend(&mut self) -> Result<bool, DeviceError> {
        let result = self.gpu.lend();
        (self.sink)(Call::Lend);
        result
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        let result = self.gpu.reset();
        (self.sink)(Call::Reset);
        result
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        let result = self.gpu.before_chain(chain);
        (self.sink)(Call::Start(*chain));
        result
    }

    fn after_chain(&mut self, chain: &Chain, result: Result<(), ErrorKind>) {
        self.gpu.after_chain(chain, result);
        (self.sink)(Call::End(*chain, result));
    }
}
