// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server as QEMU sees it.

#![allow(clippy::unwrap_used)]

mod hostile;
mod peer;

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use mali_facts::registers::{gpu, job, job_slot};
use rustix::event::{EventfdFlags, eventfd};

use peer::*;

#[test]
fn a_job_runs_in_guest_memory_and_interrupts() {
    let mut session = Session::start("job");
    let hello = b"\0\0\0\0{\"capabilities\":{}}\0";
    assert_eq!(session.call(VERSION, hello, &[]).unwrap()[..4], [0; 4]);
    let memory = guest_memory();
    session.map(&memory).unwrap();
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    session
        .words(SET_IRQS, &[20, 0x24, 0, 0, 1], &[event.as_fd()])
        .unwrap();

    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000);
    session.submit();
    wait_for(&event);
    assert_eq!(session.read32(job::JOB_INT_STAT), job::done(1));
    assert_eq!(word(&memory, 0x9000), 0x1122_3344_5566_7788);
    assert_eq!(word(&memory, 0x8000) as u32, 1, "status in the header");

    let log = fs::read_to_string(session.folder.join("registers.log")).unwrap();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[0], "R 0x0000 0x70930000 GPU_ID");
    assert!(
        lines.contains(&"W 0x18e0 0x00000001 JS1_COMMAND_NEXT"),
        "{log}"
    );

    // The line is still high.
    session.words(SET_IRQS, &[20, 0x11, 0, 0, 1], &[]).unwrap();
    wait_for(&event);

    session
        .words(DMA_UNMAP, &[24, 0, RAM as u32, 0, RAM_SIZE as u32, 0], &[])
        .unwrap();
    session.write32(job::JOB_INT_CLEAR, u32::MAX);
    session.words(SET_IRQS, &[20, 0x11, 0, 0, 1], &[]).unwrap();
    session.write32(job_slot::offset(1, job_slot::COMMAND_NEXT), 1);
    session.wait_until(mali_facts::registers::mmu::MMU_INT_RAWSTAT, u32::MAX);
    assert_eq!(
        session.read32(mali_facts::registers::mmu::MMU_INT_RAWSTAT),
        mali_facts::registers::mmu::bus_error(0)
    );
}

#[test]
fn caches_that_are_not_coherent_have_to_be_maintained() {
    let mut session = Session::start_with("apart", &["--non-coherent"]);
    let memory = guest_memory();
    session.map(&memory).unwrap();
    assert_eq!(session.read32(0xf000), 0x4341_4348);
    // The GPU finds no page table.
    session.submit();
    session.wait_until(mali_facts::registers::mmu::MMU_INT_RAWSTAT, u32::MAX);
    session.write32(
        gpu::GPU_CMD,
        mali_facts::registers::GpuCommand::HardReset as u32,
    );
    session.write32(mali_facts::registers::mmu::MMU_INT_CLEAR, u32::MAX);
    session.write32(job::JOB_INT_CLEAR, u32::MAX);

    session.maintain(1, RAM_SIZE);
    session.submit();
    session.wait_until(job::JOB_INT_RAWSTAT, u32::MAX);
    assert_eq!(session.read32(job::JOB_INT_RAWSTAT), job::done(1));
    assert_ne!(word(&memory, 0x9000), 0x1122_3344_5566_7788);
    session.maintain(2, 0xa000);
    assert_eq!(word(&memory, 0x9000), 0x1122_3344_5566_7788);
    // No longer maintained: both see it.
    session.maintain(4, 0xa000);
    session.write32(job::JOB_INT_CLEAR, u32::MAX);
    memory.write_all_at(&[0; 8], 0x9000).unwrap();
    memory.write_all_at(&[0; 8], 0x8000).unwrap();
    session.submit();
    session.wait_until(job::JOB_INT_RAWSTAT, u32::MAX);
    assert_eq!(word(&memory, 0x9000), 0x1122_3344_5566_7788);
}

#[test]
fn a_gpu_resets_as_often_as_it_is_told() {
    const SOFT: u32 = 1;
    let mut session = Session::start_with("resets", &["--power-domain"]);
    for (resets, expected) in [(0, [true; 3]), (1, [false; 3]), (3, [true, true, false])] {
        session.write32(0xf01c, resets);
        for (done, command) in expected.into_iter().zip([SOFT, 2, SOFT]) {
            session.write32(0x24, u32::MAX);
            session.write32(0x30, command);
            assert_eq!(session.read32(0x20) >> 8 & 1 == 1, done, "{resets}");
        }
    }
}

#[test]
fn a_gpu_without_power_answers_nothing() {
    let mut session = Session::start_with("power", &["--power-domain"]);
    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000);
    session.write32(0xf014, 0);
    assert_eq!((session.read32(0xf014), session.read32(0xf018)), (0, 0));
    assert_eq!(session.read32(gpu::GPU_ID), 0);
    session.write32(gpu::GPU_INT_MASK, 1);
    assert_eq!(session.read32(0xf018), 2);
    session.write32(0xf014, 1);
    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000);
    assert_eq!(session.read32(gpu::GPU_INT_MASK), 0);
    assert_eq!(session.read32(0xf018), 2);
    let mut session = Session::start("no-power");
    session.write32(0xf014, 0);
    assert_eq!(session.read32(0xf000), 0);
    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000);
}

#[test]
fn nonsense_is_answered_with_errors() {
    let mut session = Session::start("nonsense");
    for (command, words) in [
        (VERSION, vec![1]),
        (VERSION, vec![]),
        (DMA_MAP, vec![32, 3, 1, 0, 5, 0, 7, 0]),
        (REGION_READ, vec![0, 0, 0, u32::MAX]),
        (REGION_READ, vec![u32::MAX, u32::MAX, 0, 4]),
        (REGION_READ, vec![0, 0, 99, 4]),
        (REGION_WRITE, vec![0, 0, 0, 400, 1]),
        (SET_IRQS, vec![20, 0x24, 77, 0, 1]),
        (SET_IRQS, vec![20, 0xff, 0, 9, 9]),
        (11, vec![0; 4]),
        (999, vec![]),
    ] {
        let memory = guest_memory();
        let fds = if command == DMA_MAP {
            vec![memory.as_fd()]
        } else {
            vec![]
        };
        assert!(
            session.words(command, &words, &fds).is_err(),
            "{command} {words:x?}"
        );
    }
    let memory = guest_memory();
    session.map(&memory).unwrap();
    assert!(session.map(&memory).is_err(), "the same range twice");
    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000, "still there");
    session.stream.write_all(&[0xff; 16]).unwrap();
    assert_eq!(session.server.wait().unwrap().code(), Some(1));
}

#[test]
fn the_server_ends_with_its_guest() {
    let mut session = Session::start("end");
    session.stream.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(session.server.wait().unwrap().code(), Some(0));
    assert!(!session.folder.join("gpu.sock").exists());
}
