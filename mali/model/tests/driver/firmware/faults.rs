// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults of streams, and senseless requests.

use mali_facts::StreamStatus;
use mali_facts::firmware::interface::{
    GLOBAL_INPUT, SECTION, SECTION_SIZE, group, group::State, group_input, group_output, stream,
    stream_input, stream_output,
};
use mali_facts::firmware::registers::{GPU_COMMAND, MCU_CONTROL, MCU_STATUS};
use mali_facts::registers::{address_space, mmu};

use super::host::{Host, RING_SIZE, positions, suspend_buffer};
use crate::machine::{CODE, JOBS, NOWHERE};
use crate::streams::{dispatch, pair};

fn events(host: &Host, number: u32, at: u32) -> (u32, u32) {
    let stream = host.get(stream_input(number, at)) ^ host.get(stream_output(number, at));
    let events = group::STREAM_EVENTS;
    let group = host.get(group_input(number) + events) ^ host.get(group_output(number) + events);
    (stream, group)
}

#[test]
fn an_instruction_that_does_not_exist_is_fatal() {
    let mut host = Host::started();
    host.start_group(0, 1);
    host.submit(0, 1, &[pair(6, 0), 0xff << 56]);
    host.ring(1);
    host.device.run();
    assert_eq!(events(&host, 0, 1), (stream::FATAL_EVENT, 2));
    let output = stream_output(0, 1);
    let fatal = host.get(output + stream::FATAL);
    assert_eq!(fatal, StreamStatus::CS_INVALID_INSTRUCTION.0);
    let place = host.firmware.read64((output + stream::FATAL_INFO).into());
    assert_eq!(host.shared.read64(place), 0xff << 56);
    host.ring(1);
    assert_eq!(host.device.run(), 0);
    host.job(0, 0, 32);
    host.device.run();
    assert_eq!([host.sync(0, 0), host.sync(0, 1)], [(1, 0), (0, 0)]);
    assert!(host.ask(0, State::Suspended));
    assert!(host.ask(0, State::Resumed));
    assert_eq!(events(&host, 0, 1).0, stream::FATAL_EVENT);
}

#[test]
fn a_fault_of_a_shader_reaches_the_sync_object_and_ends_at_the_barrier() {
    let mut host = Host::started();
    host.start_group(0, 1);
    host.shared.compute_job(JOBS, 64, 0);
    let good = host.shared.read64(CODE);
    host.shared.write64(CODE, u64::MAX);
    host.submit(0, 0, &dispatch(64));
    host.ring(1);
    host.device.run();
    assert_eq!(events(&host, 0, 0), (stream::FAULT_EVENT, 1));
    let fault = host.get(stream_output(0, 0) + stream::FAULT);
    assert_eq!(StreamStatus(fault).to_string(), "INSTR_INVALID_ENC");
    assert_eq!(host.sync(0, 0), (0, 0), "it waits for the driver");
    host.put(stream_input(0, 0), host.get(stream_output(0, 0)));
    let doorbells = host.get(group_output(0) + group::DOORBELLS) ^ 1;
    host.put(group_input(0) + group::DOORBELLS, doorbells);
    host.ring_group(0);
    host.device.run();
    assert_eq!(host.sync(0, 0), (1, fault));
    host.shared.write64(CODE, good);
    host.job(0, 0, 64);
    host.device.run();
    host.shared.expect_sums(64);
}

#[test]
fn a_page_fault_is_shown_by_the_address_space_too() {
    let mut host = Host::started();
    host.start_group(0, 5);
    // STORE_MULTIPLE of r2 to nowhere.
    let words = [
        pair(6, NOWHERE),
        pair(2, 7),
        0x15 << 56 | 2 << 48 | 6 << 40 | 1 << 16,
    ];
    host.submit(0, 0, &words);
    host.ring(1);
    host.device.run();
    assert_eq!(events(&host, 0, 0).0, stream::FATAL_EVENT);
    let output = stream_output(0, 0);
    let fatal = host.get(output + stream::FATAL);
    assert_eq!(fatal, StreamStatus::CS_BUS_FAULT.0);
    assert_eq!(host.device.read32(mmu::MMU_INT_RAWSTAT), 1 << 5);
    let low = address_space::offset(5, address_space::FAULTADDRESS_LO);
    let place = [low, low + 4].map(|register| u64::from(host.device.read32(register)));
    assert_eq!(place[0] | place[1] << 32, NOWHERE);
}

#[test]
fn buffers_and_rings_that_make_no_sense_are_fatal() {
    let mut host = Host::started();
    host.prepare_group(0, 1, suspend_buffer(5));
    host.prepare_stream(0, 0, 0);
    assert!(host.ask(0, State::Resumed));
    let fatal = host.get(stream_output(0, 0) + stream::FATAL);
    assert_eq!(fatal, StreamStatus::FIRMWARE_INTERNAL_ERROR.0);
    for (offset, value) in [
        (stream::RING_SIZE, 0x1800),
        (stream::RING_SIZE, 0),
        (stream::RING, 4),
    ] {
        host.prepare_stream(1, 0, 1);
        host.put(stream_input(1, 0) + offset, value);
        host.prepare_group(1, 1, suspend_buffer(1));
        host.firmware.write64(positions(1, 0), RING_SIZE / 2);
        assert!(host.ask(1, State::Started));
        host.device.run();
        let fatal = host.get(stream_output(1, 0) + stream::FATAL);
        assert_eq!(
            fatal,
            StreamStatus::CS_CONFIG_FAULT.0,
            "{offset:#x} {value:#x}"
        );
        assert!(host.ask(1, State::Terminated));
    }
}

#[test]
fn firmware_without_its_memory_cannot_go_on() {
    let mut host = Host::off();
    host.device.write32(MCU_CONTROL, 2);
    assert_eq!(host.device.read32(MCU_STATUS), 3);
    assert_eq!(host.device.read32(mmu::MMU_INT_RAWSTAT), 1);
    host.device.write32(GPU_COMMAND, 0x101);
    host.boot();
    host.start_group(0, 1);
    host.job(0, 0, 64);
    host.put(stream_input(0, 0) + stream::RING_OUTPUT, NOWHERE as u32);
    host.device.run();
    assert_eq!(host.device.read32(MCU_STATUS), 3);
    host.ring(1);
    assert_eq!(host.device.run(), 0);
}

#[test]
fn no_words_of_a_driver_stop_the_model() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..40 {
        let mut host = Host::started();
        host.start_group(0, 1);
        host.start_group(1, 2);
        for _ in 0..60 {
            let offset = random.u32(..SECTION + SECTION_SIZE - GLOBAL_INPUT);
            let at = GLOBAL_INPUT + (offset & !3);
            let value = match random.u8(..3) {
                0 => random.u32(..),
                1 => 1 << random.u32(..32),
                _ => JOBS as u32 + random.u32(..0x1_0000),
            };
            host.put(at, value);
            host.submit_ring(
                0,
                0,
                &[
                    random.u64(..),
                    pair(6, random.u64(..) >> 20),
                    random.u64(..) >> 3,
                ],
            );
            host.ring(random.u32(..10));
            host.ring_group(random.u32(..8));
            for _ in 0..4 {
                if let Some(work) = host.device.take_work() {
                    host.device.finish(work.execute());
                }
            }
        }
        host.device.write32(GPU_COMMAND, 0x101);
        assert_eq!(host.device.read32(MCU_STATUS), 0);
        assert!(host.device.take_work().is_none());
    }
}
