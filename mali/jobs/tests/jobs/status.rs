// SPDX-License-Identifier: MIT OR Apache-2.0
//! The next job sees the job manager's status in a header.

use gpureplay_core::Limits;
use gpureplay_format::{Access, Builder, Recording, RegionKind, SegmentKind};
use mali_drive::verify;
use mali_facts::registers::JobStatus;
use mali_facts::{JobType, Memory, PROFILES};
use mali_jobs::walk::{Full, submissions};

const JOBS: u64 = 0x200_0000;

/// The first job's status at both submissions.
fn first_status() -> [u32; 2] {
    let mut page = [0xff; 192];
    for job in page.chunks_mut(64) {
        job.fill(0);
        job[16] = 1 | (JobType::Null as u8) << 1;
    }
    let mut builder = Builder::new(PROFILES[0].gpu_id.0);
    builder.identity(0, 0xffff_0000, PROFILES[0].gpu_id.0);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.segment("setup", SegmentKind::Setup);
    builder.upload(JOBS, &page);
    builder.segment("run", SegmentKind::Run);
    for job in [JOBS, JOBS + 64] {
        builder.rearm(job);
        builder.submit(1, job, 1_000_000);
    }
    let file = builder.finish().unwrap();
    let recording = Recording::parse(&file).unwrap();
    let mut found = Vec::new();
    submissions(
        &verify(&recording, &Limits::DEFAULT).unwrap(),
        |submission| {
            let mut status = [0; 4];
            submission.memory.read(JOBS, &mut status);
            found.push(u32::from_le_bytes(status));
            Ok::<(), Full>(())
        },
    )
    .unwrap();
    found.try_into().unwrap()
}

#[test]
fn a_job_that_ended_leaves_its_status() {
    assert_eq!(first_status(), [0, JobStatus::DONE.0]);
}
