// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shipped recording with one wrong point.

use gpureplay_format::Section;
use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{ActionEntry, SECTIONS, SectionEntry};
use zerocopy::FromBytes;

use super::*;

const SHIPPED: &[u8] = include_bytes!("../../../../recordings/digits-g610/recording.gpr");
const NOWHERE: u64 = 0x70_0000;

fn sections() -> Vec<Vec<u8>> {
    let (_, rest) = Header::ref_from_prefix(SHIPPED).unwrap();
    let (table, _) = <[SectionEntry; SECTIONS]>::ref_from_prefix(rest).unwrap();
    let bytes = |entry: &SectionEntry| {
        SHIPPED[entry.offset.get() as usize..][..entry.length.get() as usize].to_vec()
    };
    table.iter().map(bytes).collect()
}

fn place(section: Section) -> usize {
    usize::from(section.code()) - 1
}

fn verdict(sections: &[Vec<u8>]) -> Option<Broken> {
    let (header, _) = Header::ref_from_prefix(SHIPPED).unwrap();
    let mut all = [&[][..]; SECTIONS];
    for (to, from) in all.iter_mut().zip(sections) {
        *to = from;
    }
    let file = assemble(header.platform(), &all);
    let view = Recording::parse(&file).unwrap();
    let rule = verify(&view, &Limits::DEFAULT).map(drop).err()?.rule;
    assert_eq!(rule, Rule::JobConfiguration);
    broken(&view).map(|(_, broken)| broken)
}

fn launches() -> Vec<core::ops::Range<usize>> {
    let recording = Recording::parse(SHIPPED).unwrap();
    let data = sections().swap_remove(place(Section::Data));
    let segments = recording.segments().iter();
    let actions = segments.flat_map(|segment| recording.segment_actions(segment));
    let words = actions.filter_map(|action| match action {
        Ok(Action::Launch { words, .. }) => Some(words),
        _ => None,
    });
    let start = SHIPPED.windows(data.len()).position(|bytes| bytes == data);
    let start = SHIPPED.as_ptr() as usize + start.unwrap();
    words
        .map(|words| {
            let at = words.as_ptr() as usize - start;
            at..at + words.len()
        })
        .collect()
}

const LAUNCH: u8 = 9;

fn changed(launch: &core::ops::Range<usize>, change: impl Fn(&mut [u64])) -> Option<Broken> {
    let mut sections = sections();
    let bytes = &mut sections[place(Section::Data)][launch.clone()];
    let mut list: Vec<u64> = words(bytes).collect();
    let before = list.clone();
    change(&mut list);
    assert_ne!(list, before, "nothing was changed");
    for (bytes, word) in bytes.chunks_exact_mut(WORD_BYTES).zip(&list) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    verdict(&sections)
}

fn operand(list: &mut [u64], pairs: core::ops::Range<u64>) -> &mut u64 {
    let is_operand = |word: &&mut u64| {
        **word >> 56 == u64::from(Op::Move.row().opcode) && pairs.contains(&(**word >> 48 & 0xff))
    };
    list.iter_mut().find(is_operand).unwrap()
}

#[test]
fn the_shipped_recording_is_sound() {
    assert_eq!(verdict(&sections()), None);
    assert_eq!(launches().len(), 19);
}

#[test]
fn every_launch_that_breaks_a_rule_is_refused() {
    for launch in launches() {
        for op in Op::ALL {
            let word = u64::from(op.row().opcode) << 56;
            if allowed(0, word).is_ok() || *op == Op::ReqResource {
                continue;
            }
            let found = changed(&launch, |list| list[0] = word);
            assert_eq!(found, Some(Broken::Instruction { at: 0, word }), "{op:?}");
        }
        let unknown = 0xff << 56;
        let found = changed(&launch, |list| list[0] = unknown);
        assert_eq!(
            found,
            Some(Broken::Instruction {
                at: 0,
                word: unknown
            })
        );
        let word = u64::from(Op::ReqResource.row().opcode) << 56 | ALL_ENDPOINTS;
        let found = changed(&launch, |list| list[0] = word);
        assert_eq!(found, Some(Broken::Endpoint { at: 0 }));
        for register in 92..96_u8 {
            let word = u64::from(Op::Move32.row().opcode) << 56 | u64::from(register) << 48;
            let found = changed(&launch, |list| list[0] = word);
            assert_eq!(found, Some(Broken::KernelRegister { at: 0, register }));
        }
        for (pairs, what) in [
            (0..8, "a list of resources"),
            (16..24, "a program"),
            (24..32, "storage"),
        ] {
            let found = changed(&launch, |list| {
                let word = operand(list, pairs.clone());
                *word = *word & !POINTER | NOWHERE | u64::from(pairs.start == 0);
            });
            let named = matches!(found, Some(Broken::Memory { what: found, .. }) if found == what);
            assert!(named, "{what}: {found:?}");
        }
        let run = u64::from(Op::RunCompute.row().opcode);
        let found = changed(&launch, |list| {
            let runs = list.iter_mut().filter(|word| **word >> 56 == run);
            runs.for_each(|word| *word = 0);
        });
        assert_eq!(found, Some(Broken::NoDispatch));
        let found = changed(&launch, |list| {
            let program = operand(list, 16..24);
            *program |= 1 << 48;
        });
        assert!(matches!(found, Some(Broken::Fault { .. })), "{found:?}");
    }
}

#[test]
fn every_launch_in_another_queue_is_refused() {
    for index in 0..launches().len() {
        let mut sections = sections();
        let actions = &mut sections[place(Section::Actions)];
        let entries = <[ActionEntry]>::mut_from_bytes(actions).unwrap();
        let mut launches = entries.iter_mut().filter(|entry| entry.op == LAUNCH);
        launches.nth(index).unwrap().a = 1;
        assert_eq!(verdict(&sections), Some(Broken::Queue(1)));
    }
}
