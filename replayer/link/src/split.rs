// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each job in a submission of its own.

use gpureplay_core::{Limits, Verified};
use gpureplay_format::layout::ActionEntry;
use gpureplay_format::{Opcode, Recording};
use gpureplay_inspect::submissions;
use mali_descriptors::{Job, follow};
use zerocopy::little_endian::{U32, U64};

use crate::edit::Edit;
use crate::error::LinkError;
use crate::linked::sound;

/// The same recording with each job in a chain of its own, in the same order. `None`: that is what it is already.
///
/// A job alone waits for all before it, so what a chain computes stays the same.
///
/// # Errors
/// Chains that break a rule.
pub fn split(verified: &Verified<'_>) -> Result<Option<Vec<u8>>, LinkError> {
    let recording = verified.recording();
    gpureplay_inspect::check(verified)?;
    let mut chains: Vec<Vec<Job>> = Vec::new();
    submissions(verified, |submission| {
        let followed = follow(submission.memory, submission.head);
        chains.push(followed.jobs(submission.memory).collect());
        Ok::<(), LinkError>(())
    })?;
    if chains.iter().all(|jobs| jobs.len() < 2) {
        return Ok(None);
    }
    let jobs: u64 = chains.iter().map(|jobs| jobs.len() as u64).sum();
    let longest = Limits::DEFAULT.total_us / jobs.max(1);
    let bytes = rewrite(
        recording,
        &chains,
        u32::try_from(longest).unwrap_or(u32::MAX),
    );
    sound(&bytes)?;
    Ok(Some(bytes))
}

/// How many jobs each chain has, in the order of their submission.
///
/// # Errors
/// More is uploaded than is kept of a recording's memory.
pub fn lengths(verified: &Verified<'_>) -> Result<Vec<u32>, LinkError> {
    let mut out = Vec::new();
    submissions(verified, |submission| {
        out.push(follow(submission.memory, submission.head).length);
        Ok::<(), LinkError>(())
    })?;
    Ok(out)
}

fn rewrite(recording: &Recording<'_>, chains: &[Vec<Job>], longest_us: u32) -> Vec<u8> {
    let mut edit = Edit::new(recording);
    let mut chains = chains.iter();
    for segment in recording.segments() {
        edit.segment(segment);
        let mut cursor = recording.cursor(segment);
        // What makes headers ready waits until it is known how many jobs there are.
        let mut ready: Vec<ActionEntry> = Vec::new();
        for entry in recording.segment_entries(segment) {
            // A verified recording has no malformed action.
            let _ = cursor.step(entry);
            match Opcode::from_code(entry.op.into()) {
                Some(Opcode::Rearm) => ready.push(*entry),
                Some(Opcode::Submit) => {
                    let jobs = chains.next().map_or(&[][..], Vec::as_slice);
                    let ready = std::mem::take(&mut ready);
                    if jobs.len() < 2 {
                        ready.into_iter().for_each(|entry| edit.push(entry));
                        edit.push(*entry);
                        continue;
                    }
                    for job in jobs {
                        let alone = ["Dependency 1", "Dependency 2", "Next"];
                        let header = alone
                            .iter()
                            .fold(job.header, |header, it| header.with(it, 0));
                        edit.headers(&[(job.address, header.with("Index", 1))], cursor.offset());
                        edit.action(Opcode::Rearm, job.address);
                        edit.push(ActionEntry {
                            c: U32::new(entry.c.get().min(longest_us)),
                            d: U64::new(job.address),
                            ..*entry
                        });
                    }
                }
                _ => edit.push(*entry),
            }
        }
    }
    edit.encode()
}
