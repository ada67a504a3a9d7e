// SPDX-License-Identifier: MIT OR Apache-2.0
//! Without registers: a driver for whole chains.

use gpureplay_core::middleware::{Call, Trace};
use gpureplay_core::{
    DeviceError, ErrorKind, Gpu, Limits, NoTensors, Options, ReplayError, Session, Submission,
    Workspace,
};
use gpureplay_format::Recording;
use gpureplay_format::encode::assemble;
use gpureplay_format::layout::Platform;
use mali_drive::middleware::{Diff, Divergence, FaultKind, Faulty};
use mali_drive::verify;

use crate::support::{Bound, COUNT, DESCRIPTORS, Fake, Trouble, recording};

struct Whole {
    fake: Fake,
    settings: Vec<(u32, u32)>,
    starts: u32,
}

impl Whole {
    fn new() -> Self {
        Self {
            fake: Fake::new(),
            settings: Vec::new(),
            starts: 0,
        }
    }
}

impl gpureplay_core::Wrapper for Whole {
    type Inner = Fake;

    fn inner(&mut self) -> &mut Fake {
        &mut self.fake
    }
    fn read32(&mut self, register: u32) -> u32 {
        assert!(register < 0x20, "read of {register:#x}");
        self.fake.read32(register)
    }
    fn write32(&mut self, register: u32, _: u32) {
        panic!("write of {register:#x}");
    }
    fn activate(&mut self) -> Result<u8, DeviceError> {
        panic!("activated");
    }
    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn apply(&mut self, register: u32, value: u32) -> Option<Result<(), ErrorKind>> {
        self.settings.push((register, value));
        Some(Ok(()))
    }
    fn start(&mut self, unused_cores: u32) -> Option<Result<(), ErrorKind>> {
        self.starts += 1;
        let refused = DeviceError::Refused(unused_cores as i32);
        Some((unused_cores == 0).then_some(()).ok_or(refused.into()))
    }
    fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        assert_eq!((work.queue(), work.timeout_us()), (1, 1_000_000));
        assert!(work.words.is_empty());
        Some(match self.fake.run(work.head()) {
            0 => Ok(()),
            status => Err(ErrorKind::JobFault {
                slot: work.queue(),
                status,
                tail: work.head(),
                fault_address: 0,
            }),
        })
    }
}

fn runs(gpu: impl Gpu) -> Result<(), ReplayError> {
    let file = recording();
    let recording = Recording::parse(&file).unwrap();
    let verified = verify(&recording, &Limits::DEFAULT).unwrap();
    let mut workspace = Workspace::new();
    let options = Options::default();
    let mut session = Session::open(gpu, verified, &mut workspace, options, &mut NoTensors)?;
    for value in [1.5, -3.0] {
        let mut bound = Bound::new([value; COUNT as usize]);
        session.run(&mut bound)?;
        let right = 2.0 * (2.0 * value + 1.0);
        assert_eq!(bound.values(), [right; COUNT as usize]);
    }
    session.finish()
}

#[test]
fn a_device_without_registers_replays() {
    let mut whole = Whole::new();
    runs(&mut whole).unwrap();
    assert_eq!((whole.starts, whole.fake.accesses > 0), (1, true));
    assert_eq!(whole.settings, [(0xf04, 0x2_0000)]);
    let mut chains = 0;
    runs(Trace::new(Whole::new(), |call| {
        chains += u32::from(matches!(call, Call::End(_, Ok(()))));
    }))
    .unwrap();
    assert_eq!(chains, 2);
}

#[test]
fn a_chain_that_fails_is_reported_and_the_next_run_is_right() {
    for (trouble, kind) in [
        (
            Trouble::JobFault(0x58),
            ErrorKind::JobFault {
                slot: 1,
                status: 0x58,
                tail: DESCRIPTORS,
                fault_address: 0,
            },
        ),
        // Headers decide against the driver.
        (
            Trouble::NotDone,
            ErrorKind::JobNotDone {
                header: DESCRIPTORS,
                status: 0,
            },
        ),
    ] {
        let mut whole = Whole::new();
        whole.fake.trouble = trouble;
        let error = runs(&mut whole).unwrap_err();
        assert_eq!((error.kind, error.submits), (kind, 1));
        assert!(whole.fake.memory.is_empty());
        whole.fake.trouble = Trouble::None;
        runs(&mut whole).unwrap();
    }
}

#[test]
fn what_a_device_cannot_start_is_refused() {
    let file = recording();
    let of_all_cores = Recording::parse(&file).unwrap();
    let platform = Platform {
        unused_cores: 2,
        ..of_all_cores.header().platform()
    };
    let file = assemble(platform, &of_all_cores.sections());
    let recording = Recording::parse(&file).unwrap();
    let verified = verify(&recording, &Limits::DEFAULT).unwrap();
    let mut workspace = Workspace::new();
    let options = Options::default();
    let opened = Session::open(
        Whole::new(),
        verified,
        &mut workspace,
        options,
        &mut NoTensors,
    );
    let error = opened.err().unwrap();
    assert_eq!(error.kind, ErrorKind::Device(DeviceError::Refused(2)));
}

#[test]
fn faults_at_the_end_of_a_chain_are_injected() {
    let status = 0x80;
    for (kind, expected) in [
        (
            FaultKind::MmuFault,
            ErrorKind::MmuFault { status, address: 0 },
        ),
        (
            FaultKind::BusFault,
            ErrorKind::GpuFault { status, address: 0 },
        ),
        (
            FaultKind::FailedJob,
            ErrorKind::JobFault {
                slot: 1,
                status,
                tail: DESCRIPTORS,
                fault_address: 0,
            },
        ),
    ] {
        let mut faulty = Faulty::new(Whole::new(), kind, 0);
        assert_eq!(runs(&mut faulty).unwrap_err().kind, expected);
        assert!(faulty.fired());
        runs(&mut faulty).unwrap();
    }
}

#[test]
fn two_devices_without_registers_are_compared_and_mixed_ones_refused() {
    let compare = |trouble| {
        let mut second = Whole::new();
        second.fake.trouble = trouble;
        let mut both = Diff::new(Whole::new(), second, |_| false);
        let result = runs(&mut both);
        (result.map_err(|error| error.kind), both.divergence())
    };
    assert_eq!(compare(Trouble::None), (Ok(()), None));
    let fault = compare(Trouble::JobFault(0x58));
    assert_eq!(fault, (Ok(()), Some(Divergence::Refused(1))));
    let mixed = ErrorKind::Device(DeviceError::Refused(0));
    let mut both = Diff::new(Whole::new(), Fake::new(), |_| false);
    assert_eq!(runs(&mut both).unwrap_err().kind, mixed);
    let mut both = Diff::new(Fake::new(), Whole::new(), |_| false);
    assert_eq!(runs(&mut both).unwrap_err().kind, mixed);
}
