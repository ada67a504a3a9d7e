// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs without shaders.

use gpureplay_core::{ErrorKind, Gpu as _, Lines, Options, Workspace};
use gpureplay_format::{ElementType, Piece, SegmentKind, Tensor, TensorKind};
use gpureplay_kit::jobs::{DATA, JOBS, WRITE_VALUE, builder, write_value};
use gpureplay_kit::{Values, model, open, verified};
use mali_drive::Session;
use mali_drive::page_table::Format;

/// Two jobs write two rows of a padded matrix; `second` is a type.
fn recording(second: u32) -> Vec<u8> {
    let mut builder = builder(1, 3);
    let mut values = Tensor::dense(
        "values",
        TensorKind::Output,
        ElementType::U32,
        &[2, 2],
        DATA,
    );
    values.pieces = vec![Piece::strided(&[2, 2], &[4096, 4], DATA + 4092)];
    let values = builder.tensor(values);
    builder.segment("setup", SegmentKind::Setup);
    builder.upload(
        JOBS,
        &write_value(WRITE_VALUE, JOBS + 64, DATA + 4092, 0x1234_5678),
    );
    builder.upload(JOBS + 64, &write_value(second, 0, DATA + 8192, 0x9abc_def0));
    builder.segment("run", SegmentKind::Run);
    builder.fill(DATA, 3 * 4096, 0x55);
    builder.rearm(JOBS);
    builder.rearm(JOBS + 64);
    builder.submit(1, JOBS, 1_000_000);
    builder.bind_output(values);
    builder.finish().unwrap()
}

#[test]
fn a_chain_runs_a_thousand_times_in_both_page_table_formats() {
    let file = recording(WRITE_VALUE);
    for format in [Format::Lpae, Format::AArch64] {
        let mut workspace = Workspace::new();
        let mut values = Values::of(&file);
        let gpu = model("g52").with_format(format);
        let view = gpureplay_kit::view(&file);
        let mut session = open(gpu, &view, &mut workspace, &mut values);
        for _ in 0..1000 {
            session.run(&mut values).unwrap();
            let words: Vec<u8> = [0x1234_5678u32, 0x5555_5555, 0x5555_5555, 0x9abc_def0]
                .into_iter()
                .flat_map(u32::to_le_bytes)
                .collect();
            assert_eq!(values.get("values"), words);
        }
        assert_eq!(session.gpu().chains(), 1000);
        session.finish().unwrap();
    }
}

#[test]
fn a_job_that_fails_is_named_and_the_gpu_recovers() {
    let file = recording(0);
    let mut workspace = Workspace::new();
    let mut values = Values::of(&file);
    let view = gpureplay_kit::view(&file);
    let mut session = open(model("g52"), &view, &mut workspace, &mut values);
    for _ in 0..3 {
        let error = session.run(&mut values).unwrap_err();
        let ErrorKind::JobFault {
            slot: 1,
            status: 0x40,
            tail,
            ..
        } = error.kind
        else {
            panic!("{error:?}")
        };
        assert_eq!(tail, JOBS + 64);
    }
}

#[test]
fn the_recording_of_another_gpu_is_refused() {
    let file = recording(WRITE_VALUE);
    let mut workspace = Workspace::new();
    let view = gpureplay_kit::view(&file);
    let opened = Session::open(
        model("g71"),
        verified(&view),
        &mut workspace,
        Options::default(),
        &mut Values::of(&file),
    );
    let kind = opened.err().unwrap().kind;
    assert!(matches!(
        kind,
        ErrorKind::Identity {
            register: 0,
            expected: 0x7212_0000,
            ..
        }
    ));
}

#[test]
fn a_wait_for_nothing_takes_time_of_the_model_only() {
    let mut gpu = model("g52");
    let (begun, hour) = (gpu.now_us(), 3_600_000_000);
    assert_eq!(gpu.wait_irq(Lines::ALL, hour), Lines::NONE);
    assert!(gpu.now_us() - begun >= hour.into());
}
