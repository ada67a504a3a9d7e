// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each job in a submission of its own.

use crate::walk::submissions;
use gpureplay_core::Limits;
use gpureplay_format::encode::Draft;
use gpureplay_format::layout::ActionEntry;
use gpureplay_format::{EncodeError, Opcode, Recording};
use mali_drive::Verified;
use mali_facts::{Job, follow};
use zerocopy::little_endian::{U32, U64};

use crate::link::chains::{Count, chains};
use crate::link::error::LinkError;
use crate::link::linked::{sound, upload_headers, written};

/// Puts each job into its own chain, in the same order, for tools that stop, measure or change single jobs. `None`:
/// it is so already.
///
/// Each waits for all before: results stay the same.
///
/// # Errors
/// Chains that break a rule.
pub fn split(verified: &Verified<'_>) -> Result<Option<Vec<u8>>, LinkError> {
    let recording = verified.recording();
    let chains = chains(verified)?;
    crate::walk::check_only(verified)?;
    if chains.iter().all(|jobs| jobs.len() < 2) {
        return Ok(None);
    }
    // Chains of one job keep their time-outs; the others share the rest.
    let submits = recording.segments().iter();
    let submits = submits.flat_map(|segment| recording.segment_entries(segment));
    let submits = submits.filter(|entry| entry.op == Opcode::Submit.code());
    let (mut kept, mut jobs) = (0u64, 0u64);
    for (entry, chain) in submits.zip(&chains) {
        match chain.len() {
            0 | 1 => kept = kept.saturating_add(entry.c.get().into()),
            more => jobs = jobs.saturating_add(more as u64),
        }
    }
    let longest = Limits::DEFAULT.total_us.saturating_sub(kept) / jobs.max(1);
    let bytes = rewrite(
        recording,
        &chains,
        u32::try_from(longest).unwrap_or(u32::MAX),
    )?;
    sound(&written(&bytes)?)?;
    Ok(Some(bytes))
}

/// Jobs of each chain, in order.
///
/// # Errors
/// Uploads are too large, or jobs too many.
pub fn lengths(verified: &Verified<'_>) -> Result<Vec<u32>, LinkError> {
    let (mut out, mut count) = (Vec::new(), Count::default());
    submissions(verified, |submission| {
        let length = follow(submission.memory, submission.head).length;
        count.add(length as usize)?;
        out.push(length);
        Ok::<(), LinkError>(())
    })?;
    Ok(out)
}

fn rewrite(
    recording: &Recording<'_>,
    chains: &[Vec<Job>],
    longest_us: u32,
) -> Result<Vec<u8>, EncodeError> {
    let mut draft = Draft::new(recording);
    let mut chains = chains.iter();
    for segment in recording.segments() {
        draft.segment(segment);
        let mut ready: Vec<ActionEntry> = Vec::new();
        for step in recording.steps(segment).flatten() {
            match step.opcode {
                Opcode::Rearm => ready.push(*step.entry),
                Opcode::Submit => {
                    let jobs = chains.next().map_or(&[][..], Vec::as_slice);
                    let ready = std::mem::take(&mut ready);
                    if jobs.len() < 2 {
                        ready.into_iter().for_each(|entry| draft.push(entry));
                        draft.push(*step.entry);
                        continue;
                    }
                    for job in jobs {
                        let alone = ["Dependency 1", "Dependency 2", "Next"];
                        let header = alone
                            .iter()
                            .fold(job.header, |header, it| header.with(it, 0));
                        let header = (job.address, header.with("Index", 1));
                        upload_headers(&mut draft, &[header], step.after);
                        draft.action(Opcode::Rearm, job.address);
                        draft.push(ActionEntry {
                            c: U32::new(step.entry.c.get().min(longest_us)),
                            d: U64::new(job.address),
                            ..*step.entry
                        });
                    }
                }
                _ => draft.push(*step.entry),
            }
        }
    }
    draft.encode()
}
