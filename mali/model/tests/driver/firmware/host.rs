// SPDX-License-Identifier: MIT OR Apache-2.0
//! A driver's side of the interface.

use std::sync::Arc;

use gpureplay_memory::Ram;
use mali_facts::StreamGpu;
use mali_facts::firmware::interface::{
    GLOBAL_INPUT, GLOBAL_OUTPUT, SECTION, SECTION_SIZE, global, group, group_input, group_output,
    stream, stream_input,
};
use mali_facts::firmware::registers::{DOORBELL_STRIDE, DOORBELLS, MCU_CONTROL, MCU_STATUS};
use mali_facts::registers::{TranslationConfig, address_space, gpu};
use mali_model::{Options, StreamDevice};

use crate::machine::{Format, JOBS, Machine, PageMemory, Rights};
use crate::streams::{dispatch, pair, word};

pub(super) const RING_SIZE: u64 = 0x1000;
const SYNC: u64 = JOBS + 0x8000;
const STREAM: u64 = JOBS + 0x1000;

pub(super) struct Host {
    pub(super) device: StreamDevice<Ram>,
    pub(super) firmware: PageMemory,
    pub(super) shared: PageMemory,
}

pub(super) fn ring_at(number: u32, at: u32) -> u64 {
    0x5000_0000 + RING_SIZE * u64::from(8 * number + at)
}

/// In the firmware's space: the driver's position, then 8 bytes of the firmware's.
pub(super) fn positions(number: u32, at: u32) -> u64 {
    JOBS + 64 * u64::from(8 * number + at)
}

pub(super) fn suspend_buffer(number: u32) -> u64 {
    0x6000_0000 + 0x4000 * u64::from(number)
}

pub(super) fn sync_object(number: u32, at: u32) -> u64 {
    SYNC + 16 * u64::from(8 * number + at)
}

impl Host {
    pub(super) fn off() -> Host {
        Host::with(Options::default())
    }

    pub(super) fn with(options: Options) -> Host {
        let ram = Arc::new(Ram::new(4096).unwrap());
        let of = || {
            let options = Options::default();
            Machine::on(ram.clone(), ram.clone(), "g57", Format::AArch64, options).memory
        };
        let (mut firmware, mut shared) = (of(), of());
        firmware.map(
            SECTION.into(),
            u64::from(SECTION_SIZE) / 4096,
            Rights::ReadWrite,
        );
        firmware.map(suspend_buffer(0), 32, Rights::ReadWrite);
        shared.map(ring_at(0, 0), 64, Rights::ReadWrite);
        let options = Options {
            threads: 1,
            ..options
        };
        let gpu = StreamGpu::by_name("g610").unwrap();
        Host {
            device: StreamDevice::new(gpu, ram.clone(), options),
            firmware,
            shared,
        }
    }

    pub(super) fn started() -> Host {
        let mut host = Host::off();
        host.boot();
        host
    }

    pub(super) fn map_space(&mut self, space: u32, root: u64) {
        let config = TranslationConfig::aarch64_4k().0;
        for (register, value) in [
            (address_space::TRANSTAB_LO, root),
            (address_space::TRANSCFG_LO, config),
        ] {
            let register = address_space::offset(space, register);
            self.device.write32(register, value as u32);
            self.device.write32(register + 4, (value >> 32) as u32);
        }
        let command = address_space::offset(space, address_space::COMMAND);
        self.device.write32(command, 1);
    }

    pub(super) fn boot(&mut self) {
        self.device.write32(gpu::L2_PWRON_LO, 1);
        assert_eq!(self.device.read32(gpu::L2_READY_LO), 1);
        self.map_space(0, self.firmware.root());
        for space in 1..8 {
            self.map_space(space, self.shared.root());
        }
        self.device.write32(MCU_CONTROL, 2);
        assert_eq!(self.device.read32(MCU_STATUS), 1);
        self.put(GLOBAL_INPUT + global::CORES, 0x5_0005);
        self.put(GLOBAL_INPUT, self.get(GLOBAL_INPUT) | global::IDLE_ENABLE);
    }

    pub(super) fn get(&self, address: u32) -> u32 {
        self.firmware.read32(address.into())
    }

    pub(super) fn put(&self, address: u32, value: u32) {
        self.firmware.write32(address.into(), value);
    }

    pub(super) fn ring(&mut self, doorbell: u32) {
        self.device
            .write32(DOORBELLS + DOORBELL_STRIDE * doorbell, 1);
    }

    pub(super) fn ring_group(&mut self, number: u32) {
        let rung = self.get(GLOBAL_OUTPUT + global::DOORBELLS) ^ 1 << number;
        self.put(GLOBAL_INPUT + global::DOORBELLS, rung);
        self.ring(0);
    }

    /// Whether the firmware took it at once.
    pub(super) fn ask(&mut self, number: u32, state: group::State) -> bool {
        let input = group_input(number);
        let request = self.get(input) & !group::STATE_MASK | state as u32;
        self.put(input, request);
        self.ring_group(number);
        self.state(number) == state as u32
    }

    pub(super) fn state(&self, number: u32) -> u32 {
        self.get(group_output(number)) & group::STATE_MASK
    }

    pub(super) fn prepare_group(&mut self, number: u32, space: u32, buffer: u64) {
        let input = group_input(number);
        for (offset, value) in [
            (group::INTERRUPTS, u32::MAX),
            (group::CORES, u32::MAX),
            (group::ENDPOINTS, 4),
            (group::SUSPEND_BUFFER, buffer as u32),
            (group::CONFIG, space),
        ] {
            self.put(input + offset, value);
        }
    }

    /// The ring is slot `of`'s, where the group may have been before.
    pub(super) fn prepare_stream(&mut self, number: u32, at: u32, of: u32) {
        let input = stream_input(number, at);
        let (ring, positions) = (ring_at(of, at), positions(of, at));
        for (offset, value) in [
            (0, stream::STARTED | stream::IDLE_WAITING),
            (stream::CONFIG, (number + 1) << 8),
            (stream::INTERRUPTS, u32::MAX),
            (stream::RING, ring as u32),
            (stream::RING_SIZE, RING_SIZE as u32),
            (stream::RING_INPUT, positions as u32),
            (stream::RING_OUTPUT, positions as u32 + 8),
        ] {
            self.put(input + offset, value);
        }
    }

    pub(super) fn start_group(&mut self, number: u32, space: u32) {
        self.prepare_group(number, space, suspend_buffer(number));
        for at in 0..2 {
            self.prepare_stream(number, at, number);
        }
        assert!(self.ask(number, group::State::Started));
    }

    /// Writes stream and ring as panthor does, without ringing.
    pub(super) fn submit(&mut self, number: u32, at: u32, words: &[u64]) {
        let place = STREAM + 0x400 * u64::from(8 * (number % 2) + at);
        for (address, word) in (place..).step_by(8).zip(words) {
            self.shared.write64(address, *word);
        }
        self.submit_ring(
            number,
            at,
            &[
                pair(92, place),
                word(94, 8 * words.len() as u32),
                3 << 56 | 1 << 16,
                0x20 << 56 | 92 << 40 | 94 << 32,
                pair(92, sync_object(number, at)),
                pair(94, 1),
                3 << 56 | 0xff << 16,
                // SYNC_ADD64, system scope, with errors.
                0x33 << 56 | 92 << 40 | 94 << 32 | 1,
                0x2f << 56,
            ],
        );
    }

    pub(super) fn submit_ring(&mut self, number: u32, at: u32, words: &[u64]) {
        let positions = positions(number, at);
        let mut insert = self.firmware.read64(positions);
        for word in words {
            self.shared
                .write64(ring_at(number, at) + insert % RING_SIZE, *word);
            insert += 8;
        }
        self.firmware.write64(positions, insert);
    }

    pub(super) fn job(&mut self, number: u32, at: u32, count: u32) {
        self.shared.compute_job(JOBS, count, 0);
        self.submit(number, at, &dispatch(count));
        self.ring(number + 1);
    }

    pub(super) fn sync(&self, number: u32, at: u32) -> (u64, u32) {
        let object = sync_object(number, at);
        (self.shared.read64(object), self.shared.read32(object + 8))
    }
}
