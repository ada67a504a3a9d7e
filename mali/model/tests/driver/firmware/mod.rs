// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware's interface on a Mali-G610.

mod faults;
mod groups;
mod host;

use mali_facts::firmware::interface::{
    GLOBAL_INPUT, GLOBAL_OUTPUT, SECTION, global, group, group_control, stream, stream_control,
};
use mali_facts::firmware::registers::{
    GLOBAL_INTERFACE, GPU_COMMAND, JOB_INT_CLEAR, JOB_INT_MASK, JOB_INT_RAWSTAT, MCU_CONTROL,
    MCU_STATUS, MCU_STATUS_CHANGED,
};
use mali_facts::registers::{GpuInterrupt, gpu};

use self::host::Host;

#[test]
fn a_driver_finds_the_gpu_and_firmware_that_has_started() {
    let mut host = Host::off();
    assert_eq!(host.device.read32(gpu::GPU_ID), 0xa867_0005);
    assert_eq!(host.device.read32(0x1c), 0x040a_0412);
    host.device.write32(gpu::GPU_INT_MASK, 0xffff_ffff);
    host.device.write32(GPU_COMMAND, 0x101);
    let done = GpuInterrupt::RESET_COMPLETED.bits();
    assert_eq!(host.device.read32(gpu::GPU_INT_STAT), done);
    assert!(host.device.irq().gpu, "the interrupt that ends a reset");
    host.boot();
    assert_eq!(host.device.read32(JOB_INT_RAWSTAT), GLOBAL_INTERFACE);
    let changed = host.device.read32(gpu::GPU_INT_RAWSTAT) & MCU_STATUS_CHANGED;
    assert_eq!(changed, MCU_STATUS_CHANGED);
    let word = |at: u32| host.firmware.read32(at.into());
    assert_eq!(word(SECTION + global::VERSION) >> 24, 1);
    assert_eq!(word(SECTION + global::GROUPS), 8);
    for number in 0..8 {
        let control = group_control(8, number);
        assert_eq!(
            control,
            SECTION + 0x1000 + word(SECTION + global::GROUP_STRIDE) * number
        );
        assert_eq!(word(control + group::STREAMS), 8);
        assert_ne!(word(control + group::PROTECTED_SUSPEND_SIZE), 0);
        for at in 0..8 {
            let features = word(stream_control(8, number, at) + stream::FEATURES);
            assert_eq!(features, 0x7_085f);
        }
    }
}

#[test]
fn requests_are_acknowledged_and_interrupt_only_where_they_may() {
    let mut host = Host::started();
    let ping = 1 << 8;
    for (mask, raised) in [(0, 0), (ping, GLOBAL_INTERFACE)] {
        host.device.write32(JOB_INT_CLEAR, u32::MAX);
        host.put(GLOBAL_INPUT + global::INTERRUPTS, mask);
        let acknowledged = host.get(GLOBAL_OUTPUT);
        host.put(GLOBAL_INPUT, acknowledged ^ ping);
        host.ring(0);
        assert_eq!(host.get(GLOBAL_OUTPUT), acknowledged ^ ping);
        assert_eq!(host.device.read32(JOB_INT_RAWSTAT), raised);
    }
    assert!(!host.device.irq().job, "nobody asked for interrupts");
    host.device.write32(JOB_INT_MASK, u32::MAX);
    assert!(host.device.irq().job);
}

#[test]
fn firmware_halts_and_starts_again() {
    let mut host = Host::started();
    host.put(GLOBAL_INPUT, host.get(GLOBAL_INPUT) | global::HALT);
    host.ring(0);
    assert_eq!(host.device.read32(MCU_STATUS), 2);
    host.put(GLOBAL_INPUT, host.get(GLOBAL_INPUT) & !global::HALT);
    host.device.write32(MCU_CONTROL, 0);
    assert_eq!(host.device.read32(MCU_STATUS), 0);
    // Without the firmware, requests and doorbells have no effect.
    host.put(GLOBAL_INPUT, host.get(GLOBAL_INPUT) ^ 1 << 8);
    let acknowledged = host.get(GLOBAL_OUTPUT);
    host.ring(0);
    assert_eq!(host.get(GLOBAL_OUTPUT), acknowledged);
    host.device.write32(GPU_COMMAND, 0x101);
    host.boot();
    host.ring(0);
    assert_eq!(
        host.get(GLOBAL_OUTPUT) & 1 << 8,
        host.get(GLOBAL_INPUT) & 1 << 8
    );
    host.start_group(0, 1);
    host.job(0, 0, 64);
    host.device.run();
    host.shared.expect_sums(64);
}
