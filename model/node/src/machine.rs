// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU: parameters and chains.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mali_facts::page_table::Format;
use mali_facts::panfrost::parameter;
use mali_facts::registers::{
    AddressSpaceCommand, GpuCommand, JobCommand, JobStatus, TranslationTable, address_space, gpu,
    job, job_slot, mmu,
};
use mali_memory::Mapped;
use mali_model::{Gpu, Level, Log, Options, Profile};

use crate::errno::{Errno, Result};
use crate::faults::tell;
use crate::object::{Memory, Object};
use crate::tables::{Rights, Tables};

/// Clauses per chain: about three minutes. The kernel's watchdog has half a second of a GPU.
pub(crate) const WORK_LIMIT: u64 = 1 << 32;
const SPACE: u32 = 0;
/// As panfrost writes it, for [`SPACE`].
const JOB_CONFIG: u32 = 0x8_7300;
/// Ticks per second for shaders and GET_PARAM.
pub(crate) const TIMESTAMP_FREQUENCY: u64 = 62_500_000;

pub(crate) type Mappings = Vec<(u64, Arc<Object>)>;

pub(crate) struct Submission {
    /// File and change count: equal numbers, equal page tables.
    pub(crate) space: (u64, u64),
    pub(crate) mappings: Arc<Mappings>,
    /// The first job.
    pub(crate) chain: u64,
    pub(crate) fragment: bool,
}

pub(crate) struct Machine {
    gpu: Gpu<Mapped>,
    memory: Arc<Memory>,
    space: Option<(u64, u64)>,
}

pub(crate) struct Faults;

impl Log for Faults {
    fn level(&self) -> Level {
        Level::Error
    }

    fn write(&self, level: Level, message: fmt::Arguments<'_>) {
        tell(format_args!("{level}: {message}"));
    }
}

impl Machine {
    pub(crate) fn new(profile: &'static Profile, memory: Arc<Memory>) -> Self {
        let options = Options {
            work_limit: Some(WORK_LIMIT),
            log: Arc::new(Faults),
            ..Options::default()
        };
        let mut model = Gpu::new(profile, memory.bus().clone(), options);
        for (present, on) in [
            (gpu::L2_PRESENT_LO, gpu::L2_PWRON_LO),
            (gpu::SHADER_PRESENT_LO, gpu::SHADER_PWRON_LO),
            (gpu::TILER_PRESENT_LO, gpu::TILER_PWRON_LO),
        ] {
            for half in [0, 4] {
                let units = model.read32(present + half);
                model.write32(on + half, units);
            }
        }
        // The driver starts it for jobs that ask, not known here.
        model.write32(gpu::GPU_CMD, GpuCommand::CycleCountStart as u32);
        Self {
            gpu: model,
            memory,
            space: None,
        }
    }

    /// Parameter by its number in `drm_panfrost_param`.
    pub(crate) fn parameter(&mut self, which: u32) -> Option<u64> {
        let word = |gpu: &mut Gpu<Mapped>, register| u64::from(gpu.read32(register));
        let wide = |gpu: &mut Gpu<Mapped>, low| word(gpu, low) | word(gpu, low + 4) << 32;
        let model = &mut self.gpu;
        if let Some(shown) = parameter::shown().find(|it| it.number == which) {
            return Some(match shown.wide {
                true => wide(model, shown.register),
                false => word(model, shown.register),
            });
        }
        Some(match which {
            parameter::PRODUCT => word(model, gpu::GPU_ID) >> 16,
            parameter::REVISION => word(model, gpu::GPU_ID) & 0xffff,
            parameter::CORE_GROUPS => wide(model, gpu::L2_PRESENT_LO).count_ones().into(),
            parameter::TIMESTAMP => wide(model, gpu::TIMESTAMP_LO),
            parameter::TIMESTAMP_FREQUENCY => TIMESTAMP_FREQUENCY,
            // It is coherent.
            parameter::SELECTED_COHERENCY => parameter::COHERENT,
            _ => return None,
        })
    }

    /// The slot's status.
    ///
    /// # Errors
    /// The page tables do not fit.
    pub(crate) fn run(&mut self, submission: &Submission) -> Result<JobStatus> {
        if self.space != Some(submission.space) {
            self.space = None;
            self.map(&submission.mappings).ok_or(Errno::NO_MEMORY)?;
            self.space = Some(submission.space);
        }
        let slot = u32::from(!submission.fragment);
        let cores = self.gpu.profile().shader_present;
        self.gpu.renew_work();
        self.write64(
            job_slot::offset(slot, job_slot::HEAD_NEXT_LO),
            submission.chain,
        );
        self.write64(job_slot::offset(slot, job_slot::AFFINITY_NEXT_LO), cores);
        self.gpu
            .write32(job_slot::offset(slot, job_slot::CONFIG_NEXT), JOB_CONFIG);
        self.gpu.write32(
            job_slot::offset(slot, job_slot::COMMAND_NEXT),
            JobCommand::Start as u32,
        );
        self.gpu.run();
        let status = self.gpu.read32(job_slot::offset(slot, job_slot::STATUS));
        self.gpu.write32(job::JOB_INT_CLEAR, u32::MAX);
        self.gpu.write32(mmu::MMU_INT_CLEAR, u32::MAX);
        Ok(JobStatus(status))
    }

    fn map(&mut self, mappings: &Mappings) -> Option<()> {
        let mut tables = Tables::new(self.memory.bus(), Format::Lpae)?;
        for (va, object) in mappings {
            let rights = Rights {
                write: true,
                execute: object.executable,
            };
            tables.map(*va, object.address, object.size, rights)?;
        }
        let root = TranslationTable::legacy(tables.root(), true).0;
        self.write64(
            address_space::offset(SPACE, address_space::TRANSTAB_LO),
            root,
        );
        let command = address_space::offset(SPACE, address_space::COMMAND);
        self.gpu
            .write32(command, AddressSpaceCommand::Update as u32);
        Some(())
    }

    fn write64(&mut self, low: u32, value: u64) {
        self.gpu.write32(low, value as u32);
        self.gpu.write32(low + 4, (value >> 32) as u32);
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}
