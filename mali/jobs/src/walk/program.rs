// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a recording without a device.

use gpureplay_core::family::Family;
use gpureplay_core::verify::Verified;
use gpureplay_format::Action;
use gpureplay_format::lz4::History;
use mali_facts::follow;
use mali_facts::registers::JobStatus;

use crate::walk::image::Image;

/// Submitted chain or stream.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// Set-up included, from 0.
    pub number: u32,
    /// Index.
    pub segment: u32,
    /// Index.
    pub action: u32,
    /// Job slot or queue.
    pub slot: u8,
    /// Address of the first job's header; 0 for a stream.
    pub head: u64,
    /// A stream's; empty for a chain.
    pub words: &'a [u8],
    /// Made ready since the last submission, in order.
    pub rearmed: &'a [u64],
    /// Without what jobs wrote. Headers of earlier chains have their status: a driver may take such a word for a
    /// field of the next job.
    pub memory: &'a Image,
}

/// More memory is uploaded than is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Index.
    pub action: u32,
    /// Destination.
    pub address: u64,
}

/// Step of the program.
pub enum Event<'a> {
    /// By an upload, a fill, a header made ready, a job's status.
    Changed {
        /// Index.
        action: u32,
        /// GPU address.
        va: u64,
        /// Bytes.
        length: u64,
        /// Memory afterwards.
        memory: &'a Image,
    },
    /// Chain or stream.
    Submitted(Submission<'a>),
}

/// Visits each submission of a replay.
///
/// # Errors
/// What `visit` returns, or [`Full`].
pub fn submissions<F: Family, E: From<Full>>(
    verified: &Verified<'_, F>,
    mut visit: impl FnMut(&Submission<'_>) -> Result<(), E>,
) -> Result<(), E> {
    events(verified, |event| match event {
        Event::Submitted(submission) => visit(submission),
        Event::Changed { .. } => Ok(()),
    })
}

/// As [`submissions`], with each change of memory.
///
/// # Errors
/// What `visit` returns, or [`Full`].
pub fn events<F: Family, E: From<Full>>(
    verified: &Verified<'_, F>,
    mut visit: impl FnMut(&Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let recording = verified.recording();
    let mut memory = Image::default();
    let mut history = Box::new(History::new());
    let mut number = 0;
    for (segment, entry) in (0..).zip(recording.segments()) {
        history.clear();
        let first = entry.first_action.get();
        let mut rearmed = Vec::new();
        for (action, step) in (first..).zip(recording.segment_actions(entry)) {
            let mut changed = Vec::new();
            let full = |address| E::from(Full { action, address });
            match step {
                Ok(step @ (Action::Upload { .. } | Action::Fill { .. })) => {
                    changed.extend(store(&mut memory, &mut history, &step).map_err(full)?);
                }
                Ok(Action::Rearm { va }) => {
                    memory.write(va, &[0; 16]).ok_or_else(|| full(va))?;
                    rearmed.push(va);
                    changed.push((va, 16));
                }
                Ok(Action::Submit { slot, chain, .. }) => {
                    visit(&Event::Submitted(Submission {
                        number,
                        segment,
                        action,
                        slot,
                        head: chain,
                        words: &[],
                        rearmed: &rearmed,
                        memory: &memory,
                    }))?;
                    number += 1;
                    rearmed.clear();
                    changed = write_back(&mut memory, chain).map_err(full)?;
                }
                Ok(Action::Launch { queue, words, .. }) => {
                    visit(&Event::Submitted(Submission {
                        number,
                        segment,
                        action,
                        slot: queue,
                        head: 0,
                        words,
                        rearmed: &[],
                        memory: &memory,
                    }))?;
                    number += 1;
                }
                _ => {}
            }
            for (va, length) in changed {
                visit(&Event::Changed {
                    action,
                    va,
                    length,
                    memory: &memory,
                })?;
            }
        }
    }
    Ok(())
}

/// Address and bytes; `None` unless it uploads or fills. The error is an address without room.
fn store(
    memory: &mut Image,
    history: &mut History,
    step: &Action<'_>,
) -> Result<Option<(u64, u64)>, u64> {
    match *step {
        Action::Upload {
            va,
            length,
            payload,
        } => {
            let bytes = payload.bytes(history, length as usize);
            memory.write(va, bytes.unwrap_or(&[])).ok_or(va)?;
            Ok(Some((va, length.into())))
        }
        Action::Fill { va, length, byte } => {
            memory.fill(va, length, byte).ok_or(va)?;
            Ok(Some((va, length.into())))
        }
        _ => Ok(None),
    }
}

/// Marks jobs as done, as the job manager does: recordings cannot forbid it (rule `job-configuration`).
fn write_back(memory: &mut Image, head: u64) -> Result<Vec<(u64, u64)>, u64> {
    let jobs = follow(memory, head).jobs(memory);
    let headers: Vec<u64> = jobs.map(|job| job.address).collect();
    let done = JobStatus::DONE.0.to_le_bytes();
    for header in &headers {
        memory.write(*header, &done).ok_or(*header)?;
    }
    let length = done.len() as u64;
    Ok(headers.into_iter().map(|header| (header, length)).collect())
}
