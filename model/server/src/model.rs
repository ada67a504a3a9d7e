// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPUs behind the PCI device.

use std::sync::Arc;

use mali_facts::Product;
use mali_facts::firmware::registers as streams;
use mali_facts::registers::{GpuCommand, GpuId, gpu::GPU_CMD};
use mali_memory::Cached;
use mali_model::{
    Finished, Gpu, IrqLines, Options, StreamDevice, StreamFinished, StreamWork, Work,
};

/// Of BAR 0, with jobs.
const JOBS_BAR: u32 = 0x1_0000;

pub(crate) enum Model {
    Jobs(Gpu<Cached>),
    Streams(StreamDevice<Cached>),
}

pub(crate) enum Task {
    Jobs(Work<Cached>),
    Streams(Box<StreamWork<Cached>>),
}

pub(crate) enum Done {
    Jobs(Finished),
    Streams(Box<StreamFinished>),
}

impl Task {
    pub(crate) fn execute(self) -> Done {
        match self {
            Task::Jobs(work) => Done::Jobs(work.execute()),
            Task::Streams(work) => Done::Streams(Box::new(work.execute())),
        }
    }
}

impl Done {
    /// Whether work was cut; else an endless loop would keep the guest stopped: its driver must see time go by.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self, Done::Streams(finished) if finished.is_cut())
    }
}

impl Model {
    pub(crate) fn start(product: Product, memory: Arc<Cached>, options: Options) -> Self {
        match product {
            Product::Chains(profile) => Model::Jobs(Gpu::new(profile, memory, options)),
            Product::Streams(gpu) => Model::Streams(StreamDevice::new(gpu, memory, options)),
        }
    }

    pub(crate) fn id(&self) -> GpuId {
        match self {
            Model::Jobs(gpu) => gpu.profile().gpu_id,
            Model::Streams(gpu) => gpu.profile().gpu_id,
        }
    }

    pub(crate) fn memory(&self) -> &Arc<Cached> {
        match self {
            Model::Jobs(gpu) => gpu.bus(),
            Model::Streams(gpu) => gpu.bus(),
        }
    }

    /// Bytes of BAR 0: all registers.
    pub(crate) fn bar_size(&self) -> u32 {
        match self {
            Model::Jobs(_) => JOBS_BAR,
            Model::Streams(_) => streams::WINDOW_SIZE,
        }
    }

    pub(crate) fn irq(&self) -> IrqLines {
        match self {
            Model::Jobs(gpu) => gpu.irq(),
            Model::Streams(gpu) => gpu.irq(),
        }
    }

    pub(crate) fn read32(&mut self, register: u32) -> u32 {
        match self {
            Model::Jobs(gpu) => gpu.read32(register),
            Model::Streams(gpu) => gpu.read32(register),
        }
    }

    pub(crate) fn write32(&mut self, register: u32, value: u32) {
        match self {
            Model::Jobs(gpu) => gpu.write32(register, value),
            Model::Streams(gpu) => gpu.write32(register, value),
        }
    }

    pub(crate) fn resets(&self, register: u32, value: u32) -> bool {
        let commands = [GpuCommand::SoftReset, GpuCommand::HardReset];
        register == GPU_CMD
            && match self {
                Model::Jobs(_) => commands.iter().any(|&reset| value == reset as u32),
                Model::Streams(_) => {
                    streams::Command::from_bits(value) == Some(streams::Command::Reset)
                }
            }
    }

    pub(crate) fn hard_reset(&mut self) {
        match self {
            Model::Jobs(gpu) => gpu.write32(GPU_CMD, GpuCommand::HardReset as u32),
            Model::Streams(gpu) => gpu.write32(GPU_CMD, 0x201),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Model::Jobs(gpu) => gpu.is_busy(),
            Model::Streams(gpu) => gpu.is_busy(),
        }
    }

    pub(crate) fn has_work(&self) -> bool {
        match self {
            Model::Jobs(gpu) => gpu.has_work(),
            Model::Streams(gpu) => gpu.has_work(),
        }
    }

    pub(crate) fn take_work(&mut self) -> Option<Task> {
        match self {
            Model::Jobs(gpu) => gpu.take_work().map(Task::Jobs),
            Model::Streams(gpu) => gpu.take_work().map(Box::new).map(Task::Streams),
        }
    }

    pub(crate) fn finish(&mut self, done: Done) {
        match (self, done) {
            (Model::Jobs(gpu), Done::Jobs(finished)) => gpu.finish(finished),
            (Model::Streams(gpu), Done::Streams(finished)) => gpu.finish(*finished),
            _ => {}
        }
    }

    /// Shows faults of accesses that wait for the driver; streams' end them.
    pub(crate) fn poll_faults(&mut self) {
        if let Model::Jobs(gpu) = self {
            gpu.poll_faults();
        }
    }
}
