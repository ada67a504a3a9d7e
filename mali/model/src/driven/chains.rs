// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU with jobs.

use std::sync::Arc;

use gpureplay_memory::Bus;
use mali_facts::page_table::Format;
use mali_facts::registers::{
    AddressSpaceCommand, GpuCommand, JobCommand, JobStatus, TranslationTable, address_space, gpu,
    job, job_slot, mmu,
};

use super::tables::{BASE, Tables};
use super::{Map, NoRoom, Space};
use crate::{Gpu, Options, Profile};

const SPACE: u32 = 0;
/// As panfrost writes it, for [`SPACE`].
const JOB_CONFIG: u32 = 0x8_7300;

/// Takes chains as panfrost does.
pub struct DrivenGpu<B: Bus> {
    gpu: Gpu<B>,
    space: Option<Space>,
}

impl<B: Bus> DrivenGpu<B> {
    /// A powered GPU. Page tables lie at [`BASE`](super::BASE) of the bus.
    pub fn new(profile: &'static Profile, bus: Arc<B>, options: Options) -> Self {
        let mut gpu = Gpu::new(profile, bus, options);
        for (present, on) in [
            (gpu::L2_PRESENT_LO, gpu::L2_PWRON_LO),
            (gpu::SHADER_PRESENT_LO, gpu::SHADER_PWRON_LO),
            (gpu::TILER_PRESENT_LO, gpu::TILER_PWRON_LO),
        ] {
            for half in [0, 4] {
                let units = gpu.read32(present + half);
                gpu.write32(on + half, units);
            }
        }
        // The driver starts it for jobs that ask, not known here.
        gpu.write32(gpu::GPU_CMD, GpuCommand::CycleCountStart as u32);
        Self { gpu, space: None }
    }

    /// Reads a register.
    pub fn read32(&mut self, register: u32) -> u32 {
        self.gpu.read32(register)
    }

    /// Runs a chain on job slot 0 (`fragment`) or 1. Equal spaces have equal maps. Inside: why it did not end well.
    ///
    /// # Errors
    /// Page tables do not fit.
    pub fn run(
        &mut self,
        space: Space,
        maps: impl IntoIterator<Item = Map>,
        chain: u64,
        fragment: bool,
    ) -> Result<Result<(), JobStatus>, NoRoom> {
        if self.space != Some(space) {
            self.space = None;
            self.map(maps)?;
            self.space = Some(space);
        }
        let slot = u32::from(!fragment);
        let register = |register| job_slot::offset(slot, register);
        let cores = self.gpu.profile().shader_present;
        self.gpu.renew_work();
        self.write64(register(job_slot::HEAD_NEXT_LO), chain);
        self.write64(register(job_slot::AFFINITY_NEXT_LO), cores);
        self.gpu
            .write32(register(job_slot::CONFIG_NEXT), JOB_CONFIG);
        let start = JobCommand::Start as u32;
        self.gpu.write32(register(job_slot::COMMAND_NEXT), start);
        self.gpu.run();
        let status = JobStatus(self.gpu.read32(register(job_slot::STATUS)));
        self.gpu.write32(job::JOB_INT_CLEAR, u32::MAX);
        self.gpu.write32(mmu::MMU_INT_CLEAR, u32::MAX);
        Ok(match status {
            JobStatus::DONE => Ok(()),
            status => Err(status),
        })
    }

    fn map(&mut self, maps: impl IntoIterator<Item = Map>) -> Result<(), NoRoom> {
        Tables::of(&**self.gpu.bus(), Format::Lpae, maps)?;
        let root = TranslationTable::legacy(BASE, true).0;
        let register = |register| address_space::offset(SPACE, register);
        self.write64(register(address_space::TRANSTAB_LO), root);
        let update = AddressSpaceCommand::Update as u32;
        self.gpu.write32(register(address_space::COMMAND), update);
        Ok(())
    }

    fn write64(&mut self, low: u32, value: u64) {
        self.gpu.write32(low, value as u32);
        self.gpu.write32(low + 4, (value >> 32) as u32);
    }
}
