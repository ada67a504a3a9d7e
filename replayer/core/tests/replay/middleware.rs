// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each fault at each call, and comparisons.

use crate::support::{DATA, Fake, PRODUCT};
use gpureplay_core::gpu::UsedUp;
use gpureplay_core::{DeviceError, ErrorKind, Gpu, Lines, Submission};
use gpureplay_format::Access;
use gpureplay_format::layout::ActionEntry;
use mali_drive::middleware::{Diff, Divergence, FaultKind, Faulty};
use zerocopy::FromZeros;

const GPU_RAWSTAT: u32 = 0x20;
const GPU_FAULT: u32 = 0x3c;
const JOB_RAWSTAT: u32 = 0x1000;
const MMU_RAWSTAT: u32 = 0x2000;
/// A register without a meaning.
const PLAIN: u32 = 0x50;

struct Part {
    fake: Fake,
    space: u8,
    whole: Option<Result<(), ErrorKind>>,
    lends: bool,
    used: Option<UsedUp>,
    expected: u64,
}

impl Part {
    fn new() -> Self {
        let mut fake = Fake::new();
        fake.map(DATA, 1, Access::READ_WRITE).unwrap();
        Self {
            fake,
            space: 5,
            whole: None,
            lends: false,
            used: None,
            expected: 0,
        }
    }

    /// All lines are unmasked.
    fn ended() -> Self {
        let mut part = Self::new();
        for (register, value) in [(JOB_RAWSTAT, 2), (0x1008, 2), (0x2008, 1), (0x28, 1)] {
            part.fake.registers.insert(register, value);
        }
        part
    }
}

impl gpureplay_core::Wrapper for Part {
    type Inner = Fake;

    fn inner(&mut self) -> &mut Fake {
        &mut self.fake
    }
    fn activate(&mut self) -> Result<u8, DeviceError> {
        match self.space {
            0 => Err(DeviceError::AddressSpaceStuck),
            space => Ok(space),
        }
    }
    fn apply(&mut self, _: u32, _: u32) -> Option<Result<(), ErrorKind>> {
        self.whole
    }
    fn start(&mut self, _: u32) -> Option<Result<(), ErrorKind>> {
        self.whole
    }
    fn run_chain(&mut self, _: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        self.whole
    }
    fn lend(&mut self) -> Result<bool, DeviceError> {
        Ok(self.lends)
    }
    fn used_up(&mut self) -> Option<UsedUp> {
        self.used
    }
    fn expect_recording(&mut self, bytes: u64) {
        self.expected = bytes;
    }
}

fn work(entry: &ActionEntry) -> Submission<'_> {
    Submission { entry, words: &[] }
}

#[test]
fn a_read_fails_once_or_until_the_reset() {
    use FaultKind::{EndlessPoll, PowerLoss, ReadOnes, ReadZero};
    // Two reads of one register, and one of another.
    for (kind, reads) in [
        (ReadOnes, [u32::MAX, 9, PRODUCT]),
        (ReadZero, [0, 9, PRODUCT]),
        (EndlessPoll, [0, 0, PRODUCT]),
        (PowerLoss, [0, 0, 0]),
    ] {
        let mut part = Part::new();
        part.fake.registers.insert(PLAIN, 9);
        let mut faulty = Faulty::new(part, kind, 1);
        assert_eq!(faulty.read32(PLAIN), 9, "{kind:?} before its time");
        assert_eq!((faulty.calls(), faulty.fired()), (1, false));
        let time = faulty.now_us();
        let found = [PLAIN, PLAIN, 0].map(|register| faulty.read32(register));
        assert_eq!(found, reads, "{kind:?}");
        assert!(faulty.fired() && faulty.fired_us() >= time && time > 1);
        faulty.reset().unwrap();
        assert_eq!(faulty.read32(0), PRODUCT, "{kind:?} after a reset");
        assert_eq!(faulty.plan(), (kind, 1));
    }
    for &kind in FaultKind::ALL {
        let mut faulty = Faulty::new(Part::ended(), kind, 99);
        assert_eq!(faulty.read32(JOB_RAWSTAT), 2, "{kind:?}");
        faulty.write32(PLAIN, 1);
        assert_eq!(faulty.get_ref().fake.writes, [(PLAIN, 1)]);
        assert_eq!(faulty.wait_irq(Lines::ALL, 1), Lines::JOB, "{kind:?}");
        assert_eq!(faulty.activate(), Ok(5));
        assert_eq!(faulty.map(0, 1, Access::READ), Ok(()));
        assert_eq!(faulty.reset(), Ok(()));
        // The read of a job's end counts twice, the wait three times, and the reset not at all.
        assert_eq!(faulty.calls(), 8, "{kind:?}");
    }
}

#[test]
fn a_write_is_lost_once_or_until_the_reset() {
    for (kind, left) in [(FaultKind::LostWrite, 2), (FaultKind::PowerLoss, 1)] {
        let mut faulty = Faulty::new(Part::new(), kind, 0);
        faulty.write32(PLAIN, 1);
        faulty.write32(PLAIN, 2);
        assert_eq!(faulty.get_ref().fake.writes.len(), left - 1, "{kind:?}");
        faulty.get_mut().fake.writes.clear();
        faulty.reset().unwrap();
        faulty.get_mut().fake.writes.clear();
        faulty.write32(PLAIN, 3);
        assert_eq!(faulty.into_inner().fake.writes, [(PLAIN, 3)]);
    }
}

#[test]
fn the_end_of_a_job_is_disturbed_as_each_kind_says() {
    use FaultKind::{BusFault, FailedJob, MmuFault, NoReset};
    // Rawstat of jobs, one failed by itself; of MMU; of GPU; GPU fault.
    for (kind, job, mmu, gpu, fault) in [
        (FailedJob, 0x7_0000, 0, 0, 0),
        (NoReset, 0x7_0000, 0, 0, 0),
        (MmuFault, 0x7_0000, 1, 0, 0),
        (BusFault, 0, 0, 1, 0x80),
    ] {
        let mut faulty = Faulty::new(Part::ended(), kind, 0);
        faulty.get_mut().fake.registers.insert(JOB_RAWSTAT, 0);
        assert_eq!(faulty.read32(JOB_RAWSTAT), 0);
        assert!(!faulty.fired(), "nothing has ended");
        faulty
            .get_mut()
            .fake
            .registers
            .insert(JOB_RAWSTAT, 0x5_0002);
        let found = [JOB_RAWSTAT, MMU_RAWSTAT, GPU_RAWSTAT, GPU_FAULT];
        let found = found.map(|register| faulty.read32(register));
        assert_eq!(found, [job, mmu, gpu, fault], "{kind:?}");
        let raised = faulty.wait_irq(Lines::ALL, 1);
        let expected = if kind == BusFault {
            Lines::GPU
        } else {
            Lines::JOB
        };
        assert_eq!(raised, expected, "{kind:?}");
        if kind == BusFault {
            assert_eq!(faulty.wait_irq(Lines::JOB, 1), Lines::NONE);
        }
        let reset = faulty.reset();
        let refused = Err(DeviceError::ResetFailed);
        assert_eq!(reset, if kind == NoReset { refused } else { Ok(()) });
        assert_eq!(faulty.reset(), Ok(()), "{kind:?}: once");
    }
    let entry = ActionEntry::new_zeroed();
    for kind in [FailedJob, MmuFault, BusFault] {
        let mut part = Part::new();
        part.whole = Some(Ok(()));
        let mut faulty = Faulty::new(part, kind, 0);
        let ended = faulty.run_chain(&work(&entry)).unwrap().unwrap_err();
        let fits = match kind {
            MmuFault => matches!(ended, ErrorKind::MmuFault { status: 0x80, .. }),
            BusFault => matches!(ended, ErrorKind::GpuFault { status: 0x80, .. }),
            _ => matches!(ended, ErrorKind::JobFault { status: 0x80, .. }),
        };
        assert!(fits, "{kind:?}: {ended:?}");
        assert_eq!(faulty.run_chain(&work(&entry)), Some(Ok(())));
        faulty.get_mut().whole = Some(Err(ErrorKind::Internal));
        assert_eq!(
            faulty.run_chain(&work(&entry)),
            Some(Err(ErrorKind::Internal))
        );
    }
}

#[test]
fn interrupts_come_late_falsely_or_never() {
    use FaultKind::{LateInterrupt, LostInterrupt, SpuriousInterrupt, StuckInterrupt};
    // Of an ended job: first wait, second.
    for (kind, waits) in [
        (LateInterrupt, [Lines::NONE, Lines::JOB]),
        (SpuriousInterrupt, [Lines::ALL, Lines::JOB]),
        (LostInterrupt, [Lines::NONE, Lines::NONE]),
        (StuckInterrupt, [Lines::ALL, Lines::ALL]),
    ] {
        let mut faulty = Faulty::new(Part::ended(), kind, 0);
        let found = [(); 2].map(|()| faulty.wait_irq(Lines::ALL, 1000));
        assert_eq!(found, waits, "{kind:?}");
        faulty.reset().unwrap();
        assert_eq!(faulty.wait_irq(Lines::ALL, 1000), Lines::NONE, "{kind:?}");
    }
    let mut faulty = Faulty::new(Part::new(), StuckInterrupt, 0);
    let before = faulty.get_ref().fake.time;
    faulty.wait_irq(Lines::ALL, 1_000_000);
    assert!(faulty.get_ref().fake.time < before + 1000);
    let mut faulty = Faulty::new(Part::ended(), FaultKind::PowerLoss, 0);
    faulty.read32(PLAIN);
    assert_eq!(faulty.wait_irq(Lines::ALL, 1), Lines::NONE);
}

#[test]
fn memory_is_refused_once() {
    type Call = fn(&mut Faulty<Part>) -> Result<(), DeviceError>;
    let calls: [Call; 5] = [
        |gpu| gpu.map(DATA, 1, Access::READ_WRITE),
        |gpu| gpu.activate().map(drop),
        |gpu| gpu.write_memory(DATA + 1, &[1]),
        |gpu| gpu.read_memory(DATA + 2, &mut [0]),
        |gpu| gpu.fill_memory(DATA + 3, 1, 1),
    ];
    let errors = [
        DeviceError::OutOfMemory,
        DeviceError::AddressSpaceStuck,
        DeviceError::NotMapped(DATA + 1),
        DeviceError::NotMapped(DATA + 2),
        DeviceError::NotMapped(DATA + 3),
    ];
    for (call, error) in calls.into_iter().zip(errors) {
        let mut faulty = Faulty::new(Part::new(), FaultKind::Memory, 0);
        assert_eq!(call(&mut faulty), Err(error));
        assert_eq!(call(&mut faulty), Ok(()));
    }
}

#[test]
fn a_seed_chooses_kind_and_call() {
    // By 128-bit division instead.
    for seed in [0_u64, 1, 2, 77, 0xffff_ffff, u64::MAX - 1] {
        let product = (u128::from(seed) + 1) * 0x9e37_79b9_7f4a_7c15;
        let mixed = product % (1 << 64);
        let kind = FaultKind::ALL[(mixed / (1 << 32)) as usize % FaultKind::ALL.len()];
        for below in [1000_u64, 1, 0] {
            let at = (mixed / (1 << 40)) as u64 % below.max(1);
            assert_eq!(Faulty::seeded(Part::new(), seed, below).plan(), (kind, at));
        }
    }
}

fn pair(first: Part, second: Part) -> Diff<Part, Part> {
    Diff::new(first, second, |register| register == PLAIN)
}

#[test]
fn the_first_difference_is_kept_with_its_place() {
    let mut diff = pair(Part::new(), Part::new());
    let chain = gpureplay_core::Chain {
        index: 0,
        head: 0,
        queue: 1,
        space: 0,
    };
    diff.before_chain(&chain).unwrap();
    diff.get_mut()
        .1
        .fake
        .registers
        .extend([(PLAIN, 3), (0x54, 4)]);
    assert_eq!(diff.read32(PLAIN), 0, "a register that may differ");
    assert_eq!(diff.divergence(), None);
    assert_eq!(diff.read32(0x54), 0);
    let register = Some(Divergence::Register(1, 0x54, 0, 4));
    assert_eq!(diff.divergence(), register);
    diff.get_mut().1.space = 0;
    assert_eq!(diff.activate(), Ok(5));
    assert_eq!(diff.divergence(), register, "the first one");
    let (first, second) = diff.into_inner();
    assert_eq!((first.space, second.space), (5, 0));

    // Behind the first compared block.
    let mut diff = pair(Part::new(), Part::new());
    diff.write_memory(DATA, &[7; 600]).unwrap();
    diff.get_mut()
        .1
        .fake
        .write_memory(DATA + 300, &[8])
        .unwrap();
    let mut found = [0; 600];
    diff.read_memory(DATA, &mut found).unwrap();
    assert_eq!(found, [7; 600]);
    let memory = Some(Divergence::Memory(0, DATA + 300, 7, 8));
    assert_eq!(diff.divergence(), memory);
    diff.fill_memory(DATA, 600, 1).unwrap();
    assert_eq!(diff.get_ref().1.fake.memory[&(DATA / 4096)].0[300], 1);
}

#[test]
fn a_refusal_of_one_device_is_a_difference() {
    let entry = ActionEntry::new_zeroed();
    type Call = fn(&mut Diff<Part, Part>, &ActionEntry);
    let calls: [Call; 5] = [
        |diff, _| _ = diff.activate(),
        |diff, _| _ = diff.write_memory(DATA, &[1]),
        |diff, _| _ = diff.apply(0, 0),
        |diff, _| _ = diff.start(0),
        |diff, entry| _ = diff.run_chain(&work(entry)),
    ];
    for (index, call) in calls.into_iter().enumerate() {
        let (mut first, mut second) = (Part::new(), Part::new());
        (first.whole, second.whole) = (Some(Ok(())), Some(Ok(())));
        let mut diff = pair(first, second);
        call(&mut diff, &entry);
        assert_eq!(diff.divergence(), None, "call {index}");
        let other = diff.get_mut().1;
        other.space = 0;
        other.fake.memory.clear();
        other.whole = Some(Err(ErrorKind::Internal));
        call(&mut diff, &entry);
        assert_eq!(
            diff.divergence(),
            Some(Divergence::Refused(0)),
            "call {index}"
        );
    }
    let mut second = Part::new();
    assert_eq!(pair(Part::new(), Part::new()).start(0), None);
    second.whole = Some(Ok(()));
    let mixed = pair(Part::new(), second).start(0);
    assert!(matches!(
        mixed,
        Some(Err(ErrorKind::Device(DeviceError::Refused(0))))
    ));
}

#[test]
fn both_devices_get_what_the_caller_does_not_see() {
    let used = |job| {
        Some(UsedUp {
            job,
            slot: 1,
            limit: 2,
        })
    };
    let mut diff = pair(Part::new(), Part::ended());
    diff.get_mut().0.fake.time = 5000;
    assert!(diff.now_us() > 5000, "the first one's clock");
    assert_eq!(
        diff.wait_irq(Lines::ALL, 1),
        Lines::JOB,
        "the second one's line"
    );
    diff.expect_recording(77);
    assert_eq!(
        (diff.get_ref().0.expected, diff.get_ref().1.expected),
        (77, 77)
    );
    assert_eq!(diff.used_up(), None);
    diff.get_mut().1.used = used(2);
    assert_eq!(diff.used_up(), used(2));
    diff.get_mut().0.used = used(1);
    assert_eq!(diff.used_up(), used(1));
    diff.write32(PLAIN, 6);
    let wrote = [&diff.get_ref().0.fake, &diff.get_ref().1.fake].map(|fake| fake.writes.len());
    assert_eq!(wrote, [1, 1]);
    // The other device is made alike: clean caches, reset.
    for lends in [(false, false), (true, false), (false, true), (true, true)] {
        let mut diff = pair(Part::new(), Part::new());
        (diff.get_mut().0.lends, diff.get_mut().1.lends) = lends;
        assert_eq!(diff.lend(), Ok(lends.0 || lends.1));
        let resets = (diff.get_ref().0.fake.resets, diff.get_ref().1.fake.resets);
        let expected = match lends {
            (true, false) => (0, 1),
            (false, true) => (1, 0),
            _ => (0, 0),
        };
        assert_eq!(resets, expected, "{lends:?}");
        let cleaned = [&diff.get_ref().0.fake, &diff.get_ref().1.fake]
            .map(|fake| fake.writes.contains(&(0x30, 8)));
        assert_eq!(cleaned, [expected.0 == 1, expected.1 == 1]);
    }
    diff.release();
    assert_eq!(
        (
            diff.get_ref().0.fake.released,
            diff.get_ref().1.fake.released
        ),
        (1, 1)
    );
}
