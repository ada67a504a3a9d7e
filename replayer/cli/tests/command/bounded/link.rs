// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joining chains that share pages.

use super::*;

/// Two null jobs each, from [`JOBS`] on; each shares a page with the previous chain. A tensor lies just before the
/// first page.
fn chains_that_share_pages(chains: u64) -> Vec<u8> {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    let access = Access::READ_WRITE;
    builder.region(JOBS - 4096, 1, access, RegionKind::Data);
    builder.region(JOBS, chains as u32 + 1, access, RegionKind::Descriptors);
    let tensor = Tensor::dense("x", TensorKind::Weight, ElementType::U8, &[16], JOBS - 16);
    let tensor = builder.tensor(tensor);
    builder.segment("setup", SegmentKind::Setup);
    let pages = || (0..chains).rev().map(|at| JOBS + 4096 * at);
    for page in pages() {
        builder.upload(page, &null_job(page + 4096 + 64));
        builder.upload(page + 4096 + 64, &null_job(0));
    }
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(tensor);
    for page in pages() {
        builder.rearm(page);
        builder.rearm(page + 4096 + 64);
        builder.submit(1, page, 1000);
    }
    builder.finish().unwrap()
}

fn linked(recording: &[u8], memory: &str) -> (i32, String, String) {
    let file = File::new(recording);
    let (from, to) = (file.0.path().display(), file.0.text("linked"));
    limited(memory, &format!("link {from} -o {to}"))
}

#[test]
fn chains_that_share_pages_are_looked_at_once() {
    linked(&chains_that_share_pages(30_000), MEMORY)
        .gave(0)
        .says("30000 chains instead of 30000");
}

#[test]
fn chains_have_as_many_copies_as_they_may() {
    let submitted = |times: usize| {
        let mut builder = Builder::new(GPU);
        builder.identity(0, 0xffff_0000, GPU);
        builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
        builder.segment("setup", SegmentKind::Setup);
        builder.upload(JOBS, &null_job(0));
        builder.segment("run", SegmentKind::Run);
        for _ in 0..times {
            builder.rearm(JOBS);
            builder.submit(1, JOBS, 1000);
        }
        builder.finish().unwrap()
    };
    // A quarter of the address space that other commands get.
    let memory = "-v 262144";
    linked(&submitted(1 << 14), memory)
        .gave(0)
        .says("256 chains instead of 16384");
    linked(&submitted((1 << 14) + 1), memory).ended(3, "more than 16384 pages");
}
