// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts a job chain and awaits its end.

use mali_facts::registers::gpu::{
    GPU_FAULT_ADDRESS_LO, GPU_FAULT_STATUS, GPU_INT_RAWSTAT, JS_PRESENT,
};
use mali_facts::registers::job::{self, JOB_INT_CLEAR, JOB_INT_RAWSTAT};
use mali_facts::registers::job_slot::{self, offset};
use mali_facts::registers::mmu::MMU_INT_RAWSTAT;
use mali_facts::registers::{JobCommand, JobConfigFlags, JobStatus, address_space};

use super::State;
use super::power::FAULTS;
use gpureplay_core::ErrorKind;
use gpureplay_core::family::{Driver, Failed};
use gpureplay_core::gpu::{Gpu, Lines, Submission};

/// As drivers have it.
const PRIORITY: u32 = 8 << 16;
/// Interrupts get lost: after this wait, registers are read.
const LONGEST_WAIT_US: u32 = 20_000;

pub(super) fn submit<G: Gpu>(
    at: &mut Driver<G, State>,
    chain: &Submission<'_>,
) -> Result<(), Failed> {
    let slot = chain.queue();
    let register = |register| offset(slot.into(), register);
    // With one chain at a time, no stop needs the flag.
    let config = u32::from(chain.configuration()) & !JobConfigFlags::CHAIN_FLAG.bits();
    let (low, high) = (chain.head() as u32, (chain.head() >> 32) as u32);
    // NEXT registers keep their values: write only changes.
    let next = u64::from(high) << 32 | u64::from(config) | u64::from(slot);
    if at.state.loaded != next {
        if at.gpu.read32(JS_PRESENT) >> slot & 1 == 0 {
            return at.fail(ErrorKind::NoSuchSlot(slot));
        }
        let config_next = PRIORITY | config | u32::from(at.space);
        let gpu = &mut at.gpu;
        gpu.write32(register(job_slot::AFFINITY_NEXT_LO), at.state.affinity);
        gpu.write32(register(job_slot::AFFINITY_NEXT_HI), 0);
        gpu.write32(register(job_slot::CONFIG_NEXT), config_next);
        gpu.write32(register(job_slot::HEAD_NEXT_HI), high);
        at.state.loaded = next;
    }
    at.gpu.write32(register(job_slot::HEAD_NEXT_LO), low);
    at.gpu
        .write32(register(job_slot::COMMAND_NEXT), JobCommand::Start as u32);
    wait(at, slot, chain.timeout_us())
}

fn wait<G: Gpu>(at: &mut Driver<G, State>, slot: u8, timeout_us: u32) -> Result<(), Failed> {
    let done = job::done(slot.into());
    let failed = job::failed(slot.into());
    let start = at.gpu.now_us();
    loop {
        let passed = at.gpu.now_us().wrapping_sub(start);
        let late = passed > timeout_us.into();
        if !late {
            at.gpu.wait_irq(Lines::ALL, timeout_us.min(LONGEST_WAIT_US));
        }
        let state = at.gpu.read32(JOB_INT_RAWSTAT);
        if state & failed != 0 {
            return job_fault(at, slot);
        }
        if state & done != 0 {
            at.gpu.write32(JOB_INT_CLEAR, done);
            return Ok(());
        }
        check_faults(at)?;
        if late {
            let (status, tail) = slot_state(at, slot);
            return at.fail(ErrorKind::JobTimeout {
                slot,
                status,
                tail,
                timeout_us,
            });
        }
    }
}

fn slot_state<G: Gpu>(at: &mut Driver<G, State>, slot: u8) -> (u32, u64) {
    let register = |register| offset(slot.into(), register);
    status_at(at, register(job_slot::STATUS), register(job_slot::TAIL_LO))
}

/// Faults with which a job may never end.
fn check_faults<G: Gpu>(at: &mut Driver<G, State>) -> Result<(), Failed> {
    check_mmu(at)?;
    if at.gpu.read32(GPU_INT_RAWSTAT) & FAULTS != 0 {
        let (status, address) = status_at(at, GPU_FAULT_STATUS, GPU_FAULT_ADDRESS_LO);
        return at.fail(ErrorKind::GpuFault { status, address });
    }
    Ok(())
}

fn check_mmu<G: Gpu>(at: &mut Driver<G, State>) -> Result<(), Failed> {
    if at.gpu.read32(MMU_INT_RAWSTAT) == 0 {
        return Ok(());
    }
    let space = at.space.into();
    let register = |register| address_space::offset(space, register);
    let low = register(address_space::FAULTADDRESS_LO);
    let (status, address) = status_at(at, register(address_space::FAULTSTATUS), low);
    at.fail(ErrorKind::MmuFault { status, address })
}

fn job_fault<G: Gpu>(at: &mut Driver<G, State>, slot: u8) -> Result<(), Failed> {
    let (status, tail) = slot_state(at, slot);
    // The MMU has the fault's address; the job's status only follows from it.
    check_mmu(at)?;
    let mut pointer = [0; 8];
    let fault_address = match at.gpu.read_memory(tail.wrapping_add(8), &mut pointer) {
        Ok(()) => u64::from_le_bytes(pointer),
        Err(_) => 0,
    };
    at.fail(ErrorKind::JobFault {
        slot,
        status,
        tail,
        fault_address,
    })
}

fn status_at<G: Gpu>(at: &mut Driver<G, State>, status: u32, low: u32) -> (u32, u64) {
    let status = at.gpu.read32(status);
    let half = u64::from(at.gpu.read32(low));
    (status, u64::from(at.gpu.read32(low + 4)) << 32 | half)
}

pub(super) fn done<G: Gpu>(at: &mut Driver<G, State>, header: u64) -> Result<(), Failed> {
    let mut status = [0; 4];
    let read = at.gpu.read_memory(header, &mut status);
    at.take(read)?;
    let status = u32::from_le_bytes(status);
    if status & 0xff != JobStatus::DONE.0 {
        return at.fail(ErrorKind::JobNotDone { header, status });
    }
    Ok(())
}
