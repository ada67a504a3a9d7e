// SPDX-License-Identifier: MIT OR Apache-2.0
//! A caller's device gets all engine calls.

use std::sync::{Arc, Mutex};

use gpureplay_core::middleware::{Call, Trace};
use gpureplay_core::{Chain, Gpu, Lines};
use gpureplay_format::Access;
use gpureplay_library::device::Choice;
use gpureplay_library::{Device, Error};
use gpureplay_on_model::OnModel;
use mali_model::Profile;

#[test]
fn the_best_device_is_none_without_a_recording() {
    let opened = Device::open(&Choice::Best, 0x7212_0000, Default::default());
    assert!(matches!(opened, Err(Error::NoDevice(_))));
}

#[test]
fn every_call_arrives() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let model = OnModel::new(Profile::by_name("g52").unwrap(), Default::default()).unwrap();
    let seen = calls.clone();
    let traced = Trace::new(model, move |call| seen.lock().unwrap().push(call));
    let mut device = Device::custom(Box::new(traced), "test");
    calls.lock().unwrap().clear();
    let chain = Chain {
        index: 0,
        head: 64,
        queue: 1,
        space: 0,
    };
    assert_eq!(device.read32(0) >> 16, 0x7212);
    device.write32(0x2c, 0);
    device.map(0x1000, 1, Access::READ_WRITE).unwrap();
    assert_eq!(device.activate(), Ok(0));
    device.write_memory(0x1000, &[1, 2, 3]).unwrap();
    device.fill_memory(0x1001, 1, 9).unwrap();
    let mut bytes = [0; 3];
    device.read_memory(0x1000, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 9, 3]);
    assert_eq!(device.lend(), Ok(false));
    device.before_chain(&chain).unwrap();
    assert_eq!(device.wait_irq(Lines::ALL, 1), Lines::NONE);
    device.after_chain(&chain, Ok(()));
    device.reset().unwrap();
    device.release();
    let begun = device.now_us();
    assert!(device.now_us() >= begun);
    // The trace shows one call, whatever the model does inside.
    let expected = [
        Call::Read(0, 0x7212_0000 | device.read32(0) & 0xffff),
        Call::Write(0x2c, 0),
        Call::Map(0x1000, 1, Access::READ_WRITE),
        Call::Activate,
        Call::Store(0x1000, 3),
        Call::Fill(0x1001, 1, 9),
        Call::Load(0x1000, 3),
        Call::Lend,
        Call::Start(chain),
        Call::Wait(Lines::ALL, Lines::NONE),
        Call::End(chain, Ok(())),
        Call::Reset,
        Call::Release,
    ];
    assert_eq!(calls.lock().unwrap()[..expected.len()], expected);
}
