// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts a job chain, waits for its end, and finds out how it ended.

use gpureplay_format::Opcode;
use gpureplay_format::layout::ActionEntry;
use mali_regs::gpu::{GPU_FAULT_ADDRESS_LO, GPU_FAULT_STATUS, GPU_INT_RAWSTAT, JS_PRESENT};
use mali_regs::job::{self, JOB_INT_CLEAR, JOB_INT_RAWSTAT};
use mali_regs::job_slot::{self, offset};
use mali_regs::mmu::MMU_INT_RAWSTAT;
use mali_regs::{GpuInterrupt, JobCommand, JobConfigFlags, JobStatus, address_space};

use super::{Failed, Session};
use crate::error::ErrorKind;
use crate::gpu::{Chain, Gpu, Lines};

/// Thread priority that drivers give a job.
const PRIORITY: u32 = 8 << 16;
/// How long to wait for an interrupt before asking the registers again: a lost interrupt costs no more than this.
const LONGEST_WAIT_US: u32 = 20_000;
/// Faults that the GPU reports on its own line.
const FAULTS: u32 = GpuInterrupt::FAULT.bits() | GpuInterrupt::MULTIPLE_FAULT.bits();

impl<G: Gpu> Session<'_, '_, G> {
    pub(super) fn submit(
        &mut self,
        slot: u8,
        config: u16,
        timeout_us: u32,
        chain: u64,
    ) -> Result<(), Failed> {
        let register = |register| offset(slot.into(), register);
        // One chain at a time needs no flag to tell it from another.
        let config = u32::from(config) & !JobConfigFlags::CHAIN_FLAG.bits();
        let (low, high) = (chain as u32, (chain >> 32) as u32);
        // The NEXT registers keep their values: only a change needs to be written.
        let next = u64::from(high) << 32 | u64::from(config) | u64::from(slot);
        if self.loaded != next {
            if self.gpu.read32(JS_PRESENT) >> slot & 1 == 0 {
                return self.fail(ErrorKind::NoSuchSlot(slot));
            }
            let config_next = PRIORITY | config | u32::from(self.address_space);
            let gpu = &mut self.gpu;
            gpu.write32(register(job_slot::AFFINITY_NEXT_LO), self.affinity);
            gpu.write32(register(job_slot::AFFINITY_NEXT_HI), 0);
            gpu.write32(register(job_slot::CONFIG_NEXT), config_next);
            gpu.write32(register(job_slot::HEAD_NEXT_HI), high);
            self.loaded = next;
        }
        self.gpu.write32(register(job_slot::HEAD_NEXT_LO), low);
        let chain = Chain {
            index: self.submits,
            head: chain,
            slot,
            space: self.address_space,
        };
        let allowed = self.gpu.before_chain(&chain);
        self.device(allowed)?;
        self.gpu
            .write32(register(job_slot::COMMAND_NEXT), JobCommand::Start as u32);
        self.submits = self.submits.wrapping_add(1);
        let ended = self.wait_job(slot, timeout_us);
        let result = if ended.is_ok() {
            Ok(())
        } else {
            Err(self.error)
        };
        self.gpu.after_chain(&chain, result);
        ended
    }

    fn wait_job(&mut self, slot: u8, timeout_us: u32) -> Result<(), Failed> {
        let done = job::done(slot.into());
        let failed = job::failed(slot.into());
        let start = self.gpu.now_us();
        loop {
            let passed = self.gpu.now_us().wrapping_sub(start);
            let late = passed > timeout_us.into();
            if !late {
                self.gpu
                    .wait_irq(Lines::ALL, timeout_us.min(LONGEST_WAIT_US));
            }
            // Asked even when no line was raised: interrupts get lost.
            let state = self.gpu.read32(JOB_INT_RAWSTAT);
            if state & failed != 0 {
                return self.job_fault(slot);
            }
            if state & done != 0 {
                self.gpu.write32(JOB_INT_CLEAR, done);
                return Ok(());
            }
            self.check_faults()?;
            if late {
                let (status, tail) = self.slot_state(slot);
                return self.fail(ErrorKind::JobTimeout {
                    slot,
                    status,
                    tail,
                    timeout_us,
                });
            }
        }
    }

    /// JS_STATUS and JS_TAIL.
    fn slot_state(&mut self, slot: u8) -> (u32, u64) {
        let register = |register| offset(slot.into(), register);
        self.status_at(register(job_slot::STATUS), register(job_slot::TAIL_LO))
    }

    /// Reports faults that keep a job from ever ending.
    fn check_faults(&mut self) -> Result<(), Failed> {
        self.check_mmu()?;
        if self.gpu.read32(GPU_INT_RAWSTAT) & FAULTS != 0 {
            let (status, address) = self.status_at(GPU_FAULT_STATUS, GPU_FAULT_ADDRESS_LO);
            return self.fail(ErrorKind::GpuFault { status, address });
        }
        Ok(())
    }

    fn check_mmu(&mut self) -> Result<(), Failed> {
        if self.gpu.read32(MMU_INT_RAWSTAT) == 0 {
            return Ok(());
        }
        let register = |register| address_space::offset(self.address_space.into(), register);
        let low = register(address_space::FAULTADDRESS_LO);
        let (status, address) = self.status_at(register(address_space::FAULTSTATUS), low);
        self.fail(ErrorKind::MmuFault { status, address })
    }

    fn job_fault(&mut self, slot: u8) -> Result<(), Failed> {
        let (status, tail) = self.slot_state(slot);
        // An MMU fault says which address it was; the job's own status then follows from it.
        self.check_mmu()?;
        let mut pointer = [0; 8];
        let fault_address = match self.gpu.read_memory(tail.wrapping_add(8), &mut pointer) {
            Ok(()) => u64::from_le_bytes(pointer),
            Err(_) => 0,
        };
        self.fail(ErrorKind::JobFault {
            slot,
            status,
            tail,
            fault_address,
        })
    }

    /// Reads a status, then an address of 64 bits, whose high half follows the low one.
    fn status_at(&mut self, status: u32, low: u32) -> (u32, u64) {
        let status = self.gpu.read32(status);
        let half = u64::from(self.gpu.read32(low));
        (status, u64::from(self.gpu.read32(low + 4)) << 32 | half)
    }

    /// Requires DONE in every header that was made ready for the chain that just ended.
    pub(super) fn check_headers(&mut self, since: &[ActionEntry]) -> Result<(), Failed> {
        for entry in since {
            if entry.op == Opcode::Submit.code() {
                break;
            }
            if entry.op != Opcode::Rearm.code() {
                continue;
            }
            let header = entry.d.get();
            let mut status = [0; 4];
            let read = self.gpu.read_memory(header, &mut status);
            self.device(read)?;
            let status = u32::from_le_bytes(status);
            if status & 0xff != JobStatus::DONE.0 {
                return self.fail(ErrorKind::JobNotDone { header, status });
            }
        }
        Ok(())
    }
}
