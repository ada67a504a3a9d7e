// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiler, inspector and model agree on job types.

use gpureplay_compile::chain;
use gpureplay_compile::pages::{Memory, Moment};
use gpureplay_core::Limits;
use gpureplay_format::{Access, Builder, Recording, RegionKind, SegmentKind};
use mali_drive::verify;
use mali_facts::{JobType, PROFILES};
use mali_jobs::walk::{DeepRule, DeepViolation, check};

const JOBS: u64 = 0x200_0000;
const DATA: u64 = 0x300_0000;

/// A write-value job writes eight bytes; a compute job reads the same payload as one thread's invocation.
fn page(number: u8) -> [u8; 4096] {
    let mut page = [0; 4096];
    page[16] = 1 | number << 1;
    if number == JobType::WriteValue as u8 {
        page[32..40].copy_from_slice(&DATA.to_le_bytes());
        page[40] = 7;
    }
    let state = 64 + 14 * 4;
    page[state..state + 8].copy_from_slice(&(JOBS + 0x100).to_le_bytes());
    page[0x100..0x108].copy_from_slice(&(DATA + 0x1000).to_le_bytes());
    page
}

fn inspected(number: u8) -> Result<(), DeepViolation> {
    let mut builder = Builder::new(PROFILES[0].gpu_id.0);
    builder.identity(0, 0xffff_0000, PROFILES[0].gpu_id.0);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    builder.region(DATA + 0x1000, 1, Access::READ_EXECUTE, RegionKind::Code);
    builder.segment("setup", SegmentKind::Setup);
    builder.upload(JOBS, &page(number));
    builder.segment("run", SegmentKind::Run);
    builder.rearm(JOBS);
    builder.submit(1, JOBS, 1_000_000);
    let file = builder.finish().unwrap();
    let recording = Recording::parse(&file).unwrap();
    check(&verify(&recording, &Limits::DEFAULT).unwrap()).map(|_| ())
}

fn compiled(number: u8) -> Result<(), chain::ChainError> {
    let mut memory = Memory::default();
    memory.set(Moment::before(0), JOBS, Some(&page(number)));
    chain::walk(&memory, Moment::before(0), JOBS).map(|_| ())
}

#[test]
fn a_type_is_replayed_everywhere_or_nowhere() {
    for number in 0..=127 {
        let known = JobType::from_bits(number.into());
        let replayed = known.is_some_and(JobType::is_replayed);
        match inspected(number) {
            Ok(()) => assert!(replayed, "the inspector takes {number}"),
            Err(broken) => {
                assert_eq!(broken.rule, DeepRule::JobType, "{broken}");
                assert!(!replayed, "the inspector refuses {number}: {broken}");
            }
        }
        match compiled(number) {
            Ok(()) => assert!(replayed, "the compiler takes {number}"),
            Err(error) => {
                let kind = chain::ChainError::Kind {
                    va: JOBS,
                    kind: number,
                };
                assert_eq!(error, kind);
                assert!(!replayed, "the compiler refuses {number}");
            }
        }
    }
}

/// `mali-model` runs them too (`every_type_that_is_replayed_runs`).
#[test]
fn every_product_has_a_slot_for_every_type_that_is_replayed() {
    for profile in PROFILES {
        for kind in JobType::ALL.into_iter().filter(|kind| kind.is_replayed()) {
            let slots = profile
                .js_features
                .map(|features| features >> kind as u32 & 1);
            assert_eq!(slots[1], 1, "{} {}", profile.name, kind.name());
        }
    }
}
