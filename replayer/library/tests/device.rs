// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device of the caller's own is asked everything that the engine asks, also what has a default answer.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use gpureplay_core::{DeviceError, Gpu, Lines};
use gpureplay_format::Access;
use gpureplay_library::Device;

/// Writes down what it is asked.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<&'static str>>>);

impl Asked {
    fn note(&self, call: &'static str) {
        self.0.lock().unwrap().push(call);
    }
}

impl Gpu for Asked {
    fn read32(&mut self, _: u32) -> u32 {
        self.note("read32");
        0
    }
    fn write32(&mut self, _: u32, _: u32) {
        self.note("write32");
    }
    fn wait_irq(&mut self, _: Lines, _: u32) -> Lines {
        self.note("wait_irq");
        Lines::JOB
    }
    fn now_us(&mut self) -> u64 {
        self.note("now_us");
        7
    }
    fn map(&mut self, _: u64, _: u32, _: Access) -> Result<(), DeviceError> {
        self.note("map");
        Ok(())
    }
    fn activate(&mut self) -> Result<u8, DeviceError> {
        self.note("activate");
        Ok(3)
    }
    fn release(&mut self) {
        self.note("release");
    }
    fn write_memory(&mut self, _: u64, _: &[u8]) -> Result<(), DeviceError> {
        self.note("write_memory");
        Ok(())
    }
    fn read_memory(&mut self, _: u64, _: &mut [u8]) -> Result<(), DeviceError> {
        self.note("read_memory");
        Ok(())
    }
    fn fill_memory(&mut self, _: u64, _: u64, _: u8) -> Result<(), DeviceError> {
        self.note("fill_memory");
        Ok(())
    }
    fn lend(&mut self) -> Result<bool, DeviceError> {
        self.note("lend");
        Ok(true)
    }
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.note("reset");
        Ok(())
    }
}

#[test]
fn every_call_arrives() {
    let asked = Asked::default();
    let mut device = Device::custom(Box::new(asked.clone()), "test");
    asked.0.lock().unwrap().clear();
    device.read32(0);
    device.write32(0, 0);
    assert_eq!(device.wait_irq(Lines::ALL, 1), Lines::JOB);
    assert_eq!(device.now_us(), 7);
    device.map(0, 1, Access::READ).unwrap();
    assert_eq!(device.activate(), Ok(3));
    device.release();
    device.write_memory(0, &[]).unwrap();
    device.read_memory(0, &mut []).unwrap();
    device.fill_memory(0, 1, 0).unwrap();
    assert_eq!(device.lend(), Ok(true));
    device.reset().unwrap();
    let expected = [
        "read32",
        "write32",
        "wait_irq",
        "now_us",
        "map",
        "activate",
        "release",
        "write_memory",
        "read_memory",
        "fill_memory",
        "lend",
        "reset",
    ];
    assert_eq!(*asked.0.lock().unwrap(), expected);
}
