// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrappers pass on all calls, also those with a default.

use crate::support::{DATA, Fake};
use gpureplay_core::middleware::Trace;
use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Submission, UsedUp};
use gpureplay_format::Access;
use gpureplay_format::layout::ActionEntry;
use mali_drive::middleware::{Diff, FaultKind, Faulty};

const CHAIN: Chain = Chain {
    index: 0,
    head: 64,
    queue: 1,
    space: 0,
};

const USED_UP: UsedUp = UsedUp {
    job: 64,
    slot: 1,
    limit: 9,
};

/// Its answers differ from the defaults of [`Gpu`].
struct Noted {
    fake: Fake,
    seen: Vec<&'static str>,
}

impl gpureplay_core::Wrapper for Noted {
    type Inner = Fake;
    fn inner(&mut self) -> &mut Fake {
        &mut self.fake
    }
    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        self.seen.push("fill");
        self.fake.fill_memory(va, length, byte)
    }
    fn activate(&mut self) -> Result<u8, DeviceError> {
        self.seen.push("activate");
        Ok(5)
    }
    fn release(&mut self) {
        self.seen.push("release");
    }
    fn lend(&mut self) -> Result<bool, DeviceError> {
        self.seen.push("lend");
        Ok(true)
    }
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.seen.push("reset");
        Ok(())
    }
    fn expect_recording(&mut self, bytes: u64) {
        assert_eq!(bytes, 5000);
        self.seen.push("expect");
    }
    fn used_up(&mut self) -> Option<UsedUp> {
        Some(USED_UP)
    }
    fn apply(&mut self, _: u32, _: u32) -> Option<Result<(), ErrorKind>> {
        self.seen.push("apply");
        Some(Ok(()))
    }
    fn start(&mut self, _: u32) -> Option<Result<(), ErrorKind>> {
        self.seen.push("start");
        Some(Ok(()))
    }
    fn run_chain(&mut self, _: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        self.seen.push("run");
        Some(Ok(()))
    }
    fn before_chain(&mut self, _: &Chain) -> Result<(), DeviceError> {
        self.seen.push("before");
        Err(DeviceError::Refused(7))
    }
    fn after_chain(&mut self, _: &Chain, _: Result<(), ErrorKind>) {
        self.seen.push("after");
    }
}

fn noted() -> Noted {
    Noted {
        fake: Fake::new(),
        seen: Vec::new(),
    }
}

fn ask(mut gpu: impl Gpu) {
    gpu.expect_recording(5000);
    gpu.map(DATA, 1, Access::READ_WRITE).unwrap();
    gpu.fill_memory(DATA, 4, 9).unwrap();
    let mut bytes = [0; 5];
    gpu.read_memory(DATA, &mut bytes).unwrap();
    assert_eq!(bytes, [9, 9, 9, 9, 0]);
    assert_eq!(gpu.apply(0xf04, 0), Some(Ok(())));
    assert_eq!(gpu.start(0), Some(Ok(())));
    let entry = &ActionEntry {
        op: 5,
        a: 1,
        b: 0.into(),
        c: 1000.into(),
        d: 64.into(),
    };
    let work = Submission { entry, words: &[] };
    assert_eq!(gpu.run_chain(&work), Some(Ok(())));
    assert_eq!(gpu.activate(), Ok(5));
    gpu.release();
    assert_eq!(gpu.lend(), Ok(true));
    assert_eq!(gpu.before_chain(&CHAIN), Err(DeviceError::Refused(7)));
    gpu.after_chain(&CHAIN, Ok(()));
    gpu.reset().unwrap();
    assert_eq!(gpu.used_up(), Some(USED_UP));
}

const ALL: [&str; 11] = [
    "expect", "fill", "apply", "start", "run", "activate", "release", "lend", "before", "after",
    "reset",
];

#[test]
fn every_wrapper_passes_calls_on() {
    let mut plain = noted();
    ask(&mut plain);
    assert_eq!(plain.seen, ALL);

    let mut through_an_object = noted();
    ask(&mut through_an_object as &mut dyn Gpu);
    assert_eq!(through_an_object.seen, ALL);

    let mut calls = 0;
    let mut traced = Trace::new(noted(), |_| calls += 1);
    ask(&mut traced);
    assert_eq!(traced.get_ref().seen, ALL);
    assert_eq!(traced.into_inner().seen, ALL);
    assert_eq!(calls, 9);

    let mut faulty = Faulty::new(noted(), FaultKind::Memory, u64::MAX);
    ask(&mut faulty);
    assert_eq!(faulty.get_ref().seen, ALL);
    assert_eq!(faulty.get_mut().seen, ALL);
    assert_eq!(faulty.into_inner().seen, ALL);

    let mut pair = Diff::new(noted(), noted(), |_| false);
    ask(&mut pair);
    let divergence = pair.divergence();
    let (first, second) = pair.into_inner();
    assert_eq!((first.seen, second.seen), (ALL.to_vec(), ALL.to_vec()));
    assert_eq!(divergence, None);
}
