// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a run's time goes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines, Tensors, Wrapper};
use gpureplay_format::Recording;
use mali_drive::kinds::is_setting;
use mali_drive::{Counters, identify, writable};

use crate::bindings::Bindings;
use crate::device::Device;
use crate::text;
use crate::unfinished::{self, Unfinished};

/// Chains, and transfers, kept per run.
const MAX_SPANS: usize = 1 << 20;

/// Parts of a run, in report order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Bytes that every run restores.
    Restore,
    /// Inputs into GPU memory.
    Bind,
    /// From a chain's start until its end is known.
    Device,
    /// Outputs out of GPU memory.
    Read,
}

impl Phase {
    /// All phases.
    pub const ALL: [Self; 4] = [Self::Restore, Self::Bind, Self::Device, Self::Read];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Bind => "bind",
            Self::Device => "device",
            Self::Read => "read",
        }
    }
}

/// Times of a session's last run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Reset, power, memory, set-up, if this run had to.
    pub load: Duration,
    /// All attempts.
    pub run: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// Without set-up.
    pub chains: u32,
    /// Register accesses, without loading.
    pub registers: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// To and from GPU memory.
    pub bytes: u64,
    pub(crate) phases: [Duration; 4],
}

impl Timing {
    /// The rest of [`Timing::run`] is the engine's own.
    pub fn phase(&self, phase: Phase) -> Duration {
        self.phases.get(phase as usize).copied().unwrap_or_default()
    }

    /// Sets the time of a phase.
    pub fn set_phase(&mut self, phase: Phase, time: Duration) {
        if let Some(slot) = self.phases.get_mut(phase as usize) {
            *slot = time;
        }
    }
}

/// From a chain's start command until its end is known, by the replaying machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSpan {
    /// Its first header's address.
    pub head: u64,
    /// Job slot.
    pub slot: u8,
    /// Since loading or the run began.
    pub start: Duration,
    /// Duration.
    pub duration: Duration,
    /// If asked for.
    pub counters: Option<Counters>,
}

/// A CPU write to GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// First GPU address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Of a caller's tensor; else of the recording.
    pub tensor: bool,
    /// On the clock of [`ChainSpan::start`].
    pub start: Duration,
    /// Duration.
    pub duration: Duration,
}

/// Chains and transfers in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Ended chains.
    pub chains: Vec<ChainSpan>,
    /// Writes to GPU memory, if the session keeps them.
    pub transfers: Vec<Transfer>,
}

#[derive(Clone, Debug)]
pub(crate) struct Counts {
    timing: Timing,
    began: Instant,
    events: Events,
    setup: Events,
    keeps_transfers: bool,
    tensor_bytes_left: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            timing: Timing::default(),
            began: Instant::now(),
            events: Events::default(),
            setup: Events::default(),
            keeps_transfers: false,
            tensor_bytes_left: 0,
        }
    }
}

impl Counts {
    fn add(&mut self, phase: Phase, time: Duration) {
        if let Some(sum) = self.timing.phases.get_mut(phase as usize) {
            *sum += time;
        }
    }

    fn keep(&mut self, address: u64, bytes: u64, started: Instant, time: Duration) {
        if self.keeps_transfers && self.events.transfers.len() < MAX_SPANS {
            self.events.transfers.push(Transfer {
                address,
                bytes,
                tensor: self.tensor_bytes_left > 0,
                start: started.saturating_duration_since(self.began),
                duration: time,
            });
        }
    }

    fn moved(&mut self, bytes: u64, tensor: Phase, time: Duration) {
        self.timing.bytes += bytes;
        if self.tensor_bytes_left > 0 {
            self.tensor_bytes_left = self.tensor_bytes_left.saturating_sub(bytes);
            self.add(tensor, time);
        } else {
            self.add(Phase::Restore, time);
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Arc<Mutex<Counts>>);

impl Clock {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it after loading too: loading is no part of a run.
    pub(crate) fn restart(&self) {
        let mut counts = self.counts();
        let setup = std::mem::take(&mut counts.setup);
        let keeps_transfers = counts.keeps_transfers;
        *counts = Counts {
            setup,
            keeps_transfers,
            ..Counts::default()
        };
    }

    pub(crate) fn loaded(&self) {
        let mut counts = self.counts();
        counts.setup = std::mem::take(&mut counts.events);
    }

    pub(crate) fn keep_transfers(&self, yes: bool) {
        self.counts().keeps_transfers = yes;
    }

    pub(crate) fn ran_in_secure_world(&self, chains: u32) {
        self.counts().timing.chains += chains;
    }

    /// Of the last loading, and since.
    pub(crate) fn events(&self) -> (Events, Events) {
        let counts = self.counts();
        (counts.setup.clone(), counts.events.clone())
    }

    pub(crate) fn read(&self) -> Timing {
        self.counts().timing
    }
}

pub(crate) struct Timed {
    pub(crate) device: Device,
    clock: Clock,
    /// ID of a GPU that may not be the recorded one: settings that it lacks are not written.
    other_gpu: Option<u32>,
    started: Instant,
    counts_gpu: bool,
    before: Option<Counters>,
    unfinished: Option<Unfinished>,
}

impl Timed {
    pub(crate) fn new(device: Device, clock: Clock) -> Self {
        Self {
            device,
            clock,
            other_gpu: None,
            started: Instant::now(),
            counts_gpu: false,
            before: None,
            unfinished: None,
        }
    }

    pub(crate) fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    pub(crate) fn count_gpu(&mut self, yes: bool) {
        self.counts_gpu = yes;
    }

    pub(crate) fn may_be_another(&mut self, yes: bool) {
        self.other_gpu = yes.then(|| identify(self.gpu()));
    }

    fn gpu(&mut self) -> &mut dyn Gpu {
        self.device.get_mut()
    }
}

impl Wrapper for Timed {
    type Inner = Device;

    fn inner(&mut self) -> &mut Device {
        &mut self.device
    }
    fn read32(&mut self, register: u32) -> u32 {
        self.clock.counts().timing.registers += 1;
        self.gpu().read32(register)
    }
    fn write32(&mut self, register: u32, value: u32) {
        if let Some(id) = self.other_gpu
            && is_setting(register)
            && !writable(id, register, value)
        {
            return;
        }
        self.clock.counts().timing.registers += 1;
        self.gpu().write32(register, value);
    }
    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        let raised = self.gpu().wait_irq(lines, timeout_us);
        self.clock.counts().timing.interrupts += u64::from(raised != Lines::NONE);
        raised
    }
    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let started = Instant::now();
        let result = self.gpu().write_memory(va, bytes);
        let (length, time) = (bytes.len() as u64, started.elapsed());
        let mut counts = self.clock.counts();
        counts.keep(va, length, started, time);
        counts.moved(length, Phase::Bind, time);
        result
    }
    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let started = Instant::now();
        let result = self.gpu().read_memory(va, bytes);
        let (length, time) = (bytes.len() as u64, started.elapsed());
        self.clock.counts().moved(length, Phase::Read, time);
        result
    }
    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        let started = Instant::now();
        let result = self.gpu().fill_memory(va, length, byte);
        let time = started.elapsed();
        let mut counts = self.clock.counts();
        counts.keep(va, length, started, time);
        counts.moved(length, Phase::Bind, time);
        result
    }
    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        self.before = self.counts_gpu.then(|| Counters::start(self.gpu()));
        self.started = Instant::now();
        self.unfinished = None;
        self.clock.counts().timing.chains += 1;
        self.gpu().before_chain(chain)
    }
    fn after_chain(&mut self, chain: &Chain, result: Result<(), ErrorKind>) {
        let time = self.started.elapsed();
        let before = self.before.take();
        let counters = before.map(|before| before.stop(self.gpu()));
        let mut counts = self.clock.counts();
        counts.add(Phase::Device, time);
        let start = self.started.saturating_duration_since(counts.began);
        if result.is_ok() && counts.events.chains.len() < MAX_SPANS {
            counts.events.chains.push(ChainSpan {
                head: chain.head,
                slot: chain.queue,
                start,
                duration: time,
                counters,
            });
        }
        drop(counts);
        if result.is_err() {
            self.unfinished = unfinished::first(self.gpu(), chain.head);
        }
        self.gpu().after_chain(chain, result);
    }
}

pub(crate) struct Announced<'a> {
    pub(crate) bindings: &'a mut Bindings,
    pub(crate) clock: &'a Clock,
    pub(crate) sizes: &'a [u64],
}

impl Announced<'_> {
    fn begin(&self, tensor: u32) {
        let size = self.sizes.get(tensor as usize).copied().unwrap_or(0);
        self.clock.counts().tensor_bytes_left = size;
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
        // Unwanted intermediates are not copied.
        if self.bindings.output(tensor).is_some() {
            self.begin(tensor);
        }
        self.bindings.output(tensor)
    }
}

/// Bytes in GPU memory by tensor, copies included.
pub(crate) fn sizes(recording: &Recording<'_>) -> Vec<u64> {
    let elements = |axes: &[gpureplay_format::layout::AxisEntry]| {
        axes.iter().fold(1u64, |product, axis| {
            product.saturating_mul(axis.extent.get().into())
        })
    };
    let tensors = recording.tensors().iter();
    tensors
        .map(|tensor| {
            let size = text::element_of(tensor).size();
            let pieces = recording.pieces(tensor).unwrap_or(&[]).iter();
            pieces
                .map(|piece| elements(recording.axes(piece).unwrap_or(&[])) * u64::from(size))
                .sum()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_ends_where_its_bytes_do() {
        let mut counts = Counts {
            tensor_bytes_left: 8,
            ..Counts::default()
        };
        let second = Duration::from_secs(1);
        counts.moved(4, Phase::Bind, second);
        counts.moved(4, Phase::Bind, second);
        counts.moved(100, Phase::Bind, second);
        assert_eq!(counts.timing.phase(Phase::Bind), 2 * second);
        assert_eq!(counts.timing.phase(Phase::Restore), second);
        assert_eq!(counts.timing.bytes, 108);
    }
}
