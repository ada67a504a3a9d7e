// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings of jobs that need no shader, replayed on the model through registers, page tables and interrupts.

use gpureplay_core::mali::page_table::Format;
use gpureplay_core::mali::{Verified, verify};
use gpureplay_core::{ErrorKind, Limits, Options, Session, Tensors, Workspace};
use gpureplay_format::{
    Access, Builder, ElementType, Piece, Recording, RegionKind, SegmentKind, Tensor, TensorKind,
};
use gpureplay_on_model::OnModel;
use mali_model::Profile;

const JOBS: u64 = 0x200_0000;
const DATA: u64 = 0x300_0000;
const WRITE_VALUE: u32 = 2;

/// A job that writes `value` to `target`, and the next one of its chain.
fn write_value(kind: u32, next: u64, target: u64, value: u32) -> Vec<u8> {
    let words = [
        0,
        0,
        0,
        0,
        kind << 1 | 1 | 1 << 16,
        0,
        next as u32,
        (next >> 32) as u32,
        target as u32,
        (target >> 32) as u32,
        6,
        0,
        value,
        0,
    ];
    words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect()
}

/// Two jobs in one chain, which write to two rows of a padded matrix. `second` is the type of the second job.
fn recording(second: u32) -> Vec<u8> {
    let mut builder = Builder::new(0x7212_0000);
    builder.identity(0, 0xffff_0000, 0x7212_0000);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 3, Access::READ_WRITE, RegionKind::Data);
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

struct Values([u8; 16]);

impl Tensors for Values {
    fn input(&mut self, _: u32) -> Option<&[u8]> {
        None
    }
    fn output(&mut self, _: u32) -> Option<&mut [u8]> {
        Some(&mut self.0)
    }
}

impl Values {
    fn words(&self) -> Vec<u32> {
        self.0
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect()
    }
}

fn verified<'a>(recording: &'a Recording<'a>) -> Verified<'a> {
    verify(recording, &Limits::DEFAULT).unwrap()
}

fn model() -> OnModel {
    OnModel::new(
        Profile::by_name("g52").unwrap(),
        mali_model::Options::default(),
    )
    .unwrap()
}

#[test]
fn a_chain_runs_a_thousand_times_in_both_page_table_formats() {
    let file = recording(WRITE_VALUE);
    let recording = Recording::parse(&file).unwrap();
    for format in [Format::Lpae, Format::AArch64] {
        let mut workspace = Workspace::new();
        let mut values = Values([0; 16]);
        let gpu = model().with_format(format);
        let mut session = Session::open(
            gpu,
            verified(&recording),
            &mut workspace,
            Options::default(),
            &mut values,
        )
        .unwrap();
        for _ in 0..1000 {
            values.0 = [0; 16];
            session.run(&mut values).unwrap();
            assert_eq!(
                values.words(),
                [0x1234_5678, 0x5555_5555, 0x5555_5555, 0x9abc_def0]
            );
        }
        assert_eq!(session.gpu().chains(), 1000);
        session.finish().unwrap();
    }
}

#[test]
fn a_job_that_fails_is_named_and_the_gpu_recovers() {
    let file = recording(0);
    let recording = Recording::parse(&file).unwrap();
    let mut workspace = Workspace::new();
    let mut values = Values([0; 16]);
    let mut session = Session::open(
        model(),
        verified(&recording),
        &mut workspace,
        Options::default(),
        &mut values,
    )
    .unwrap();
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
    let recording = Recording::parse(&file).unwrap();
    let mut workspace = Workspace::new();
    let gpu = OnModel::new(
        Profile::by_name("g71").unwrap(),
        mali_model::Options::default(),
    )
    .unwrap();
    let opened = Session::open(
        gpu,
        verified(&recording),
        &mut workspace,
        Options::default(),
        &mut Values([0; 16]),
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
