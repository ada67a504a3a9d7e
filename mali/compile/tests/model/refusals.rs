// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces and tensors of which no recording can be made.

use gpureplay_compile::{Capture, CompileError, Options, Role};
use gpureplay_format::MAX_SUBMITTED_JOBS;
use gpureplay_tensors::{ElementType, Tensor};
use gpureplay_trace::{Driver, PAGE_SIZE, Phase, RegionFlags, Writer};

use crate::app::*;

fn read(
    write: impl FnOnce(&mut Writer<Vec<u8>>) -> std::io::Result<()>,
) -> Result<Capture, CompileError> {
    let mut trace = Writer::begin(Vec::new(), Driver::Panfrost, true, "panfrost", "6.12").unwrap();
    write(&mut trace).unwrap();
    Capture::read(trace.end().unwrap().as_slice())
}

#[test]
fn tensors_that_are_not_there_are_explained() {
    let (a, b) = (tags(1), tags(2));
    let run = App::default().record(&a, &b);
    let zeros = Tensor::zeros(ElementType::F32, &[32, 32]).unwrap();
    for (role, tensor, words) in [
        (
            Role::Input,
            tags(77),
            &["input 'x' (f32 [32, 32])", "nowhere"][..],
        ),
        (
            Role::Input,
            tensor(|_| 1.0),
            &["gpureplay record --make-input FILE.npy --shape 32,32 --dtype f32"],
        ),
        (Role::Output, a.clone(), &["output 'x'"]),
        (
            Role::Input,
            added(&[&a, &b]),
            &["nowhere in memory that the app wrote"],
        ),
        (
            Role::Intermediate,
            a.clone(),
            &["intermediate 'x'", "the GPU wrote"],
        ),
        (Role::Intermediate, zeros, &["all zero"]),
    ] {
        let text = run.refusal(&[file(role, "x", &tensor)]);
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{words:?}: {text}"
        );
    }
}

#[test]
fn incomplete_traces_are_refused() {
    let trace = App::default().record(&tags(1), &tags(2)).trace;
    let text = |bytes: &[u8]| Capture::read(bytes).unwrap_err().to_string();
    assert!(text(&trace[..trace.len() - 40]).contains("no END"));
    assert!(text(&[&trace[..120], &trace[152..]].concat()).contains("missing"));
    assert!(text(b"GPUREPLYx").contains("not a raw trace"));
}

#[test]
fn regions_map_as_much_as_a_recording_may_have() {
    let listed = |regions: &[(u64, u64)]| {
        read(|trace| {
            let mut regions = regions.iter();
            regions.try_for_each(|&(va, pages)| trace.region(0, RegionFlags::READ, va, pages))
        })
    };
    let limit = 1u64 << 20;
    let too_much = |result| matches!(result, Err(CompileError::TooMuchMemory { .. }));
    // However often listed; the error is then that nothing runs.
    let all = listed(&vec![(0x1000, limit); 100]);
    assert!(matches!(all, Err(CompileError::NoJobs)), "{all:?}");
    assert!(too_much(listed(&[(0x1000, limit + 1)])));
    assert!(too_much(listed(&[
        (0x1000, limit),
        (0x1000 + (limit << 12), 1)
    ])));
    // Refused before its pages are counted one by one.
    assert!(too_much(listed(&[(0, u64::MAX >> 12)])));
    // Whole and cut in two: 64 GiB are taken, a page more is not.
    let cut = |at: u64| [(0x1000, at), (0x1000 + (at << 12), limit - at)];
    let mut cuts: Vec<_> = (2..17).flat_map(cut).collect();
    cuts.extend([(0x1000, limit), (0x1000, 1)]);
    let refused_at = match listed(&cuts) {
        Err(CompileError::TooMuchMemory { pages }) => pages,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused_at, (64 << 30 >> 12) + 1);
}

#[test]
fn submissions_have_as_many_jobs_in_all_as_they_may() {
    const CHAIN: u64 = 0x100_0000;
    const LONG: u64 = 0xffff;
    let header = |index: u64| {
        let next = match index + 1 {
            LONG => 0,
            next => CHAIN + 64 * next,
        };
        let mut bytes = [0; 64];
        bytes[16] = 1 | 1 << 1;
        bytes[24..32].copy_from_slice(&next.to_le_bytes());
        bytes
    };
    let headers: Vec<u8> = (0..=LONG).flat_map(header).collect();
    let submitted = |chains: &[u64]| {
        read(|trace| {
            trace.reg_read(0, 0x7212_0000)?;
            let (pages, _) = headers.as_chunks::<PAGE_SIZE>();
            for (page, va) in pages.iter().zip((CHAIN..).step_by(PAGE_SIZE)) {
                trace.page(0, Phase::Before, va, page)?;
            }
            for &jobs in chains {
                let head = CHAIN + 64 * (LONG - jobs);
                trace.reg_write(0x18c0, head as u32)?;
                trace.submit(1, 0, head)?;
                trace.complete(1, 1)?;
            }
            Ok(())
        })
    };
    let most = MAX_SUBMITTED_JOBS as u64;
    let mut chains = vec![LONG; (most / LONG) as usize];
    chains.push(most % LONG);
    let capture = submitted(&chains).unwrap();
    let jobs: usize = capture.jobs.iter().map(|job| job.headers.len()).sum();
    assert_eq!(jobs, MAX_SUBMITTED_JOBS);
    let second = capture.jobs[0].headers.in_page(CHAIN + PAGE_SIZE as u64);
    let expected = (64..128).map(|index| CHAIN + 64 * index);
    assert!(second.eq(expected));
    chains.push(1);
    let error = submitted(&chains).unwrap_err();
    assert!(
        matches!(error, CompileError::TooManyJobs { job: 5, .. }),
        "{error}"
    );
    // Repeated refusals keep nothing.
    assert!(submitted(&vec![LONG; 400]).is_err());
}

#[test]
fn descriptors_that_the_trace_has_as_another_jobs_work_are_refused() {
    const CHAIN: u64 = 0x100_0000;
    let page = |jobs: usize| {
        let mut page = [0; PAGE_SIZE];
        for job in 0..jobs {
            page[64 * job + 16] = 1 | 1 << 1;
        }
        page
    };
    let recorded = |phase: Phase| {
        read(|trace| {
            trace.reg_read(0, 0x7212_0000)?;
            trace.page(0, Phase::Before, CHAIN, &page(1))?;
            trace.reg_write(0x18c0, CHAIN as u32)?;
            trace.submit(1, 0, CHAIN)?;
            // A status, which the GPU does write.
            let mut ended = page(if phase == Phase::After { 2 } else { 1 });
            ended[0] = 1;
            trace.page(0, Phase::After, CHAIN, &ended)?;
            trace.complete(1, 1)?;
            if phase == Phase::Before {
                trace.page(0, Phase::Before, CHAIN, &page(2))?;
            }
            for chain in [CHAIN, CHAIN + 64] {
                trace.reg_write(0x18c0, chain as u32)?;
                trace.submit(1, 0, chain)?;
                trace.complete(1, 1)?;
            }
            Ok(())
        })
    };
    assert_eq!(recorded(Phase::Before).unwrap().jobs.len(), 3);
    let error = recorded(Phase::After).unwrap_err();
    let (job, va, during) = (2, CHAIN + 64, 0);
    let expected = CompileError::WrittenByAJob { job, va, during };
    assert_eq!(error.to_string(), expected.to_string());
}

#[test]
fn addresses_that_no_gpu_has_are_refused() {
    let seen = |page: bool, va: u64| {
        let read = read(|trace| match page {
            true => trace.page(0, Phase::Before, va, &[0; PAGE_SIZE]),
            false => trace.region(0, RegionFlags::READ, va, 1),
        });
        read.unwrap_err()
    };
    for page in [true, false] {
        // The last valid one; the error is then that nothing runs.
        let last = seen(page, (1 << 48) - 0x1000);
        assert!(matches!(last, CompileError::NoJobs), "{last}");
        for va in [1 << 48, 1 << 63] {
            let error = seen(page, va);
            assert!(matches!(error, CompileError::Address { .. }), "{error}");
        }
    }
}

#[test]
fn jobs_in_address_spaces_that_no_gpu_has_are_refused() {
    let submitted = |space: u32| read(|trace| trace.submit(1, space, 0)).map(|_| ());
    let last = submitted(15);
    let unfinished = matches!(last, Err(CompileError::JobUnfinished { job: 0 }));
    assert!(unfinished, "{last:?}");
    for wrong in [16, 1 << 26, u32::MAX - 1] {
        let found = submitted(wrong);
        let named =
            matches!(found, Err(CompileError::AddressSpace { space, .. }) if space == wrong);
        assert!(named, "{found:?}");
    }
}

#[test]
fn a_buffer_may_be_announced_with_any_size() {
    let mut run = App::default().record(&tags(1), &tags(2));
    let plain = run.compiled(&Options::default()).recording;
    // Address and size: a page.
    let said = [OUT.to_le_bytes(), 4096u64.to_le_bytes()].concat();
    let mut places = run.trace.windows(said.len());
    let at = places.position(|bytes| bytes == said).unwrap();
    for size in [u64::MAX >> 1, u64::MAX] {
        run.trace[at + 8..at + 16].copy_from_slice(&size.to_le_bytes());
        assert_eq!(run.compiled(&Options::default()).recording, plain);
    }
}
