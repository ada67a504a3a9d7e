// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accepted at a limit, refused one beyond.

use gpureplay_core::{Limits, Rule};
use gpureplay_format::{
    Access, Builder, ElementType, Piece, Recording, RegionKind, SegmentKind, Tensor, TensorKind,
};
use mali_drive::verify;

const GPU: u32 = 0x7212_0000;
const JOBS: u64 = 0x200_0000;
const DATA: u64 = 0x1_0000_0000;

fn rule(pages: u32, run: impl FnOnce(&mut Builder)) -> Option<Rule> {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, pages, Access::READ_WRITE, RegionKind::Data);
    run(&mut builder);
    let bytes = builder.finish().unwrap();
    let recording = Recording::parse(&bytes).unwrap();
    verify(&recording, &Limits::DEFAULT)
        .err()
        .map(|violation| violation.rule)
}

#[test]
fn memory_with_its_page_tables_has_a_limit() {
    let sound = |pages| {
        let broken = rule(pages, |builder| builder.segment("run", SegmentKind::Run));
        assert!(
            matches!(broken, None | Some(Rule::MemoryLimit)),
            "{broken:?}"
        );
        broken.is_none()
    };
    let (mut less, mut more) = (1, 1 << 20);
    assert!(sound(less) && !sound(more));
    while more - less > 1 {
        let middle = less.midpoint(more);
        match sound(middle) {
            true => less = middle,
            false => more = middle,
        }
    }
    // A table per 512 pages, counted for 256, and six per region: 4 GiB.
    let limit = Limits::DEFAULT.pages;
    assert_eq!(limit, 1 << 20);
    assert_eq!(u64::from(less + less / 256 + 6) + (1 + 6), limit);
}

#[test]
fn waits_have_a_limit_each_and_all_together() {
    let waits = |count: u32, last: u32| {
        rule(1, |builder| {
            builder.segment("run", SegmentKind::Run);
            for index in 1..=count {
                let time = if index == count { last } else { 60_000_000 };
                builder.rearm(JOBS);
                builder.submit(1, JOBS, time);
            }
        })
    };
    assert_eq!(waits(1, 60_000_000), None);
    assert_eq!(waits(1, 60_000_001), Some(Rule::BoundedWait));
    assert_eq!(waits(60, 60_000_000), None);
    assert_eq!(waits(61, 1), Some(Rule::TotalTime));
}

#[test]
fn bytes_moved_have_a_limit() {
    // 64 GiB in 1 GiB fills, and a byte more; a tensor counts alike.
    let moved = |fills: u32, more: u32| {
        rule(1 << 18, |builder| {
            let kind = TensorKind::Input;
            let tensor = Tensor::dense("x", kind, ElementType::U8, &[more.max(1)], DATA);
            let tensor = builder.tensor(tensor);
            builder.segment("run", SegmentKind::Run);
            (0..fills).for_each(|_| builder.fill(DATA, 1 << 30, 1));
            if more > 0 {
                builder.bind_input(tensor);
            }
        })
    };
    assert_eq!(moved(64, 0), None);
    assert_eq!(moved(64, 1), Some(Rule::TotalBytes));
    assert_eq!(moved(63, 1 << 30), None);
    // A tensor counts once for each piece.
    let bound = |bytes: u32, pieces: u64, more: u32| {
        rule(1 << 18, |builder| {
            let mut tensor = Tensor::dense("x", TensorKind::Input, ElementType::U8, &[bytes], DATA);
            let piece = |place| Piece::strided(&[bytes], &[1], DATA + place);
            tensor.pieces = (0..pieces).map(piece).collect();
            let tensor = builder.tensor(tensor);
            builder.segment("run", SegmentKind::Run);
            (0..64).for_each(|_| builder.bind_input(tensor));
            if more > 0 {
                builder.fill(DATA, more, 1);
            }
        })
    };
    let all = 1 << 30;
    for (bytes, pieces) in [(all, 1), (all / 2, 2), (all / 8, 8)] {
        assert_eq!(bound(bytes, pieces, 0), None);
        assert_eq!(bound(bytes, pieces, 1), Some(Rule::TotalBytes));
    }
}
