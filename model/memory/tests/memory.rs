// SPDX-License-Identifier: MIT OR Apache-2.0
//! What users of the bus rely on.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use gpureplay_memory::{Bus, BusError, MapError, Mapped, PAGE_SIZE, Ram};

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 256) as u8).collect()
}

#[test]
fn bytes_cross_pages_at_any_offset() {
    let ram = Ram::new(4).unwrap();
    let data = pattern(5000);
    for shift in 0..17 {
        ram.write(Ram::BASE + 100 + shift, &data).unwrap();
        let mut back = vec![0; data.len()];
        ram.read(Ram::BASE + 100 + shift, &mut back).unwrap();
        assert_eq!(back, data, "shift {shift}");
    }
}

#[test]
fn words_are_little_endian_aligned_or_not() {
    let ram = Ram::new(1).unwrap();
    let page = ram.page(Ram::BASE).unwrap();
    let data = pattern(64);
    page.copy_from_slice(0, &data);
    for at in 0..40 {
        assert_eq!(page.load_u16(at).to_le_bytes(), data[at..at + 2]);
        assert_eq!(page.load_u32(at).to_le_bytes(), data[at..at + 4]);
        assert_eq!(page.load_u64(at).to_le_bytes(), data[at..at + 8]);
        assert_eq!(page.load_u128(at).to_le_bytes(), data[at..at + 16]);
    }
    page.store_u32(101, 0x8765_4321);
    assert_eq!(page.load_u8(101), 0x21);
    assert_eq!(page.load_u8(104), 0x87);
}

#[test]
fn reading_past_the_end_names_the_address() {
    let ram = Ram::new(1).unwrap();
    let mut bytes = [0; 8];
    assert_eq!(
        ram.read(Ram::BASE + 4092, &mut bytes),
        Err(BusError {
            address: Ram::BASE + 4096
        })
    );
    assert_eq!(ram.read(0x10, &mut bytes), Err(BusError { address: 0x10 }));
    assert_eq!(
        ram.write(u64::MAX - 1, &bytes),
        Err(BusError {
            address: u64::MAX - 1
        })
    );
}

#[test]
fn ram_hands_out_zeroed_pages_until_none_is_left() {
    let ram = Ram::new(3).unwrap();
    let first = ram.allocate().unwrap();
    ram.write(first, &[1, 2, 3]).unwrap();
    assert!(ram.allocate_contiguous(3).is_none());
    assert!(ram.allocate_contiguous(2).is_some());
    assert!(ram.allocate().is_none());
    ram.release(first);
    ram.release(first);
    assert_eq!(ram.allocate(), Some(first));
    assert_eq!(ram.page(first).unwrap().load_u32(0), 0);
    assert!(ram.allocate().is_none());
}

#[test]
fn concurrent_updates_lose_nothing() {
    let ram = Ram::new(1).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let page = ram.page(Ram::BASE).unwrap();
                for _ in 0..10_000 {
                    page.fetch_update_u32(8, |old| old + 1);
                    page.fetch_update_u64(16, |old| old + 3);
                }
            });
        }
    });
    let page = ram.page(Ram::BASE).unwrap();
    assert_eq!((page.load_u32(8), page.load_u64(16)), (40_000, 120_000));
    assert_eq!(page.compare_exchange_u32(8, 1, 2), 40_000);
    assert_eq!(page.compare_exchange_u32(8, 40_000, 2), 40_000);
    assert_eq!(page.load_u32(8), 2);
}

fn file(pages: usize) -> File {
    let mut path = std::env::temp_dir();
    path.push(format!(
        "gpureplay-memory-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(&pattern(pages * 4096)).unwrap();
    file
}

#[test]
fn regions_share_their_file_and_refuse_to_overlap() {
    let mut file = file(4);
    let bus = Mapped::new();
    bus.add(0x4000_0000, 0x2000, &file, 0x1000, true).unwrap();
    assert!(matches!(
        bus.add(0x4000_1000, 0x1000, &file, 0, true),
        Err(MapError::Overlap {
            other: 0x4000_0000,
            ..
        })
    ));
    assert!(matches!(
        bus.add(0x5000_0010, 0x1000, &file, 0, true),
        Err(MapError::Shape { .. })
    ));
    let mut bytes = [0; 16];
    bus.read(0x4000_0ff8, &mut bytes).unwrap();
    assert_eq!(bytes, pattern(4 * 4096)[0x1ff8..0x2008]);
    bus.write(0x4000_0000, b"hello").unwrap();
    let mut back = [0; 5];
    file.seek(SeekFrom::Start(0x1000)).unwrap();
    file.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
}

#[test]
fn a_page_in_use_outlives_its_region() {
    let file = file(1);
    let bus = Mapped::new();
    bus.add(0, 0x1000, &file, 0, true).unwrap();
    let page = bus.page(0).unwrap();
    assert!(matches!(
        bus.remove(0, 0x2000),
        Err(MapError::Unknown { .. })
    ));
    bus.remove(0, 0x1000).unwrap();
    assert!(bus.page(0).is_none());
    assert_eq!(page.load_u8(1), 7);
}

#[test]
fn stores_to_a_read_only_region_do_not_reach_the_file() {
    let file = file(1);
    let (bus, other) = (Mapped::new(), Mapped::new());
    bus.add(0, 0x1000, &file, 0, false).unwrap();
    other.add(0, 0x1000, &file, 0, true).unwrap();
    bus.write(0, &[9]).unwrap();
    assert_eq!(other.page(0).unwrap().load_u8(0), 0);
}

#[test]
fn runs_of_words_are_the_words_one_by_one() {
    let ram = Ram::new(1).unwrap();
    let page = ram.page(Ram::BASE).unwrap();
    for at in (0..PAGE_SIZE).step_by(4) {
        page.store_u32(at, (at as u32).wrapping_mul(0x0101_0101));
    }
    for offset in [0, 4, 6, 8, 12, 2000, 4060, 4092, 4095, 4096] {
        for count in [0, 1, 3, 4, 7, 8, 16, 20, 39, 64] {
            let start = offset & (PAGE_SIZE - 1) & !3;
            let fits = count.min((PAGE_SIZE - start) / 4);
            let mut words = vec![7; count];
            assert_eq!(page.load_words(offset, &mut words), fits);
            for (word, value) in words.iter().enumerate() {
                let there = page.load_u32((start + 4 * word) & (PAGE_SIZE - 1));
                assert_eq!(*value, if word < fits { there } else { 7 });
            }
            let new: Vec<u32> = (0..count as u32)
                .map(|word| word.wrapping_mul(0x1234_5677) + 1)
                .collect();
            let target = Ram::new(1).unwrap();
            let target = target.page(Ram::BASE).unwrap();
            assert_eq!(target.store_words(offset, &new), fits);
            for at in (0..PAGE_SIZE).step_by(4) {
                let word = at
                    .checked_sub(start)
                    .map(|at| at / 4)
                    .filter(|&word| word < fits);
                let expected = word.map_or(0, |word| new[word]);
                assert_eq!(target.load_u32(at), expected, "{offset} {count} {at}");
            }
        }
    }
}
