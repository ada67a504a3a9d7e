// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defects of the original GPUReplay, which ours lacks.
//!
//! Two are also tested on its files, in `mali/import/src/files`: `a bogus last region` (`contents.rs`,
//! `bogus_regions`), `block entries not relocated` (`tables.rs`, `pages_and_blocks`).

use gpureplay_core::middleware::{Call, Trace};
use gpureplay_core::{
    DeviceError, ErrorKind, Gpu, Limits, Lines, NoTensors, Options, Rule, Workspace,
};
use gpureplay_format::{
    Action, Builder, ElementType, Opcode, Recording, SegmentKind, Tensor, TensorKind,
};
use gpureplay_kit::jobs::{self, DATA, GPU, JOBS, write_value};
use gpureplay_kit::{open, verified};
use gpureplay_trials::rig::{Rig, Values, model};
use gpureplay_trials::{Parts, shipped};
use mali_drive::middleware::{FaultKind, Faulty};
use mali_drive::{Session, verify};
use mali_facts::registers::job_slot;

fn rig() -> Rig {
    Rig::new(model(GPU)).unwrap()
}

fn recording(pages: u32, fill: impl FnOnce(&mut Builder)) -> Vec<u8> {
    let mut builder = jobs::builder(1, pages);
    fill(&mut builder);
    builder.finish().unwrap()
}

fn refused(parts: &Parts) -> Rule {
    let file = parts.file();
    let view = gpureplay_kit::view(&file);
    verify(&view, &Limits::DEFAULT).unwrap_err().rule
}

/// 1. Transfers across a page boundary skipped the second page.
#[test]
fn transfers_over_pages_reach_every_page() {
    let file = recording(3, |builder| {
        let shape = [2048];
        let at = DATA + 2048;
        let a = Tensor::dense("a", TensorKind::Input, ElementType::F32, &shape, at);
        let b = Tensor::dense("b", TensorKind::Output, ElementType::F32, &shape, at);
        let (a, b) = (builder.tensor(a), builder.tensor(b));
        builder.segment("run", SegmentKind::Run);
        builder.bind_input(a);
        builder.bind_output(b);
    });
    let sent: Vec<u8> = (0..8192u32).map(|i| (i * 7 + i / 256) as u8).collect();
    let mut echo = gpureplay_kit::Values::of(&file);
    echo.set("a", sent.clone());
    let mut workspace = Workspace::new();
    let view = gpureplay_kit::view(&file);
    let mut session = open(rig(), &view, &mut workspace, &mut echo);
    session.run(&mut echo).unwrap();
    assert_eq!(echo.get("b"), sent);
}

fn two_jobs(second: u32) -> Vec<u8> {
    recording(1, |builder| {
        builder.segment("setup", SegmentKind::Setup);
        builder.upload(JOBS, &write_value(2, JOBS + 64, DATA, 0x1234_5678));
        builder.upload(JOBS + 64, &write_value(second, 0, DATA + 64, 0x1234_5678));
        builder.segment("run", SegmentKind::Run);
        builder.rearm(JOBS);
        builder.rearm(JOBS + 64);
        builder.submit(1, JOBS, 1_000_000);
    })
}

/// 2. A failed job counted as done: its interrupt was enough.
#[test]
fn a_failed_job_is_not_done() {
    let file = two_jobs(0);
    let mut workspace = Workspace::new();
    let view = gpureplay_kit::view(&file);
    let mut session = open(rig(), &view, &mut workspace, &mut NoTensors);
    let error = session.run(&mut NoTensors).unwrap_err();
    assert!(
        matches!(error.kind, ErrorKind::JobFault { tail, .. } if tail == JOBS + 64),
        "{error:?}"
    );
}

/// 3. Waits had no bound.
#[test]
fn every_wait_ends() {
    struct Dead {
        rig: Rig,
        now_us: u64,
    }
    impl gpureplay_core::Wrapper for Dead {
        type Inner = Rig;
        fn inner(&mut self) -> &mut Rig {
            &mut self.rig
        }
        fn read32(&mut self, _: u32) -> u32 {
            self.now_us += 10;
            0
        }
        fn write32(&mut self, _: u32, _: u32) {}
        fn wait_irq(&mut self, _: Lines, timeout_us: u32) -> Lines {
            self.now_us += u64::from(timeout_us);
            Lines::NONE
        }
        fn now_us(&mut self) -> u64 {
            self.now_us
        }
        fn reset(&mut self) -> Result<(), DeviceError> {
            mali_drive::reset(self)
        }
    }
    let file = two_jobs(2);
    let mut dead = Dead {
        rig: rig(),
        now_us: 0,
    };
    let mut workspace = Workspace::new();
    let options = Options::default();
    let view = gpureplay_kit::view(&file);
    let opened = Session::open(
        &mut dead,
        verified(&view),
        &mut workspace,
        options,
        &mut NoTensors,
    );
    assert!(matches!(
        opened.err().unwrap().kind,
        ErrorKind::Device(DeviceError::ResetFailed)
    ));
    assert!(dead.now_us < 1_000_000, "{} µs", dead.now_us);
    let mut rig = rig();
    let mut faulty = Faulty::new(&mut rig, FaultKind::LostWrite, u64::MAX);
    let calls = {
        let view = gpureplay_kit::view(&file);
        let mut session = open(&mut faulty, &view, &mut workspace, &mut NoTensors);
        session.run(&mut NoTensors).unwrap();
        session.gpu().calls()
    };
    let mut late = 0;
    for at in 0..calls {
        let mut faulty = Faulty::new(&mut rig, FaultKind::LostWrite, at);
        let view = gpureplay_kit::view(&file);
        let opened = Session::open(
            &mut faulty,
            verified(&view),
            &mut workspace,
            options,
            &mut NoTensors,
        );
        if let Ok(mut session) = opened {
            let begun = session.gpu().now_us();
            let result = session.run(&mut NoTensors);
            let time = session.gpu().now_us() - begun;
            late += u64::from(result.is_err());
            assert!(time < 1_500_000, "lost write at call {at}: {time} µs");
        }
    }
    assert!(late > 0);
}

/// 4. A status read overwrote the flush id, so a flush could be left out.
#[test]
fn no_flush_is_left_out_because_of_an_id() {
    /// JS_CONFIG: no flush if none happened since the flush id.
    const FLUSH_REDUCTION: u32 = 1 << 14;
    let digits = shipped::named("digits-g52").unwrap();
    let view = gpureplay_kit::view(&digits.bytes);
    let checked = verified(&view);
    let mut writes = Vec::new();
    let traced = Trace::new(rig(), |call| {
        if let Call::Write(register, value) = call {
            writes.push((register, value));
        }
    });
    let mut values = Values::new(&checked);
    let mut workspace = Workspace::new();
    let options = Options::default();
    let mut session = Session::open(traced, checked, &mut workspace, options, &mut values).unwrap();
    session.run(&mut values).unwrap();
    session.finish().unwrap();
    let to = |register| (0..3).map(move |slot| job_slot::offset(slot, register));
    let configs: Vec<u32> = writes
        .iter()
        .filter(|(register, _)| to(job_slot::CONFIG_NEXT).any(|it| it == *register))
        .map(|(_, value)| *value)
        .collect();
    assert!(!configs.is_empty());
    assert!(
        configs.iter().all(|config| config & FLUSH_REDUCTION == 0),
        "{configs:x?}"
    );
    let mut parts = Parts::of(&digits.bytes).unwrap();
    let submit = parts.last(Opcode::Submit).unwrap();
    submit.b = (submit.b.get() | FLUSH_REDUCTION as u16).into();
    assert_eq!(refused(&parts), Rule::JobConfiguration);
}

/// 5. The last region was bogus, and mapped.
#[test]
fn a_bogus_last_region_is_refused() {
    for (va, pages, rule) in [
        (0x1234, 7, Rule::RegionShape),
        (0x7000_0000_0000, 0, Rule::RegionShape),
        (0xffff_ffff_f000, 1 << 20, Rule::RegionRange),
    ] {
        let mut parts = Parts::of(&shipped::named("saxpy-g52").unwrap().bytes).unwrap();
        let mut bogus = parts.regions().last().copied().unwrap();
        if va != 0x1234 {
            bogus.va = va.into();
        } else {
            bogus.va = (bogus.va.get() + 0x234).into();
        }
        bogus.pages = pages.into();
        *parts.regions().last_mut().unwrap() = bogus;
        assert_eq!(refused(&parts), rule);
    }
}

/// 6. The region table went unchecked into allocations.
#[test]
fn the_region_table_is_checked_before_memory_is_taken() {
    let mut parts = Parts::of(&shipped::named("saxpy-g52").unwrap().bytes).unwrap();
    parts.regions().last_mut().unwrap().pages = u32::MAX.into();
    assert_eq!(refused(&parts), Rule::MemoryLimit);
    let mut file = shipped::named("saxpy-g52").unwrap().bytes;
    file.truncate(file.len() - 8);
    assert!(Recording::parse(&file).is_err());
}

/// 7. Leaf entries kept the recorder's physical addresses. Our replayer builds tables from its own pages.
#[test]
fn leaf_entries_name_the_replayers_own_pages() {
    for shipped in shipped::chains().unwrap() {
        let view = gpureplay_kit::view(&shipped.bytes);
        let checked = verified(&view);
        let mut rig = Rig::new(model(checked.recording().gpu_id())).unwrap();
        let mut values = Values::new(&checked);
        let mut workspace = Workspace::new();
        let options = Options::default();
        let mut session =
            Session::open(&mut rig, checked, &mut workspace, options, &mut values).unwrap();
        session.run(&mut values).unwrap();
        session.finish().unwrap();
        assert_eq!(
            (rig.strays(), rig.spoilt(), rig.pages()),
            (0, 0, 0),
            "{}",
            shipped.name
        );
    }
}

/// 8. Block entries of 2 MiB were not relocated: large regions are mapped by page here.
#[test]
fn regions_as_large_as_a_block_are_mapped_by_pages() {
    let last = DATA + 4 * 512 * 4096 - 64;
    let file = recording(4 * 512, |builder| {
        let out = Tensor::dense("out", TensorKind::Output, ElementType::U32, &[1], last);
        let out = builder.tensor(out);
        builder.segment("setup", SegmentKind::Setup);
        builder.upload(JOBS, &write_value(2, 0, last, 0x1234_5678));
        builder.segment("run", SegmentKind::Run);
        builder.fill(last, 4, 0);
        builder.rearm(JOBS);
        builder.submit(1, JOBS, 1_000_000);
        builder.bind_output(out);
    });
    let mut rig = rig();
    let mut echo = gpureplay_kit::Values::of(&file);
    let mut workspace = Workspace::new();
    let view = gpureplay_kit::view(&file);
    let mut session = open(&mut rig, &view, &mut workspace, &mut echo);
    session.run(&mut echo).unwrap();
    session.finish().unwrap();
    assert_eq!(echo.get("out"), 0x1234_5678u32.to_le_bytes());
    assert_eq!((rig.strays(), rig.spoilt(), rig.pages()), (0, 0, 0));
}

/// 9. Only a chain's head was made ready again: later jobs kept the former status.
#[test]
fn every_job_of_a_chain_is_made_ready_again() {
    let file = two_jobs(2);
    let mut workspace = Workspace::new();
    let view = gpureplay_kit::view(&file);
    let mut session = open(rig(), &view, &mut workspace, &mut NoTensors);
    for _ in 0..3 {
        session.run(&mut NoTensors).unwrap();
        let mut status = [0; 4];
        session.gpu().read_memory(JOBS + 64, &mut status).unwrap();
        assert_eq!(status, [1, 0, 0, 0]);
    }
    for shipped in shipped::chains().unwrap() {
        let view = gpureplay_kit::view(&shipped.bytes);
        let checked = verified(&view);
        let walked = mali_jobs::walk::check(&checked).unwrap();
        let recording = checked.recording();
        let jobs = recording.segments().iter();
        let jobs: u32 = jobs.map(|it| recording.count(it, Opcode::Rearm)).sum();
        assert_eq!(walked.jobs().count(), jobs as usize, "{}", shipped.name);
    }
}

/// 10. User pointers were used as they came.
#[test]
fn pointers_of_callers_are_never_followed() {
    // The nano driver uses the kernel's copies only.
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../nano-driver");
    let mut copies = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for copy in [
            "copy_from_user(",
            "copy_to_user(",
            "copy_struct_from_user(",
            "memdup_user(",
        ] {
            copies += source.matches(copy).count();
        }
        for forbidden in [
            "__copy_from_user",
            "__get_user",
            "__put_user",
            "(__force",
            "unsafe_get_user",
        ] {
            assert!(
                !source.contains(forbidden),
                "{forbidden} in {}",
                path.display()
            );
        }
    }
    assert!(copies > 3);
    // They never reach a device.
    let mut parts = Parts::of(&shipped::named("saxpy-g52").unwrap().bytes).unwrap();
    parts.last(Opcode::Submit).unwrap().d = 0xffff_8000_0000_0000u64.into();
    let file = parts.file();
    assert!(verify(&Recording::parse(&file).unwrap(), &Limits::DEFAULT).is_err());
}

/// 11. State was saved at a checkpoint and never restored.
#[test]
fn what_a_run_changes_is_restored_before_the_next() {
    let digits = shipped::named("digits-g52").unwrap();
    let view = gpureplay_kit::view(&digits.bytes);
    let checked = verified(&view);
    let mut rig = rig();
    let mut workspace = Workspace::new();
    let mut values = Values::new(&checked);
    let calls_of_opening = {
        let mut counter = Faulty::new(&mut rig, FaultKind::FailedJob, u64::MAX);
        let options = Options::default();
        let session = Session::open(&mut counter, checked, &mut workspace, options, &mut values);
        session.unwrap().gpu().calls()
    };
    let expected = {
        let mut faulty = Faulty::new(&mut rig, FaultKind::FailedJob, calls_of_opening + 20);
        let options = Options::default();
        let mut session =
            Session::open(&mut faulty, checked, &mut workspace, options, &mut values).unwrap();
        assert!(
            session.run(&mut values).is_err(),
            "the fault comes in the run"
        );
        session.run(&mut values).unwrap();
        let first = values.outputs.clone();
        for _ in 0..3 {
            session.run(&mut values).unwrap();
            assert_eq!(values.outputs, first);
        }
        first
    };
    assert!(
        expected
            .iter()
            .any(|output| output.iter().any(|&byte| byte != 0))
    );
    let restored = checked.recording().segments().iter().flat_map(|segment| {
        let actions = checked.recording().segment_actions(segment).flatten();
        actions.filter(|action| matches!(action, Action::Rearm { .. }))
    });
    assert!(restored.count() > 0);
}
