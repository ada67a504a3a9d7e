// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gaps found by `cargo xtask mutation`, with right checksums.

use std::collections::BTreeMap;

use gpureplay_format::checksum::{Checksum, checksum};
use gpureplay_sign::{
    MAX_FILES, MAX_SIGNATURE, Pack, PackError, SecretKey, Signature, SignatureError, pack, sign,
};

const HEADER: usize = 64;
const ENTRY: usize = 32;

fn packed(names: &[&str]) -> Vec<u8> {
    let files: BTreeMap<String, Vec<u8>> = names
        .iter()
        .map(|name| ((*name).to_owned(), [name.as_bytes(), &[1]].concat()))
        .collect();
    pack(&files).unwrap()
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().unwrap()
}

/// Corrects all checksums afterwards.
fn refused(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> PackError {
    let named = u32::from_le_bytes(number(&bytes, 32)) as usize;
    let files = u32::from_le_bytes(number(&bytes, 12)) as usize;
    change(&mut bytes);
    for entry in (0..files).map(|index| HEADER + index * ENTRY) {
        let offset = u64::from_le_bytes(number(&bytes, entry)) as usize;
        let length = u64::from_le_bytes(number(&bytes, entry + 8)) as usize;
        let whole = bytes.get(offset..offset + length.next_multiple_of(8));
        let sum = whole.map_or(0, checksum);
        bytes[entry + 16..entry + 24].copy_from_slice(&sum.to_le_bytes());
    }
    let rest = (files * ENTRY + named).next_multiple_of(8);
    bytes[24..32].fill(0);
    let (header, after) = bytes.split_at(HEADER);
    let sum = Checksum::new()
        .update(header)
        .update(&after[..rest])
        .value();
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
    Pack::parse(&bytes).unwrap_err()
}

#[test]
fn names_of_a_pack_ascend_after_the_recording() {
    let bytes = packed(&["a", "c", "recording.gpr", "z"]);
    assert_eq!(Pack::parse(&bytes).unwrap().files().count(), 4);
    // "recording.gpr", "a", "c", "z".
    let names = HEADER + 4 * ENTRY;
    let (first, second, third) = (names + 13, names + 14, names + 15);
    for (at, letter, expected) in [
        (names, b'x', PackError::Name(0)),
        (first, b'd', PackError::Name(2)),
        (first, b'c', PackError::Name(2)),
        (second, b'a', PackError::Name(2)),
        (third, b'c', PackError::Name(3)),
        (third, b'b', PackError::Name(3)),
        (second, b'/', PackError::Name(2)),
    ] {
        let found = refused(bytes.clone(), |bytes| bytes[at] = letter);
        assert_eq!(found, expected, "{letter}");
    }
    let twice = packed(&["recording.gpr", "recording.gps"]);
    let last = HEADER + 2 * ENTRY + 25;
    assert_eq!(
        refused(twice, |bytes| bytes[last] = b'r'),
        PackError::Name(1)
    );
    // A byte of the names is no file's.
    let shorter = refused(bytes.clone(), |bytes| bytes[HEADER + 3 * ENTRY + 24] = 0);
    assert_eq!(shorter, PackError::Name(3));
    let none = refused(packed(&["a", "recording.gpr"]), |bytes| {
        bytes[HEADER + ENTRY + 24] = 2;
    });
    assert_eq!(none, PackError::Name(1));
    let more = refused(packed(&["a", "recording.gpr"]), |bytes| bytes[32] += 1);
    assert_eq!(more, PackError::Name(0));
}

#[test]
fn what_a_pack_reserves_is_zero() {
    let bytes = packed(&["a", "recording.gpr"]);
    for at in [10, 11, 36, 63] {
        let found = refused(bytes.clone(), |bytes| bytes[at] = 1);
        assert_eq!(found, PackError::NotZero(0), "byte {at}");
    }
    for (entry, index) in [(HEADER, 0), (HEADER + ENTRY, 1)] {
        let found = refused(bytes.clone(), |bytes| bytes[entry + 28] = 1);
        assert_eq!(found, PackError::NotZero(index));
        // The last byte becomes filling, and is not zero.
        let found = refused(bytes.clone(), |bytes| bytes[entry + 8] -= 1);
        assert_eq!(found, PackError::NotZero(index));
    }
    let padding = HEADER + 2 * ENTRY + 15;
    assert_eq!(
        refused(bytes, |bytes| bytes[padding] = 1),
        PackError::NotZero(0)
    );
}

#[test]
fn files_of_a_pack_lie_one_after_the_other() {
    let bytes = packed(&["a", "recording.gpr"]);
    for (place, change) in [(HEADER, 8), (HEADER + ENTRY, 8), (HEADER + ENTRY, 248)] {
        let found = refused(bytes.clone(), |bytes| {
            bytes[place] = bytes[place].wrapping_add(change);
        });
        let index = u32::from(place > HEADER);
        assert_eq!(found, PackError::Place(index), "{place} {change}");
    }
    let longer = refused(bytes.clone(), |bytes| {
        bytes.extend_from_slice(&[0; 8]);
        let length = bytes.len() as u64;
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
    });
    assert_eq!(longer, PackError::Length);
    for (files, expected) in [
        (MAX_FILES + 1, PackError::Files(MAX_FILES + 1)),
        (MAX_FILES, PackError::Length),
    ] {
        let mut many = bytes.clone();
        many[12..16].copy_from_slice(&files.to_le_bytes());
        assert_eq!(Pack::parse(&many).unwrap_err(), expected);
    }
    let mut other = bytes;
    assert!(Pack::is_pack(&other) && !Pack::is_pack(&signed(&[])));
    assert_eq!(Pack::parse(&signed(&[])).unwrap_err(), PackError::NotAPack);
    other[8] = 2;
    assert_eq!(Pack::parse(&other).unwrap_err(), PackError::Version(2));
}

fn signed(names: &[&str]) -> Vec<u8> {
    let key = SecretKey::from_seed([7; 32]).unwrap();
    let files = names.iter().map(|name| ((*name).to_owned(), vec![1]));
    sign(&key, 5, b"recording", &files.collect()).unwrap()
}

fn unreadable(bytes: &[u8]) -> SignatureError {
    Signature::parse(bytes).unwrap_err()
}

#[test]
fn the_form_of_a_signature_is_checked_before_its_seal() {
    let bytes = signed(&["a", "b"]);
    let good = Signature::parse(&bytes).unwrap();
    assert_eq!((good.counter(), good.recording_length()), (5, 9));
    for at in [10, 11, HEADER + 44, HEADER + 47, HEADER + 48 + 44] {
        let mut changed = bytes.clone();
        changed[at] = 1;
        assert_eq!(unreadable(&changed), SignatureError::Shape, "byte {at}");
    }
    // Names "ab", before the seal.
    let names = bytes.len() - 64 - 2;
    for (at, letter, index) in [(0, b'b', 1), (0, b'c', 1), (1, b'a', 1), (0, b'/', 0)] {
        let mut changed = bytes.clone();
        changed[names + at] = letter;
        assert_eq!(unreadable(&changed), SignatureError::Name(index));
    }
    // A byte of the names is no file's.
    let mut longer = bytes.clone();
    longer.insert(names + 2, b'c');
    assert_eq!(unreadable(&longer), SignatureError::Shape);
    // The number of files decides, whatever follows.
    for files in [3, MAX_FILES, MAX_FILES + 1, u32::MAX] {
        let mut changed = bytes.clone();
        changed[12..16].copy_from_slice(&files.to_le_bytes());
        assert_eq!(unreadable(&changed), SignatureError::Shape);
    }
    let empty = signed(&[]);
    assert_eq!(empty.len(), HEADER + 64);
    assert!(Signature::parse(&empty).is_ok());
    for cut in 1..=empty.len() - 16 {
        assert_eq!(
            unreadable(&empty[..empty.len() - cut]),
            SignatureError::Shape
        );
    }
}

#[test]
fn as_many_files_are_signed_as_may_be() {
    // Recording and signature count too.
    let files = (2..MAX_FILES).map(|index| (format!("{index:0255}"), Vec::new()));
    let files: BTreeMap<_, _> = files.collect();
    let key = SecretKey::from_seed([7; 32]).unwrap();
    let bytes = sign(&key, 1, b"", &files).unwrap();
    assert_eq!(bytes.len() as u64, MAX_SIGNATURE - 2 * (48 + 255));
    assert_eq!(Signature::parse(&bytes).unwrap().files().count(), 4094);
    let more = files.into_iter().chain([("x".into(), vec![])]).collect();
    assert!(sign(&key, 1, b"", &more).is_err());
}

#[test]
fn a_digest_is_sha_256() {
    // FIPS 180-2, appendix B.1.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let found: Vec<String> = gpureplay_sign::digest(b"abc")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(found.concat(), expected);
}
