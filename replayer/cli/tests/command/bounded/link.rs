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

/// `memory` in KiB of address space; few processor seconds.
fn linked(recording: &[u8], memory: &str) -> (i32, String) {
    let file = File::new(recording);
    let output = Command::new("sh")
        .args(["-c", "ulimit -t 20 && ulimit -v $0 && exec \"$@\"", memory])
        .arg(env!("CARGO_BIN_EXE_gpureplay"))
        .arg("link")
        .arg(file.0.path())
        .arg("-o")
        .arg(file.at("linked"))
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let code = output.status.code().unwrap_or(-1);
    (code, String::from_utf8(text).unwrap())
}

#[test]
fn chains_that_share_pages_are_looked_at_once() {
    linked(&chains_that_share_pages(30_000), MEMORY).ended(0, "30000 chains instead of 30000");
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
    // A quarter of other commands'.
    let memory = "262144";
    let (code, text) = linked(&submitted(1 << 14), memory);
    assert!(
        text.contains("256 chains instead of 16384"),
        "{code} {text}"
    );
    linked(&submitted((1 << 14) + 1), memory).ended(3, "more than 16384 pages");
}
