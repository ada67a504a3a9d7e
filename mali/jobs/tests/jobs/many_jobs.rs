// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small file may submit the same jobs again and again.

use gpureplay_core::Limits;
use gpureplay_format::{Access, Builder, Recording, RegionKind, SegmentKind};
use mali_drive::verify;
use mali_facts::PROFILES;
use mali_jobs::walk::{DeepRule, check, check_only};

const JOBS: u64 = 0x200_0000;
const CHAIN: u64 = 1024;

#[test]
fn as_many_jobs_are_looked_at_as_may_be() {
    let checked = |times: u32| {
        let gpu = PROFILES[0].gpu_id.0;
        let mut builder = Builder::new(gpu);
        builder.identity(0, 0xffff_0000, gpu);
        builder.region(JOBS, 16, Access::READ_WRITE, RegionKind::Descriptors);
        builder.segment("setup", SegmentKind::Setup);
        let mut headers = vec![0; 64 * CHAIN as usize];
        for (next, header) in (1..).zip(headers.chunks_exact_mut(64)) {
            header[16] = 1 << 1 | 1;
            let next = if next < CHAIN { JOBS + 64 * next } else { 0 };
            header[24..32].copy_from_slice(&next.to_le_bytes());
        }
        builder.upload(JOBS, &headers);
        builder.segment("run", SegmentKind::Run);
        for _ in 0..times {
            builder.rearm(JOBS);
            builder.submit(1, JOBS, 1000);
        }
        let file = builder.finish().unwrap();
        let recording = Recording::parse(&file).unwrap();
        let verified = verify(&recording, &Limits::DEFAULT).unwrap();
        let report = check(&verified);
        assert_eq!(check_only(&verified), report.clone().map(drop));
        report
            .map(|report| report.jobs().count())
            .map_err(|broken| broken.rule)
    };
    assert_eq!(checked(256), Ok(1 << 18));
    assert_eq!(checked(257), Err(DeepRule::MemoryLimit));
}
