// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job's status may be the next job's field.

use gpureplay_format::{Access, Builder, RegionKind, SegmentKind};
use gpureplay_library::Recording;
use mali_facts::registers::JobStatus;
use mali_facts::{Draw, JobType, LocalStorage, Memory, PROFILES, descriptor_address, follow, job};
use mali_jobs::link::{MOST_JOBS, link};
use mali_jobs::walk::{Full, submissions};

const JOBS: u64 = 0x200_0000;
const DATA: u64 = 0x300_0000;
/// Its status is the second job's thread storage size.
const FIRST: usize = 0x1c0;
const SECOND: usize = 0x200;
const STATE: usize = 0x340;

fn recorded() -> Vec<u8> {
    let mut page = [0; 4096];
    let mut pointer = |at: usize, to: u64| page[at..at + 8].copy_from_slice(&to.to_le_bytes());
    pointer(STATE, DATA + 0x1000);
    let draw = SECOND + job::COMPUTE_DRAW as usize;
    let field = |name| Draw::LAYOUT.offset_of(name).unwrap() as usize;
    pointer(draw + field("State"), JOBS + STATE as u64);
    pointer(draw + field("Thread storage"), JOBS + FIRST as u64);
    for (at, kind) in [(FIRST, JobType::Null), (SECOND, JobType::Compute)] {
        page[at + 16] = 1 | (kind as u8) << 1;
    }
    let mut builder = Builder::new(PROFILES[0].gpu_id.0);
    builder.identity(0, 0xffff_0000, PROFILES[0].gpu_id.0);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    builder.region(DATA + 0x1000, 1, Access::READ_EXECUTE, RegionKind::Code);
    builder.segment("setup", SegmentKind::Setup);
    builder.upload(JOBS, &page);
    builder.segment("run", SegmentKind::Run);
    for at in [FIRST, SECOND] {
        builder.rearm(JOBS + at as u64);
        builder.submit(1, JOBS + at as u64, 1_000_000);
    }
    builder.finish().unwrap()
}

fn size(recording: &Recording) -> u64 {
    let mut bytes = [0; LocalStorage::SIZE];
    submissions(recording.verified().chains().unwrap(), |submission| {
        let memory = submission.memory;
        for job in follow(memory, submission.head).jobs(memory) {
            let mut draw = [0; Draw::SIZE];
            memory.read(job.address + job::COMPUTE_DRAW, &mut draw);
            let storage = descriptor_address(Draw::from_bytes(&draw).thread_storage());
            memory.read(storage, &mut bytes);
        }
        Ok::<(), Full>(())
    })
    .unwrap();
    LocalStorage::from_bytes(&bytes).tls_size()
}

#[test]
fn a_copy_has_the_status_that_it_is_made_of() {
    let file = recorded();
    let before = Recording::from_bytes(file.clone()).unwrap();
    let linked = link(&file, before.verified().chains().unwrap(), MOST_JOBS).unwrap();
    let after = Recording::from_bytes(linked.bytes).unwrap();
    assert_eq!(
        (size(&before), size(&after)),
        (JobStatus::DONE.0.into(), JobStatus::DONE.0.into())
    );
}
