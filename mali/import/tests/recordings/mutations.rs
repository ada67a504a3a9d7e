// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged recordings never panic.
//!
//! `cargo xtask fuzz --target damaged_copies --seconds N` tries more, and others each time.

use std::time::{Duration, Instant};

use fastrand::Rng;
use gpureplay_format::Recording;
use gpureplay_import::{FILES, Options, built_in, convert, read_files};

fn damage(file: &mut Vec<u8>, random: &mut Rng) {
    let length = file.len();
    let at = random.usize(..length.max(1));
    match random.usize(..8) {
        0 => file.truncate(at),
        1 => file[at] ^= 1 << random.usize(..8),
        2 => {
            let end = (at + random.usize(..64)).min(length);
            let byte = [0, 0xff, 0x80][random.usize(..3)];
            file[at..end].fill(byte);
        }
        3 => {
            let at = at & !3;
            let values = [0, 1, u64::MAX, 1 << 63, 1 << 48, 0x1000, 0xffff_ffff];
            let value = values[random.usize(..values.len())].to_le_bytes();
            let end = (at + 8).min(length);
            file[at..end].copy_from_slice(&value[..end - at]);
        }
        4 => {
            let end = (at + random.usize(..5000)).min(length);
            drop(file.drain(at..end));
        }
        5 => {
            let end = (at + random.usize(..5000)).min(length);
            let copy = file[at..end].to_vec();
            let to = random.usize(..length.max(1));
            file.splice(to..to, copy);
        }
        6 => file.extend((0..random.usize(..100)).map(|i| i as u8)),
        _ => {
            // The structure is at the start.
            let at = random.usize(..length.clamp(1, 200));
            file[at] = random.u8(..);
        }
    }
}

#[test]
fn damaged_copies() {
    let Some(directory) = crate::common::directory("mnist") else {
        return;
    };
    let files = FILES.map(|name| std::fs::read(directory.join(name)).unwrap());
    let given = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = given("GPUREPLAY_MUTATION_SEED").unwrap_or(0);
    let time = given("GPUREPLAY_MUTATION_SECONDS").map(Duration::from_secs);
    let started = Instant::now();
    let more = |tried: u64| match time {
        Some(time) => started.elapsed() < time,
        None => tried < 100,
    };
    let (mut tried, mut converted, mut refused, mut unreadable) = (0, 0, 0, 0);
    while more(tried) {
        let seed = first + tried;
        tried += 1;
        let mut random = Rng::with_seed(seed);
        let mut copy = files.clone();
        for _ in 0..=random.usize(..3) {
            let which = random.usize(..4);
            if !copy[which].is_empty() {
                damage(&mut copy[which], &mut random);
            }
        }
        let [history, tables, contents, ranges] = copy;
        let Ok(original) = read_files(&history, &tables, contents, &ranges) else {
            unreadable += 1;
            continue;
        };
        for description in [None, built_in(0x27be_e262_b955_98f4).unwrap()] {
            let options = Options {
                description,
                drop_lost: seed % 2 == 0,
                ..Options::default()
            };
            match convert(&original, &options) {
                Ok(imported) => {
                    converted += 1;
                    assert!(Recording::parse(&imported.recording).is_ok(), "seed {seed}");
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    }
    eprintln!(
        "damaged copies tried: {tried}; {unreadable} unreadable, {converted} conversions, {refused} refused"
    );
    assert!(converted > 0 && refused > 0);
}
