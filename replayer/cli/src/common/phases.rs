// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of a run goes: a device and tensors that are watched.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines, Tensors, Wrapper};
use gpureplay_format::Recording;
use gpureplay_library::Bindings;
use serde::Serialize;

/// What a run is made of, in the order of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Bytes that every run restores.
    Restore,
    /// Inputs into GPU memory.
    Bind,
    /// From the start of a chain until its end is known.
    Device,
    /// Outputs out of GPU memory.
    Read,
}

impl Phase {
    pub(crate) const ALL: [Self; 4] = [Self::Restore, Self::Bind, Self::Device, Self::Read];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Bind => "bind",
            Self::Device => "device",
            Self::Read => "read",
        }
    }
}

/// Times of one run, and what the engine asked of the device in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    times: [Duration; 4],
    /// Register accesses.
    pub(crate) registers: u64,
    /// Interrupts that arrived.
    pub(crate) interrupts: u64,
    /// Bytes to and from GPU memory.
    pub(crate) bytes: u64,
    /// Bytes of the tensor that is being copied which are still to come.
    left: u64,
}

impl Counts {
    /// Time of a phase.
    pub(crate) fn time(&self, phase: Phase) -> Duration {
        self.times.get(phase as usize).copied().unwrap_or_default()
    }

    fn add(&mut self, phase: Phase, time: Duration) {
        if let Some(sum) = self.times.get_mut(phase as usize) {
            *sum += time;
        }
    }

    /// Counts a transfer: of the tensor that is being copied, or else of the recording.
    fn moved(&mut self, bytes: u64, tensor: Phase, time: Duration) {
        self.bytes += bytes;
        if self.left > 0 {
            self.left = self.left.saturating_sub(bytes);
            self.add(tensor, time);
        } else {
            self.add(Phase::Restore, time);
        }
    }
}

/// A device whose calls are timed.
pub(crate) struct Watched<'a> {
    gpu: &'a mut dyn Gpu,
    counts: &'a RefCell<Counts>,
    /// When the last chain was started.
    started: Instant,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(gpu: &'a mut dyn Gpu, counts: &'a RefCell<Counts>) -> Self {
        Self {
            gpu,
            counts,
            started: Instant::now(),
        }
    }
}

impl<'a> Wrapper for Watched<'a> {
    type Inner = dyn Gpu + 'a;

    fn inner(&mut self) -> &mut (dyn Gpu + 'a) {
        self.gpu
    }
    fn read32(&mut self, register: u32) -> u32 {
        self.counts.borrow_mut().registers += 1;
        self.gpu.read32(register)
    }
    fn write32(&mut self, register: u32, value: u32) {
        self.counts.borrow_mut().registers += 1;
        self.gpu.write32(register, value);
    }
    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        let raised = self.gpu.wait_irq(lines, timeout_us);
        self.counts.borrow_mut().interrupts += u64::from(raised != Lines::NONE);
        raised
    }
    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let started = Instant::now();
        let result = self.gpu.write_memory(va, bytes);
        let (length, time) = (bytes.len() as u64, started.elapsed());
        self.counts.borrow_mut().moved(length, Phase::Bind, time);
        result
    }
    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let started = Instant::now();
        let result = self.gpu.read_memory(va, bytes);
        let (length, time) = (bytes.len() as u64, started.elapsed());
        self.counts.borrow_mut().moved(length, Phase::Read, time);
        result
    }
    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        let started = Instant::now();
        let result = self.gpu.fill_memory(va, length, byte);
        let time = started.elapsed();
        self.counts.borrow_mut().moved(length, Phase::Bind, time);
        result
    }
    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        self.started = Instant::now();
        self.gpu.before_chain(chain)
    }
    fn after_chain(&mut self, chain: &Chain, result: Result<(), ErrorKind>) {
        let time = self.started.elapsed();
        self.counts.borrow_mut().add(Phase::Device, time);
        self.gpu.after_chain(chain, result);
    }
}

/// Tensors that say when they are copied.
pub(crate) struct Announced<'a> {
    pub(crate) bindings: &'a mut Bindings,
    pub(crate) counts: &'a RefCell<Counts>,
    /// By tensor: bytes in GPU memory, copies included.
    pub(crate) sizes: Vec<u64>,
}

impl Announced<'_> {
    fn begin(&self, tensor: u32) {
        let size = self.sizes.get(tensor as usize).copied().unwrap_or(0);
        self.counts.borrow_mut().left = size;
    }
}

impl Tensors for Announced<'_> {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        if self.bindings.is_bound(tensor as usize) {
            self.begin(tensor);
        }
        self.bindings.input(tensor)
    }

    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        // Intermediates that nobody wants are not copied.
        if self.bindings.output(tensor).is_some() {
            self.begin(tensor);
        }
        self.bindings.output(tensor)
    }
}

/// Bytes that each tensor has in GPU memory.
pub(crate) fn sizes(recording: &Recording<'_>) -> Vec<u64> {
    let elements = |axes: &[gpureplay_format::layout::AxisEntry]| {
        axes.iter().fold(1u64, |product, axis| {
            product.saturating_mul(axis.extent.get().into())
        })
    };
    let tensors = recording.tensors().iter();
    tensors
        .map(|tensor| {
            let size = gpureplay_library::text::element_of(tensor).size();
            let pieces = recording.pieces(tensor).unwrap_or(&[]).iter();
            pieces
                .map(|piece| elements(recording.axes(piece).unwrap_or(&[])) * u64::from(size))
                .sum()
        })
        .collect()
}

/// The times that half, nine tenths and 99 of 100 runs stay within, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
}

impl Percentiles {
    /// By nearest rank.
    pub(crate) fn of(times: &[f64]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or(0.0)
        };
        Self {
            p50: at(50),
            p90: at(90),
            p99: at(99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let found = Percentiles::of(&times);
        assert_eq!((found.p50, found.p90, found.p99), (100.0, 180.0, 198.0));
        assert_eq!(Percentiles::of(&[3.0]).p99, 3.0);
    }

    #[test]
    fn a_tensor_ends_where_its_bytes_do() {
        let mut counts = Counts {
            left: 8,
            ..Counts::default()
        };
        let second = Duration::from_secs(1);
        counts.moved(4, Phase::Bind, second);
        counts.moved(4, Phase::Bind, second);
        counts.moved(100, Phase::Bind, second);
        assert_eq!(counts.time(Phase::Bind), 2 * second);
        assert_eq!(counts.time(Phase::Restore), second);
        assert_eq!(counts.bytes, 108);
    }
}
