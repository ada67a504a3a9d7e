// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong command streams; `mali-jobs` makes wrong launches.

use gpureplay_format::layout::ActionEntry;
use gpureplay_format::{Action, Opcode, Recording, RegionKind, Section};

use super::Mutant;
use super::tables::va_of;
use crate::parts::{Parts, action};

use Opcode::{Fill, Launch, Rearm, Submit, Upload, Write};

const NOWHERE: u64 = 0x7000_0000;
/// MOVE: a register pair in bits 55:48, a value below.
const MOVE: u64 = 1;
/// Register pairs that name a dispatch's program.
const PROGRAMS: [u64; 4] = [16, 18, 20, 22];

fn launch(parts: &mut Parts) -> Option<(usize, Vec<u64>)> {
    let file = parts.file();
    let recording = Recording::parse(&file).ok()?;
    let mut segments = recording.segments().iter();
    let words = segments.find_map(|segment| {
        let mut actions = recording.segment_actions(segment).flatten();
        actions.find_map(|action| match action {
            Action::Launch { words, .. } => Some(words),
            _ => None,
        })
    })?;
    let data = parts.section(Section::Data);
    let at = data.windows(words.len()).position(|bytes| bytes == words)?;
    let words = words.as_chunks::<8>().0.iter();
    Some((at, words.map(|word| u64::from_le_bytes(*word)).collect()))
}

pub(super) fn mutants(parts: &Parts) -> Vec<Mutant> {
    let changed = |change: &dyn Fn(&mut Parts)| parts.changed(change);
    let words = |change: &dyn Fn(&mut [u64])| {
        changed(&|parts| {
            let Some((at, mut words)) = launch(parts) else {
                return;
            };
            change(&mut words);
            let bytes = &mut parts.section(Section::Data)[at..];
            for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *to = word.to_le_bytes();
            }
        })
    };
    let first = |word: u64| words(&|words| words[0] = word);
    let program = |change: &dyn Fn(&mut u64)| {
        words(&|words| {
            let names =
                |word: &&mut u64| **word >> 56 == MOVE && PROGRAMS.contains(&(**word >> 48 & 0xff));
            if let Some(word) = words.iter_mut().find(names) {
                change(word);
            }
        })
    };
    let ending = |entries: &[ActionEntry]| changed(&|parts| parts.append(entries));
    let last = |opcode: Opcode, change: &dyn Fn(&mut ActionEntry)| {
        changed(&|parts| {
            if let Some(entry) = parts.last(opcode) {
                change(entry);
            }
        })
    };
    let [data, code] = [RegionKind::Data, RegionKind::Code].map(|kind| va_of(parts, kind));
    rows![
        "GPU that nobody knows", "deep-gpu" => super::deep::unknown_gpu(parts);
        "setting on a GPU whose firmware makes them", "register-write" => changed(&|p| p.actions()[0] = action(Write, 0, 0xf04, 1, 0));
        "setting during a run", "register-write-order" => ending(&[action(Write, 0, 0xf04, 1, 0)]);
        "chain on a GPU that takes streams", "action-form" => ending(&[action(Submit, 0, 0, 1000, data)]);
        "job header on a GPU that takes streams", "action-form" => ending(&[action(Rearm, 0, 0, 0, data)]);
        "launch of nothing", "job-configuration" => ending(&[action(Launch, 0, 0, 1000, 0)]);
        "launch of half an instruction", "job-configuration" => last(Launch, &|entry| entry.b = 4.into());
        "launch of half a word", "action-form" => last(Launch, &|entry| entry.b = 6.into());
        "launch with an address", "action-form" => last(Launch, &|entry| entry.d = 64.into());
        "launch from outside the file", "upload-data" => changed(&|parts| parts.section(Section::Data).clear());
        "endless launch", "bounded-wait" => last(Launch, &|entry| entry.c = u32::MAX.into());
        "launch without a bound", "bounded-wait" => last(Launch, &|entry| entry.c = 0.into());
        "launch of another queue", "job-configuration" => last(Launch, &|entry| entry.a = 1);
        "launch without a dispatch", "job-configuration" => words(&|words| words.fill(0));
        "launch with an unknown instruction", "job-configuration" => first(0xff << 56);
        "launch that draws", "job-configuration" => first(7 << 56);
        "launch that stores", "job-configuration" => first(0x15 << 56 | 4 << 48 | 2 << 40 | 1 << 16);
        "launch that branches to itself", "job-configuration" => first(0x16 << 56 | 6 << 28 | 0xffff);
        "launch that calls a stream in memory", "job-configuration" => first(0x20 << 56 | 2 << 40 | 4 << 32);
        "launch that jumps into memory", "job-configuration" => first(0x21 << 56 | 2 << 40 | 4 << 32);
        "launch that waits for somebody else", "job-configuration" => first(0x35 << 56 | 16 << 40 | 4 << 32);
        "launch that writes a register of the kernel", "job-configuration" => first(MOVE << 56 | 92 << 48);
        "program outside all regions", "job-configuration" => program(&|word| *word = *word >> 48 << 48 | NOWHERE);
        "program off its boundary", "job-configuration" => program(&|word| *word += 8);
        "program that is data", "descriptor-tensor" => program(&|word| *word = *word >> 48 << 48 | data);
        "code changed during a run", "upload-region" => ending(&[action(Fill, 1, 0, 16, code)]);
        "fill outside all regions", "upload-region" => ending(&[action(Fill, 1, 0, 16, NOWHERE)]);
        "unknown encoding", "action-form" => last(Upload, &|entry| entry.a = 7);
    ]
}
