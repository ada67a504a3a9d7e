// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of a run goes: a device and tensors that are timed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines, Tensors, Wrapper};
use gpureplay_format::Recording;
use mali_drive::writable;
use mali_facts::registers::gpu::GPU_ID;
use mali_facts::registers::{Class, lookup};

use crate::bindings::Bindings;
use crate::counters::Counters;
use crate::device::Device;
use crate::text;
use crate::unfinished::{self, Unfinished};

/// Chains, and transfers, of a run whose times are kept.
const MAX_SPANS: usize = 1 << 20;

/// What a run is made of, in the order of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Restore, Self::Bind, Self::Device, Self::Read];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Bind => "bind",
            Self::Device => "device",
            Self::Read => "read",
        }
    }
}

/// Times of the last run of a session, and what the engine asked of the device in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Putting the recording on the device, where this run had to: reset, power, memory, set-up.
    pub load: Duration,
    /// The run itself, all attempts.
    pub run: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// Chains that were submitted, set-up left out.
    pub chains: u32,
    /// Register accesses, those of loading left out.
    pub registers: u64,
    /// Interrupts that arrived.
    pub interrupts: u64,
    /// Bytes to and from GPU memory.
    pub bytes: u64,
    pub(crate) phases: [Duration; 4],
}

impl Timing {
    /// Time of a phase. What is left of [`Timing::run`] is the engine's own.
    pub fn phase(&self, phase: Phase) -> Duration {
        self.phases.get(phase as usize).copied().unwrap_or_default()
    }

    /// Says the time of a phase.
    pub fn set_phase(&mut self, phase: Phase, time: Duration) {
        if let Some(slot) = self.phases.get_mut(phase as usize) {
            *slot = time;
        }
    }
}

/// When a chain ran: from its start command until its end was known, by the clock of the machine that replays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSpan {
    /// GPU address of its first job's header.
    pub head: u64,
    /// Job slot.
    pub slot: u8,
    /// When it was started, from when the session began to count: loading, or the run.
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
    /// What the GPU's own counters say, if they were asked for.
    pub counters: Option<Counters>,
}

/// Bytes that the CPU put into GPU memory, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// GPU address of the first byte.
    pub address: u64,
    /// How many.
    pub bytes: u64,
    /// They belong to a tensor that the caller gave; else the recording itself has them.
    pub tensor: bool,
    /// When it began, on the clock of [`ChainSpan::start`].
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
}

/// Chains and transfers of a time, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Chains that ended.
    pub chains: Vec<ChainSpan>,
    /// Bytes that were put into GPU memory, if the session was told to keep that.
    pub transfers: Vec<Transfer>,
}

/// What a session's device and tensors count together.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    timing: Timing,
    /// When counting began.
    began: Instant,
    /// What happened since.
    events: Events,
    /// What happened in the last loading.
    setup: Events,
    /// Transfers are kept.
    keeps_transfers: bool,
    /// Bytes of the tensor that is being copied which are still to come.
    left: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            timing: Timing::default(),
            began: Instant::now(),
            events: Events::default(),
            setup: Events::default(),
            keeps_transfers: false,
            left: 0,
        }
    }
}

impl Counts {
    fn add(&mut self, phase: Phase, time: Duration) {
        if let Some(sum) = self.timing.phases.get_mut(phase as usize) {
            *sum += time;
        }
    }

    /// Keeps when bytes were put into GPU memory, if that is wanted.
    fn keep(&mut self, address: u64, bytes: u64, started: Instant, time: Duration) {
        if self.keeps_transfers && self.events.transfers.len() < MAX_SPANS {
            self.events.transfers.push(Transfer {
                address,
                bytes,
                tensor: self.left > 0,
                start: started.saturating_duration_since(self.began),
                duration: time,
            });
        }
    }

    /// Counts a transfer: of the tensor that is being copied, or else of the recording.
    fn moved(&mut self, bytes: u64, tensor: Phase, time: Duration) {
        self.timing.bytes += bytes;
        if self.left > 0 {
            self.left = self.left.saturating_sub(bytes);
            self.add(tensor, time);
        } else {
            self.add(Phase::Restore, time);
        }
    }
}

/// Counts that a session shares with its device and tensors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Arc<Mutex<Counts>>);

impl Clock {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to count anew; phases of loading are no part of a run, so it is called after that too.
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

    /// What happened since belongs to loading.
    pub(crate) fn loaded(&self) {
        let mut counts = self.counts();
        counts.setup = std::mem::take(&mut counts.events);
    }

    /// Whether transfers are kept from now on.
    pub(crate) fn keep_transfers(&self, yes: bool) {
        self.counts().keeps_transfers = yes;
    }

    /// A whole run with so many chains happened where nothing else can be counted.
    pub(crate) fn ran_elsewhere(&self, chains: u32) {
        self.counts().timing.chains += chains;
    }

    /// What happened in the last loading, and since.
    pub(crate) fn events(&self) -> (Events, Events) {
        let counts = self.counts();
        (counts.setup.clone(), counts.events.clone())
    }

    /// What was counted since.
    pub(crate) fn read(&self) -> Timing {
        self.counts().timing
    }
}

/// A device whose calls are timed.
pub(crate) struct Timed {
    pub(crate) device: Device,
    clock: Clock,
    /// GPU_ID of a device that need not be the GPU that was recorded: settings that this GPU does not have are not written.
    other_gpu: Option<u32>,
    /// When the last chain was started.
    started: Instant,
    /// The GPU's counters are read around each chain.
    counts_gpu: bool,
    /// Where they were when the last chain was started.
    before: Option<Counters>,
    /// The job that kept the last chain from ending.
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

    /// The job that kept the last chain from ending, if the chain failed and its headers say so.
    pub(crate) fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    /// Says whether the GPU's counters are read around each chain.
    pub(crate) fn count_gpu(&mut self, yes: bool) {
        self.counts_gpu = yes;
    }

    /// Says whether the device may be another GPU than the recorded one.
    pub(crate) fn may_be_another(&mut self, yes: bool) {
        self.other_gpu = yes.then(|| self.gpu().read32(GPU_ID));
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
        let is_setting = || lookup(register).is_some_and(|one| one.class() == Class::Quirk);
        if let Some(id) = self.other_gpu
            && is_setting()
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

/// Tensors that say when they are copied.
pub(crate) struct Announced<'a> {
    pub(crate) bindings: &'a mut Bindings,
    pub(crate) clock: &'a Clock,
    /// By tensor: bytes in GPU memory, copies included.
    pub(crate) sizes: &'a [u64],
}

impl Announced<'_> {
    fn begin(&self, tensor: u32) {
        let size = self.sizes.get(tensor as usize).copied().unwrap_or(0);
        self.clock.counts().left = size;
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
            left: 8,
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
