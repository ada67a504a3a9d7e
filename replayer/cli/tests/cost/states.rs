// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of states in a session, by heap growth.

use gpureplay_format::{Access, Builder, ElementType, RegionKind, SegmentKind, Tensor, TensorKind};
use gpureplay_library::{ModelOptions, Options, Recording};

use crate::count::counted;

const GPU: u32 = 0x7212_0000;
const DATA: u64 = 0x300_0000;
const STEP: u32 = 4 << 20;

pub(crate) fn copies() -> u64 {
    let (smaller, larger) = (held(STEP), held(2 * STEP));
    let more = larger.saturating_sub(smaller);
    // Rounded: each page takes some bytes beside its copy.
    (more + u64::from(STEP) / 8) / u64::from(STEP)
}

fn held(bytes: u32) -> u64 {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(DATA, bytes / 4096, Access::READ_WRITE, RegionKind::Data);
    let state = Tensor::dense("s", TensorKind::State, ElementType::U8, &[bytes], DATA);
    let state = builder.tensor(state);
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(state);
    builder.bind_output(state);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("recording.gpr"),
        builder.finish().unwrap(),
    )
    .unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    let options = Options {
        model: ModelOptions {
            threads: Some(1),
            ..ModelOptions::default()
        },
        ..Options::default()
    };
    let cost = counted(usize::MAX, u64::MAX, || {
        let mut session = recording.session(options).unwrap();
        for _ in 0..3 {
            session.run().unwrap();
        }
        session.close().unwrap();
        session.run().unwrap();
        session.reset_states();
        for _ in 0..3 {
            session.run().unwrap();
        }
    });
    cost.held
}
