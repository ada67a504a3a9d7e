// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU of either kind.

use std::sync::Arc;

use gpureplay_memory::Bus;
use mali_facts::Product;
use mali_facts::firmware::registers as streams;
use mali_facts::registers::gpu::{GPU_CMD, GPU_INT_CLEAR};
use mali_facts::registers::{GpuCommand, GpuId, lookup};

use crate::{Finished, Gpu, IrqLines, Options, StreamDevice, StreamFinished, StreamWork, Work};

const JOBS_SIZE: u32 = 0x1_0000;

/// Name of a register of a GPU with jobs.
pub fn register_name(register: u32) -> Option<String> {
    lookup(register).map(|found| found.to_string())
}

/// [`Gpu`] or [`StreamDevice`].
pub enum Machine<B: Bus> {
    /// Takes job chains.
    Jobs(Gpu<B>),
    /// Takes command streams, through firmware.
    Streams(StreamDevice<B>),
}

/// Work for a [`Machine`].
pub enum Task<B: Bus> {
    /// Chain.
    Jobs(Work<B>),
    /// Piece of a stream.
    Streams(Box<StreamWork<B>>),
}

/// Result of a [`Task`].
pub enum Done {
    /// Of a chain.
    Jobs(Finished),
    /// Of a piece of a stream.
    Streams(Box<StreamFinished>),
}

impl<B: Bus> Task<B> {
    /// Takes as long as the work does; [`Machine::finish`] takes the result.
    pub fn execute(self) -> Done {
        match self {
            Task::Jobs(work) => Done::Jobs(work.execute()),
            Task::Streams(work) => Done::Streams(Box::new(work.execute())),
        }
    }
}

impl Done {
    /// Whether work was cut. An endless loop must not keep the guest stopped: its driver must see time go by.
    pub fn is_cut(&self) -> bool {
        matches!(self, Done::Streams(finished) if finished.is_cut())
    }
}

impl<B: Bus> Machine<B> {
    /// A GPU before its first reset.
    pub fn new(product: Product, memory: Arc<B>, options: Options) -> Self {
        match product {
            Product::Chains(profile) => Machine::Jobs(Gpu::new(profile, memory, options)),
            Product::Streams(gpu) => Machine::Streams(StreamDevice::new(gpu, memory, options)),
        }
    }

    /// GPU_ID.
    pub fn id(&self) -> GpuId {
        match self {
            Machine::Jobs(gpu) => gpu.profile().gpu_id,
            Machine::Streams(gpu) => gpu.profile().gpu_id,
        }
    }

    /// The GPU's memory.
    pub fn memory(&self) -> &Arc<B> {
        match self {
            Machine::Jobs(gpu) => gpu.bus(),
            Machine::Streams(gpu) => gpu.bus(),
        }
    }

    /// Bytes of registers.
    pub fn size(&self) -> u32 {
        match self {
            Machine::Jobs(_) => JOBS_SIZE,
            Machine::Streams(_) => streams::WINDOW_SIZE,
        }
    }

    /// Levels of the interrupt lines.
    pub fn irq(&self) -> IrqLines {
        match self {
            Machine::Jobs(gpu) => gpu.irq(),
            Machine::Streams(gpu) => gpu.irq(),
        }
    }

    /// Reads a register by its offset.
    pub fn read32(&mut self, register: u32) -> u32 {
        match self {
            Machine::Jobs(gpu) => gpu.read32(register),
            Machine::Streams(gpu) => gpu.read32(register),
        }
    }

    /// Writes a register by its offset.
    pub fn write32(&mut self, register: u32, value: u32) {
        match self {
            Machine::Jobs(gpu) => gpu.write32(register, value),
            Machine::Streams(gpu) => gpu.write32(register, value),
        }
    }

    /// Whether that write is a reset.
    pub fn resets(&self, register: u32, value: u32) -> bool {
        let commands = [GpuCommand::SoftReset, GpuCommand::HardReset];
        register == GPU_CMD
            && match self {
                Machine::Jobs(_) => commands.iter().any(|&reset| value == reset as u32),
                Machine::Streams(_) => {
                    streams::Command::from_bits(value) == Some(streams::Command::Reset)
                }
            }
    }

    /// As without power for a moment.
    pub fn lose_state(&mut self) {
        let reset = match self {
            Machine::Jobs(_) => GpuCommand::HardReset as u32,
            Machine::Streams(_) => streams::Command::HARD_RESET,
        };
        self.write32(GPU_CMD, reset);
        self.write32(GPU_INT_CLEAR, u32::MAX);
    }

    /// Whether work runs.
    pub fn is_busy(&self) -> bool {
        match self {
            Machine::Jobs(gpu) => gpu.is_busy(),
            Machine::Streams(gpu) => gpu.is_busy(),
        }
    }

    /// Whether work waits.
    pub fn has_work(&self) -> bool {
        match self {
            Machine::Jobs(gpu) => gpu.has_work(),
            Machine::Streams(gpu) => gpu.has_work(),
        }
    }

    /// The next work.
    pub fn take_work(&mut self) -> Option<Task<B>> {
        match self {
            Machine::Jobs(gpu) => gpu.take_work().map(Task::Jobs),
            Machine::Streams(gpu) => gpu.take_work().map(Box::new).map(Task::Streams),
        }
    }

    /// Shows the end of taken work.
    pub fn finish(&mut self, done: Done) {
        match (self, done) {
            (Machine::Jobs(gpu), Done::Jobs(finished)) => gpu.finish(finished),
            (Machine::Streams(gpu), Done::Streams(finished)) => gpu.finish(*finished),
            _ => {}
        }
    }

    /// Shows the driver faults of accesses that wait for it. Streams have none: a fault ends them.
    pub fn poll_faults(&mut self) {
        if let Machine::Jobs(gpu) = self {
            gpu.poll_faults();
        }
    }
}
