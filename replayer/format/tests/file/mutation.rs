// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutants that other tests let slip (`cargo xtask mutation`).

use gpureplay_format::checksum::{Checksum, checksum};
use gpureplay_format::layout::{ActionEntry, Header, SECTIONS, Segment, TensorEntry};
use gpureplay_format::{ActionFault, ElementType, Fault, Opcode, ParseError, Recording, Section};
use zerocopy::FromZeros;

const TABLE: usize = size_of::<Header>();
const START: usize = TABLE + SECTIONS * 32;

type Sections = [Vec<u8>; SECTIONS];

fn seal(file: &mut [u8]) {
    file[32..40].fill(0);
    let (header, rest) = file.split_at(TABLE);
    let sum = Checksum::new()
        .update(header)
        .update(&rest[..START - TABLE])
        .value();
    file[32..40].copy_from_slice(&sum.to_le_bytes());
}

fn assembled(sections: &Sections) -> Vec<u8> {
    let mut file = vec![0; START];
    file[..12].copy_from_slice(b"GPUREPLY\x02\0\x03\0");
    file[12] = SECTIONS as u8;
    for (index, section) in sections.iter().enumerate() {
        let (offset, length) = (file.len() as u64, section.len() as u64);
        file.extend_from_slice(section);
        file.resize(file.len().next_multiple_of(8), 0);
        let sum = checksum(&file[offset as usize..]);
        let at = TABLE + 32 * index;
        file[at] = index as u8 + 1;
        for (place, value) in [(8, offset), (16, length), (24, sum)] {
            file[at + place..at + place + 8].copy_from_slice(&value.to_le_bytes());
        }
    }
    let length = file.len() as u64;
    file[16..24].copy_from_slice(&length.to_le_bytes());
    seal(&mut file);
    file
}

fn refused(sections: &Sections, change: impl FnOnce(&mut Vec<u8>)) -> Option<ParseError> {
    let mut file = assembled(sections);
    change(&mut file);
    seal(&mut file);
    Recording::parse(&file).err()
}

fn fault(change: impl FnOnce(&mut Vec<u8>)) -> Option<(Section, Fault)> {
    refused(&Sections::default(), change).map(|error| (error.section, error.fault))
}

#[test]
fn header_and_table_are_checked_field_by_field() {
    assert_eq!(fault(|_| ()), None);
    let header = |fault| Some((Section::Header, fault));
    assert_eq!(fault(|file| file[8] = 3), header(Fault::Version(3)));
    assert_eq!(fault(|file| file[12] = 8), header(Fault::Table));
    for at in 46..64 {
        assert_eq!(fault(|file| file[at] = 1), header(Fault::NotZero), "{at}");
    }
    // Unused cores are Mali's, family 0.
    assert_eq!(fault(|file| file[40] = 1), None);
    assert_eq!(fault(|file| file[44] = 1), None);
    let both = fault(|file| (file[40], file[44]) = (1, 1));
    assert_eq!(both, header(Fault::NotZero));

    let identity = |fault| Some((Section::Identity, fault));
    assert_eq!(fault(|file| file[TABLE] = 2), identity(Fault::Table));
    assert_eq!(fault(|file| file[TABLE + 8] += 8), identity(Fault::Table));
    assert_eq!(fault(|file| file[TABLE + 4] = 1), identity(Fault::NotZero));
    assert_eq!(fault(|file| file[TABLE + 16] = 1), identity(Fault::Length));
    assert_eq!(
        fault(|file| file[TABLE + 16..TABLE + 24].fill(0xff)),
        identity(Fault::Length)
    );
    assert_eq!(
        fault(|file| file[TABLE + 24] ^= 1),
        identity(Fault::Checksum)
    );
    let longer = fault(|file| {
        file.extend_from_slice(&[0; 8]);
        let length = file.len() as u64;
        file[16..24].copy_from_slice(&length.to_le_bytes());
    });
    assert_eq!(longer, Some((Section::Data, Fault::Length)));
}

fn of_section(section: Section, bytes: &[u8]) -> Option<Fault> {
    let mut sections = Sections::default();
    sections[section.code() as usize - 1] = bytes.to_vec();
    let error = refused(&sections, |_| ())?;
    assert_eq!(error.section, section);
    Some(error.fault)
}

#[test]
fn sections_are_whole_entries_and_names_are_ended() {
    let sizes = [12, 16, 24, 16, 40, 20, 12];
    for (&section, size) in Section::ALL[1..].iter().zip(sizes) {
        assert_eq!(of_section(section, &vec![0; 2 * size]), None);
        for length in [1, size - 1, size + 1] {
            let found = of_section(section, &vec![0; length]);
            assert_eq!(found, Some(Fault::EntrySize), "{section:?} of {length}");
        }
    }
    assert_eq!(of_section(Section::Data, &[1; 7]), None);
    for (names, fault) in [
        (&b"a\0b\0"[..], None),
        (b"\0", None),
        (b"a", Some(Fault::Name)),
        (b"a\0b", Some(Fault::Name)),
        (b"a b\0", Some(Fault::Name)),
        (b"a\x7f\0", Some(Fault::Name)),
        (b"\xc3\xa4\0", Some(Fault::Name)),
    ] {
        assert_eq!(of_section(Section::Strings, names), fault, "{names:?}");
    }
    // Fill bytes are zero, also where the checksum agrees.
    let mut sections = Sections::default();
    sections[8] = vec![1; 7];
    let error = refused(&sections, |file| {
        *file.last_mut().unwrap() = 1;
        let sum = checksum(&file[START..]);
        file[START - 8..START].copy_from_slice(&sum.to_le_bytes());
    });
    assert_eq!(error.unwrap().fault, Fault::NotZero);
}

fn step(op: u8, a: u8, b: u16, c: u32, d: u64) -> Result<(Opcode, usize, u64), ActionFault> {
    let mut sections = Sections::default();
    sections[8] = (0..32).collect();
    let file = assembled(&sections);
    let recording = Recording::parse(&file).unwrap();
    let mut segment = Segment::new_zeroed();
    segment.data.set(16);
    let mut cursor = recording.cursor(&segment);
    let (b, c, d) = (b.into(), c.into(), d.into());
    let (opcode, bytes) = cursor.step(&ActionEntry { op, a, b, c, d })?;
    let at = if bytes.is_empty() { 16 } else { bytes[0] };
    assert_eq!(at, 16, "bytes from where the segment's start");
    Ok((opcode, bytes.len(), cursor.offset()))
}

#[test]
fn operands_that_an_action_does_not_take_are_zero() {
    let taken = [
        (Opcode::Write, [false, true, true, false]),
        (Opcode::Fill, [true, false, true, true]),
        (Opcode::Rearm, [false, false, false, true]),
        (Opcode::Submit, [true; 4]),
        (Opcode::BindInput, [false, false, true, false]),
        (Opcode::BindOutput, [false, false, true, false]),
        (Opcode::Launch, [true, true, true, false]),
    ];
    for (opcode, taken) in taken {
        for (place, taken) in taken.into_iter().enumerate() {
            let value = |at| if at == place { 4 } else { 0 };
            let found = step(
                opcode.code(),
                value(0),
                value(1).into(),
                value(2).into(),
                value(3).into(),
            );
            let bytes = if opcode == Opcode::Launch && place == 1 {
                4
            } else {
                0
            };
            let sound = Ok((opcode, bytes, 16 + bytes as u64));
            let expected = if taken {
                sound
            } else {
                Err(ActionFault::Operand)
            };
            assert_eq!(found, expected, "{opcode:?} operand {place}");
        }
    }
    assert_eq!(step(0, 0, 0, 0, 0), Err(ActionFault::Opcode));
    assert_eq!(step(200, 0, 0, 0, 0), Err(ActionFault::Opcode));
}

#[test]
fn actions_take_their_bytes_from_the_data() {
    let upload = |a, b, c| step(Opcode::Upload.code(), a, b, c, 0x1000);
    let (up, launch) = (Opcode::Upload, Opcode::Launch);
    assert_eq!(upload(0, 0, 16), Ok((up, 16, 32)));
    assert_eq!(upload(0, 0, 17), Err(ActionFault::Data));
    assert_eq!(upload(0, 1, 16), Err(ActionFault::Operand));
    assert_eq!(upload(1, 5, 400), Ok((up, 5, 21)));
    assert_eq!(upload(1, 17, 400), Err(ActionFault::Data));
    assert_eq!(upload(2, 5, 400), Err(ActionFault::Operand));
    for bytes in 0..=16 {
        let expected = match bytes % 4 {
            0 => Ok((launch, bytes.into(), 16 + u64::from(bytes))),
            _ => Err(ActionFault::Operand),
        };
        assert_eq!(step(launch.code(), 0, bytes, 1, 0), expected, "{bytes}");
    }
    let seek = |to| step(Opcode::Seek.code(), 0, 0, 0, to);
    assert_eq!(seek(32), Ok((Opcode::Seek, 0, 32)));
    assert_eq!(seek(33), Err(ActionFault::Data));
    assert_eq!(seek(u64::MAX), Err(ActionFault::Data));
}

#[test]
fn lookups_end_where_their_tables_do() {
    let mut sections = Sections::default();
    for (va, pages) in [(0x1000u64, 2u32), (0x4000, 1), (u64::MAX - 0xfff, 1)] {
        sections[1].extend_from_slice(&va.to_le_bytes());
        sections[1].extend_from_slice(&pages.to_le_bytes());
        sections[1].extend_from_slice(&[0; 4]);
    }
    sections[3] = vec![0; 3 * 16];
    sections[7] = b"one\0two\0".to_vec();
    let file = assembled(&sections);
    let recording = Recording::parse(&file).unwrap();
    for (va, length, found) in [
        (0xfff, 1, None),
        (0x1000, 0x2000, Some(0x1000)),
        (0x1000, 0x2001, None),
        (0x2fff, 1, Some(0x1000)),
        (0x3000, 1, None),
        (0x3000, 0, Some(0x1000)),
        (0x4000, 1, Some(0x4000)),
        (u64::MAX - 1, 1, Some(u64::MAX - 0xfff)),
        (u64::MAX, 2, None),
    ] {
        let region = recording.region_of(va, length);
        assert_eq!(region.map(|it| it.va.get()), found, "{va:#x} {length:#x}");
    }
    for (first, count, found) in [
        (0, 3, 3),
        (1, 2, 2),
        (1, 3, 0),
        (3, 0, 0),
        (4, 0, 0),
        (0, u32::MAX, 0),
    ] {
        let mut segment = Segment::new_zeroed();
        segment.first_action.set(first);
        segment.actions.set(count);
        assert_eq!(
            recording.segment_entries(&segment).len(),
            found,
            "{first} {count}"
        );
    }
    for (offset, has, name) in [
        (0, true, Some(&b"one"[..])),
        (1, true, Some(b"ne")),
        (3, false, Some(b"")),
        (4, true, Some(b"two")),
        (7, false, Some(b"")),
        (8, false, None),
        (u32::MAX, false, None),
    ] {
        let found = (recording.has_name(offset), recording.name_bytes(offset));
        assert_eq!(found, (has, name), "{offset}");
    }
}

#[test]
fn a_tensor_has_fewer_bytes_than_32_bits_count() {
    let file = assembled(&Sections::default());
    let recording = Recording::parse(&file).unwrap();
    let bytes = |element: ElementType, shape: &[u32]| {
        let mut tensor = TensorEntry::new_zeroed();
        (tensor.element, tensor.rank) = (element.code(), shape.len() as u8);
        for (to, extent) in tensor.shape.iter_mut().zip(shape) {
            to.set(*extent);
        }
        recording.tensor_bytes(&tensor)
    };
    let sizes = [4, 2, 1, 1, 2, 2, 4, 4, 8, 8, 8, 1];
    for (element, size) in ElementType::ALL.iter().zip(sizes) {
        assert_eq!(bytes(*element, &[]), Some(size), "{element:?}");
        assert_eq!(bytes(*element, &[3, 5]), Some(15 * size));
    }
    assert_eq!(bytes(ElementType::U8, &[u32::MAX]), Some(u32::MAX));
    assert_eq!(bytes(ElementType::U16, &[0x7fff_ffff]), Some(u32::MAX - 1));
    assert_eq!(bytes(ElementType::U16, &[0x8000_0000]), None);
    assert_eq!(bytes(ElementType::U8, &[0x1_0000, 0x1_0000]), None);
    assert_eq!(bytes(ElementType::U8, &[u32::MAX; 6]), None);
}
