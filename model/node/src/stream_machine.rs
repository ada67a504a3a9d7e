// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU with command streams.

use std::sync::Arc;

use mali_facts::StreamGpu;
use mali_facts::page_table::Format;
use mali_facts::panthor::{CsifInfo, GpuInfo, TimestampInfo};
use mali_memory::Mapped;
use mali_model::{Options, Sequencer, StreamFault, Streams};

use crate::errno::{Errno, Result};
use crate::machine::{Faults, TIMESTAMP_FREQUENCY, WORK_LIMIT};
use crate::object::Memory;
use crate::tables::{BASE, Tables};
use crate::vm::Regions;

pub(crate) struct StreamMachine {
    streams: Streams<Mapped>,
    memory: Arc<Memory>,
    space: Option<(u64, u64)>,
}

impl StreamMachine {
    pub(crate) fn new(gpu: &'static StreamGpu, memory: Arc<Memory>) -> Self {
        let options = Options {
            work_limit: Some(WORK_LIMIT),
            log: Arc::new(Faults),
            ..Options::default()
        };
        Self {
            streams: Streams::new(gpu, memory.bus().clone(), options),
            memory,
            space: None,
        }
    }

    /// `space`: equal numbers, equal page tables.
    ///
    /// # Errors
    /// The page tables do not fit.
    pub(crate) fn run(
        &mut self,
        space: (u64, u64),
        regions: &Regions,
        queue: &mut Sequencer,
        stream: (u64, u32),
    ) -> Result<std::result::Result<(), StreamFault>> {
        if self.space != Some(space) {
            self.space = None;
            self.map(regions).ok_or(Errno::NO_MEMORY)?;
            self.space = Some(space);
        }
        self.streams.renew_work();
        Ok(self.streams.run(queue, BASE, stream.0, stream.1))
    }

    fn map(&self, regions: &Regions) -> Option<()> {
        let mut tables = Tables::new(self.memory.bus(), Format::AArch64)?;
        for (va, region) in regions.iter() {
            let address = region.object.address + region.offset;
            tables.map(va, address, region.size, region.rights)?;
        }
        Some(())
    }

    pub(crate) fn gpu(&self) -> &'static StreamGpu {
        self.streams.gpu()
    }

    pub(crate) fn gpu_info(&self) -> GpuInfo {
        let gpu = self.streams.gpu();
        let profile = &gpu.profile;
        GpuInfo {
            gpu_id: profile.gpu_id.0,
            gpu_rev: 0,
            csf_id: gpu.csf_id,
            l2_features: profile.l2_features,
            tiler_features: profile.tiler_features,
            mem_features: profile.mem_features,
            mmu_features: profile.mmu_features,
            thread_features: profile.thread_features,
            max_threads: profile.max_threads,
            max_workgroup_size: profile.max_workgroup_size,
            max_barrier_size: profile.max_barrier_size,
            coherency_features: profile.coherency_features,
            texture_features: profile.texture_features,
            as_present: profile.as_present,
            shader_present: profile.shader_present,
            l2_present: profile.l2_present,
            tiler_present: profile.tiler_present,
            core_features: profile.core_features,
            ..GpuInfo::default()
        }
    }

    pub(crate) fn csif_info(&self) -> CsifInfo {
        let gpu = self.streams.gpu();
        CsifInfo {
            groups: gpu.groups,
            streams: gpu.streams,
            registers: gpu.registers,
            scoreboards: gpu.scoreboards,
            kernel_registers: StreamGpu::KERNEL_REGISTERS,
            pad: 0,
        }
    }

    pub(crate) fn timestamp_info(&self) -> TimestampInfo {
        TimestampInfo {
            frequency: TIMESTAMP_FREQUENCY,
            current: self.streams.timestamp(),
            offset: 0,
        }
    }
}
