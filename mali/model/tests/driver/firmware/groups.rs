// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of streams.

use mali_facts::firmware::interface::{
    GLOBAL_INPUT, GLOBAL_OUTPUT, global, group, group::State, group_input, group_output, stream,
    stream_output,
};
use mali_facts::firmware::registers::{JOB_INT_CLEAR, JOB_INT_RAWSTAT};

use super::host::{Host, positions, suspend_buffer, sync_object};
use crate::streams::pair;

/// SYNC_WAIT64: value at r6 above r2.
const WAIT: u64 = 0x35 << 56 | 6 << 40 | 2 << 32 | 1 << 28;

#[test]
fn a_job_in_the_ring_ends_with_its_sync_object_and_events() {
    let mut host = Host::started();
    host.start_group(2, 3);
    assert_eq!(
        host.get(group_output(2) + group::STATE),
        1,
        "nothing to do yet"
    );
    host.device.write32(JOB_INT_CLEAR, u32::MAX);
    host.put(group_input(2), host.get(group_output(2)));
    let global = host.get(GLOBAL_OUTPUT);
    host.put(GLOBAL_INPUT, global & !global::HALT | global::IDLE_ENABLE);
    host.job(2, 1, 256);
    assert_eq!(host.get(group_output(2) + group::STATE), 0);
    assert_eq!(host.sync(2, 1), (0, 0), "nothing runs at a doorbell");
    host.device.run();
    host.shared.expect_sums(256);
    assert_eq!(host.sync(2, 1), (1, 0));
    let place = positions(2, 1);
    assert_eq!(host.firmware.read64(place), host.firmware.read64(place + 8));
    let events = host.get(group_input(2)) ^ host.get(group_output(2));
    assert_eq!(events, group::SYNC_UPDATE | group::IDLE);
    let events = host.get(GLOBAL_INPUT) ^ host.get(GLOBAL_OUTPUT);
    assert_eq!(events & global::IDLE, global::IDLE);
    assert_eq!(host.device.read32(JOB_INT_RAWSTAT) & 0xff, 1 << 2);
    for count in 2..200 {
        host.job(2, 1, 16);
        host.device.run();
        assert_eq!(host.sync(2, 1), (count, 0));
    }
    assert!(host.firmware.read64(place) > 0x2000);
}

#[test]
fn a_stream_that_waits_is_suspended_and_goes_on_in_another_slot() {
    let mut host = Host::started();
    host.start_group(0, 1);
    host.start_group(1, 1);
    let other = sync_object(1, 0);
    let kept = sync_object(7, 7);
    // STORE_MULTIPLE of r8, set before the wait.
    let store = 0x15 << 56 | 8 << 48 | 10 << 40 | 1 << 16;
    host.submit(
        0,
        0,
        &[
            pair(6, other),
            pair(2, 0),
            pair(8, 99),
            pair(10, kept),
            WAIT,
            store,
        ],
    );
    host.ring(1);
    host.device.run();
    let output = stream_output(0, 0);
    assert_eq!(host.get(output + stream::BLOCKED), 3);
    assert_eq!(host.get(output + stream::WAIT_ADDRESS), other as u32);
    assert_eq!(host.get(output + stream::WAIT), 1 << 31 | 1 << 30 | 1 << 24);
    assert_eq!(host.get(group_output(0) + group::STATE), 1);
    assert!(host.ask(0, State::Suspended));
    assert_eq!(host.sync(0, 0), (0, 0));
    // Another group takes its slot: it gets the last one.
    host.prepare_group(0, 1, suspend_buffer(3));
    assert!(host.ask(0, State::Started));
    host.prepare_group(7, 1, suspend_buffer(0));
    for at in 0..2 {
        host.prepare_stream(7, at, 0);
    }
    assert!(host.ask(7, State::Resumed));
    host.device.run();
    assert_eq!(host.shared.read32(kept), 0);
    host.job(1, 0, 16);
    host.device.run();
    assert_eq!(host.shared.read32(kept), 99);
    assert_eq!(
        host.sync(0, 0),
        (1, 0),
        "the sync object that its ring names"
    );
}

#[test]
fn groups_do_not_touch_each_other() {
    let mut host = Host::started();
    for number in 0..8 {
        host.start_group(number, 1 + number % 7);
    }
    for round in 1..4 {
        for number in 0..8 {
            for at in 0..2 {
                host.submit(number, at, &[pair(6, u64::from(number))]);
            }
            host.ring(number + 1);
        }
        host.device.run();
        for number in 0..8 {
            assert_eq!(
                [host.sync(number, 0), host.sync(number, 1)],
                [(round, 0); 2]
            );
        }
    }
    assert!(host.ask(3, State::Terminated));
    host.submit(3, 0, &[pair(6, 0)]);
    host.ring(4);
    assert_eq!(host.device.run(), 0, "the slot is free");
}

#[test]
fn a_state_is_taken_when_the_piece_that_runs_has_ended() {
    let mut host = Host::started();
    host.start_group(0, 1);
    host.job(0, 0, 64);
    let work = host.device.take_work().unwrap();
    assert!(!host.ask(0, State::Suspended), "a thread still runs it");
    assert!(host.device.take_work().is_none());
    host.device.finish(work.execute());
    assert_eq!(host.state(0), State::Suspended as u32);
    assert_eq!(
        host.sync(0, 0),
        (0, 0),
        "it was stopped before its first instruction"
    );
    assert!(host.ask(0, State::Resumed));
    host.device.run();
    host.shared.expect_sums(64);
    assert_eq!(host.sync(0, 0), (1, 0));
}

#[test]
fn a_loop_without_end_is_cut_reported_and_terminated() {
    let mut host = Host::started();
    host.put(GLOBAL_INPUT + global::PROGRESS_TIMER, 1);
    host.start_group(0, 1);
    let forever = 0x16 << 56 | 6 << 28 | 0xffff;
    host.submit(0, 0, &[forever]);
    host.ring(1);
    for _ in 0..3 {
        let finished = host.device.take_work().unwrap().execute();
        assert!(finished.is_cut());
        host.device.finish(finished);
    }
    let events = host.get(group_input(0)) ^ host.get(group_output(0));
    assert_eq!(events & group::NO_PROGRESS, group::NO_PROGRESS);
    let work = host.device.take_work().unwrap();
    assert!(!host.ask(0, State::Terminated));
    host.device.finish(work.execute());
    assert_eq!(host.state(0), 0);
    assert!(host.device.take_work().is_none());
}
