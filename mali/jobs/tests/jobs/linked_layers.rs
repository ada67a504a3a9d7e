// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins layers with uploads in the first.

use gpureplay_format::{Access, Builder, RegionKind, SegmentKind};
use gpureplay_library::Recording;
use mali_facts::{JobType, Memory, PROFILES};
use mali_jobs::link::{MOST_JOBS, whole};
use mali_jobs::walk::{Full, submissions};

const JOBS: u64 = 0x200_0000;
const DATA: u64 = 0x300_0000;
const VALUES: [[u8; 4]; 2] = [[1, 2, 3, 4], [5, 6, 7, 8]];

/// The first layer uploads after two chains, and after two more.
fn recorded() -> Recording {
    let mut page = [0; 4096];
    for at in [0, 0x40, 0x80] {
        page[at + 16] = 1 | (JobType::Null as u8) << 1;
    }
    let mut builder = Builder::new(PROFILES[0].gpu_id.0);
    builder.identity(0, 0xffff_0000, PROFILES[0].gpu_id.0);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    builder.segment("setup", SegmentKind::Setup);
    builder.upload(JOBS, &page);
    builder.segment("first", SegmentKind::Run);
    for value in &VALUES {
        for at in [0, 0x40] {
            builder.rearm(JOBS + at);
            builder.submit(1, JOBS + at, 1_000_000);
        }
        builder.upload(DATA, value);
    }
    builder.segment("second", SegmentKind::Run);
    builder.rearm(JOBS + 0x80);
    builder.submit(1, JOBS + 0x80, 1_000_000);
    Recording::from_bytes(builder.finish().unwrap()).unwrap()
}

fn found(recording: &Recording) -> Vec<[u8; 4]> {
    let mut all = Vec::new();
    submissions(recording.verified().chains().unwrap(), |submission| {
        let mut bytes = [0; 4];
        submission.memory.read(DATA, &mut bytes);
        all.push(bytes);
        Ok::<(), Full>(())
    })
    .unwrap();
    all
}

#[test]
fn uploads_between_joined_chains_keep_their_bytes() {
    let before = recorded();
    let [first, second] = VALUES;
    assert_eq!(found(&before), [[0; 4], [0; 4], first, first, second]);
    let bytes = whole(before.verified().chains().unwrap(), MOST_JOBS)
        .unwrap()
        .unwrap();
    let after = Recording::from_bytes(bytes).unwrap();
    assert_eq!(found(&after), [[0; 4], first, second]);
}
