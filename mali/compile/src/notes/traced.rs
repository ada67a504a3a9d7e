// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors from two runs, without notes or files.
//!
//! Different app writes before a job are inputs; different writes of the last job are outputs. Both are widened to what
//! was written around them in the buffer: values may be alike by chance. A trace shows no names, and no end where outer
//! values are alike: the user may state type and shape, up to the buffer's end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use gpureplay_format::Piece;
use gpureplay_tensors::{Element, Form, Layout, Names, Tensor};
use gpureplay_trace::PAGE_SIZE;
use mali_facts::job::WRITTEN_BACK;

use super::error::ProposeError;
use super::naming;
use super::place::Moved;
use super::propose::{Choices, Proposal, apply};
use crate::capture::Capture;
use crate::mapped::Mapped;
use crate::pages::Moment;
use crate::plan::scratch;
use crate::ranges::Ranges;
use crate::relocation::Renaming;
use crate::tag::{Found, Role};

const PAGE: u64 = PAGE_SIZE as u64;
/// In bytes.
const GAP: u64 = 64;
/// In bytes. Less is a number of app or driver, which the comparison names.
const LEAST: u64 = 32;

struct Difference {
    at: Range<u64>,
    end: u64,
}

/// # Errors
/// Different numbers of jobs, or a choice names no tensor or does not fit.
pub fn propose_unnoted(
    first: &Capture,
    second: &Capture,
    choices: &Choices,
) -> Result<Proposal, ProposeError> {
    if first.jobs.len() != second.jobs.len() {
        return Err(ProposeError::Jobs {
            first: first.jobs.len(),
            second: second.jobs.len(),
        });
    }
    let mut proposal = Proposal {
        sure: true,
        ..Proposal::default()
    };
    let mut taken = Names::default();
    let mut mapped = [Mapped::new(first), Mapped::new(second)];
    let mut moved = Moved::of(first);
    for job in 0..first.jobs.len() {
        mapped.iter_mut().for_each(|mapped| mapped.go_to(job));
        let renaming = Renaming::find([first, second], &mapped, job);
        let runs = (first, second, &renaming);
        let is_last = job + 1 == first.jobs.len();
        let mut parts = vec![(Role::Input, Moment::before(job))];
        parts.extend(is_last.then_some((Role::Output, Moment::after(job))));
        for (role, moment) in parts {
            for difference in differences(runs, &mapped[0], moment) {
                let base = match role {
                    Role::Input => "input",
                    _ => "output",
                };
                let name = taken.unique(base.to_owned());
                add(
                    (&mut proposal, &mut moved),
                    runs,
                    choices,
                    (role, name, moment),
                    difference,
                );
            }
        }
    }
    moved.was_enough()?;
    not_computed((first, second), &proposal)?;
    let has = |role| proposal.tensors.iter().any(|tensor| tensor.role == role);
    let (input, output) = (has(Role::Input), has(Role::Output));
    let mut remark = |text: &str| proposal.remarks.push(text.to_owned());
    remark(
        "the trace has no notes of OpenCL calls: tensors are what differs between the two runs; --tensors or --name and --tensor say more of them",
    );
    if !input {
        remark("no input: what the app writes for jobs is the same in both runs");
    }
    if !output {
        remark("no output: the last job computes the same in both runs");
    }
    apply(&mut proposal, choices)?;
    Ok(proposal)
}

/// A replay repeats no CPU copies of results.
fn not_computed(
    (first, second): (&Capture, &Capture),
    proposal: &Proposal,
) -> Result<(), ProposeError> {
    let late = |tensor: &&Found| tensor.role == Role::Input && tensor.job > 0;
    let found: Vec<&Found> = proposal.tensors.iter().filter(late).collect();
    let values: HashMap<&str, &Tensor> = proposal
        .second
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor))
        .collect();
    let both = found.iter().filter_map(|tensor| {
        let other = values.get(tensor.name.as_str())?;
        Some((tensor.job, [tensor.tensor.bytes(), other.bytes()]))
    });
    let both: Vec<(usize, [&[u8]; 2])> = both.collect();
    let in_run = |capture: &Capture, run: usize| {
        let candidates = both.iter().map(|(job, bytes)| (*job, bytes[run]));
        computed_before(capture, &candidates.collect::<Vec<_>>())
    };
    let (ours, theirs) = (in_run(first, 0), in_run(second, 1));
    let mut pairs = found.iter().zip(ours.into_iter().zip(theirs));
    let copy = pairs.find_map(|(tensor, (one, other))| Some((tensor, one?.max(other?))));
    match copy {
        None => Ok(()),
        Some((tensor, from)) => Err(ProposeError::Carried {
            name: tensor.name.clone(),
            job: tensor.job,
            from,
        }),
    }
}

/// Per candidate: the earlier job that wrote the same bytes.
fn computed_before(capture: &Capture, candidates: &[(usize, &[u8])]) -> Vec<Option<usize>> {
    // Equal contents share a sample.
    let mut samples: HashMap<Sample, Vec<(usize, usize)>> = HashMap::new();
    let mut counts = vec![0; candidates.len()];
    for (candidate, (_, bytes)) in candidates.iter().enumerate() {
        for sample in samples_of(bytes) {
            let places = samples.entry(sample).or_default();
            if places.len() < SAMPLES {
                places.push((candidate, counts[candidate]));
                counts[candidate] += 1;
            }
        }
    }
    let mut seen: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); candidates.len()];
    let mut last = vec![0; candidates.len()];
    let jobs = candidates.iter().map(|(job, _)| *job).max().unwrap_or(0);
    for job in 0..jobs {
        let moment = Moment::after(job);
        for va in capture.memory.changed(moment) {
            let page = capture.memory.page(moment, *va);
            let mut from = 0;
            for (start, end) in capture.memory.difference(moment, *va) {
                let first = (start - start % WORD)
                    .saturating_sub(SAMPLE - WORD)
                    .max(from);
                from = end.next_multiple_of(WORD).min(PAGE_SIZE);
                for at in (first..from).step_by(WORD) {
                    let Some(sample) = page.get(at..).and_then(|rest| rest.first_chunk()) else {
                        break;
                    };
                    for (candidate, index) in samples.get(sample).into_iter().flatten() {
                        if candidates
                            .get(*candidate)
                            .is_some_and(|(until, _)| job < *until)
                        {
                            seen[*candidate].insert(*index);
                            last[*candidate] = job;
                        }
                    }
                }
            }
        }
    }
    let counted = counts.iter().zip(&seen).zip(&last);
    counted
        .map(|((count, seen), last)| (*count >= FEWEST && 2 * seen.len() > *count).then_some(*last))
        .collect()
}

/// Bytes of a sample, and its alignment.
const SAMPLE: usize = 16;
const WORD: usize = 4;
/// Per tensor.
const SAMPLES: usize = 64;
const FEWEST: usize = 2;

type Sample = [u8; SAMPLE];

/// Spread over the bytes, without common ones such as zeros.
fn samples_of(bytes: &[u8]) -> impl Iterator<Item = Sample> + '_ {
    let telling = |sample: &&Sample| {
        let (words, _) = sample.as_chunks::<WORD>();
        words.iter().collect::<BTreeSet<_>>().len() > 2
    };
    let (all, _) = bytes.as_chunks::<SAMPLE>();
    let step = (all.len() / SAMPLES).max(1);
    all.iter()
        .step_by(step)
        .filter(telling)
        .take(SAMPLES)
        .copied()
}

fn differences(
    (first, second, renaming): (&Capture, &Capture, &Renaming),
    mapped: &Mapped<'_>,
    moment: Moment,
) -> Vec<Difference> {
    let mut ignored = Ranges::default();
    for header in first.jobs[moment.job()].headers.iter() {
        ignored.add(header.address, header.address.saturating_add(WRITTEN_BACK));
    }
    // What threads leave in their storage is no result.
    if moment == Moment::after(moment.job()) {
        let storage = scratch(first, moment.job()..moment.job() + 1);
        storage
            .iter()
            .for_each(|(start, end)| ignored.add(start, end));
    }
    // By buffer: start to end, written and different.
    let mut buffers: BTreeMap<(u64, u64), (Ranges, Ranges)> = BTreeMap::new();
    for va in first.memory.changed(moment) {
        let other = renaming.second_page(*va);
        let place = mapped.holder(*va).map(|holder| holder.buffer);
        let place = place.map_or((*va, va.saturating_add(PAGE)), |buffer| {
            (buffer.va, buffer.va.saturating_add(buffer.size))
        });
        let (written, different) = buffers.entry(place).or_default();
        let mut here = Ranges::default();
        for (capture, page) in [(first, *va), (second, other)] {
            for (start, end) in capture.memory.difference(moment, page) {
                here.add(va + start as u64, va + end as u64);
            }
        }
        let pages = (
            first.memory.page(moment, *va),
            second.memory.page(moment, other),
        );
        for at in renaming.different_words(pages.0, pages.1).0 {
            let word = va + at as u64;
            for (start, end) in here.within(word, word + 4) {
                for (start, end) in ignored.outside(start, end) {
                    different.add(start - start % 4, end.next_multiple_of(4));
                }
            }
        }
        for (start, end) in here.iter() {
            written.add(start, end);
        }
    }
    let mut out = Vec::new();
    for ((start, end), (written, different)) in buffers {
        if different.bytes() < LEAST {
            continue;
        }
        let mut bounds = different.iter();
        let Some((low, mut high)) = bounds.next() else {
            continue;
        };
        if let Some((_, last)) = bounds.last() {
            high = last;
        }
        let at = widened(&written, low..high, start);
        out.push(Difference { at, end });
    }
    out
}

/// Widens a range by what was written beside it, to whole words; from the buffer's start if near.
fn widened(written: &Ranges, mut at: Range<u64>, start: u64) -> Range<u64> {
    for (low, high) in written.iter() {
        if high >= at.end && low <= at.end.saturating_add(GAP) {
            at.end = high;
        }
    }
    let ranges: Vec<(u64, u64)> = written.iter().collect();
    for (low, high) in ranges.into_iter().rev() {
        if low < at.start && high.saturating_add(GAP) >= at.start {
            at.start = low;
        }
    }
    if at.start - start < GAP {
        at.start = start;
    }
    at.start - at.start % 4..at.end.next_multiple_of(4)
}

fn add(
    (proposal, moved): (&mut Proposal, &mut Moved),
    (first, second, renaming): (&Capture, &Capture, &Renaming),
    choices: &Choices,
    (role, name, moment): (Role, String, Moment),
    Difference { at, end }: Difference,
) {
    // It may be longer than what differs.
    let stated = choices.stated.form(&name).and_then(Form::bytes);
    let found = at.end - at.start;
    let room = end.saturating_sub(at.start);
    let size = stated.map_or(found, |stated| found.max(stated.min(room)));
    // Beyond the limit: refused at the end.
    let (Ok(length), true) = (usize::try_from(size), moved.add(size)) else {
        return;
    };
    let mut bytes = vec![0; length];
    first.memory.read(moment, at.start, &mut bytes);
    let dtype = naming::element("", &bytes, role == Role::Output);
    let Ok(elements) = u32::try_from(length / dtype.bytes()) else {
        return;
    };
    let flat = |bytes| Tensor::new(dtype, &[u64::from(elements)], bytes).ok();
    let mut others = vec![0; length];
    let (mut rest, mut va) = (others.as_mut_slice(), at.start);
    while !rest.is_empty() {
        let (page, offset) = (va - va % PAGE, (va % PAGE) as usize);
        let (now, later) = rest.split_at_mut(rest.len().min(PAGE_SIZE - offset));
        let there = second.memory.page(moment, renaming.second_page(page));
        now.copy_from_slice(&there[offset..offset + now.len()]);
        va = va.saturating_add(now.len() as u64);
        rest = later;
    }
    let (Some(tensor), Some(other)) = (flat(bytes), flat(others)) else {
        return;
    };
    let values = proposal.second.iter();
    let mut inputs = proposal.tensors.iter_mut().zip(values);
    let twin = inputs.find(|(known, (_, values))| {
        role == Role::Input && known.role == role && known.tensor == tensor && *values == other
    });
    let piece = Piece::dense(elements, dtype, at.start);
    if let Some((known, _)) = twin {
        if known.job == moment.job() {
            known.layout.pieces.push(piece);
            return;
        }
        let text = format!(
            "'{name}' has the values of '{}' in both runs, at a later time: give both the same",
            known.name
        );
        proposal.remarks.push(text);
    }
    proposal.second.push((name.clone(), other));
    proposal.tensors.push(Found {
        role,
        name,
        shape: vec![elements],
        layout: Layout {
            dtype,
            pieces: vec![piece],
        },
        job: moment.job(),
        tensor,
        converted_from: None,
    });
}

#[cfg(test)]
mod tests {
    use super::{Ranges, widened};

    #[test]
    fn what_was_written_beside_a_difference_belongs_to_it() {
        let mut written = Ranges::default();
        for (low, high) in [
            (0x1010, 0x1020),
            (0x1040, 0x1100),
            (0x1104, 0x1180),
            (0x1400, 0x1440),
        ] {
            written.add(low, high);
        }
        assert_eq!(widened(&written, 0x1050..0x1060, 0x1000), 0x1000..0x1180);
        assert_eq!(widened(&written, 0x1410..0x1414, 0x1000), 0x1400..0x1440);
    }
}
