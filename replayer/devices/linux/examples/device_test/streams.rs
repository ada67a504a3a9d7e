// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams on panthor; bad ones must fail.

use std::error::Error;
use std::path::Path;

use gpureplay_core::{ErrorKind, Gpu, Limits, Submission, Verified, Wrapper};
use gpureplay_format::Recording;
use gpureplay_linux::{Stock, panthor};
use mali_jobs::streams::{Streams, verify};

use crate::{Values, again, replay, wrong_then_right};

const NOWHERE: u64 = 0x7000_0000;
const MOVE: u64 = 1;
const RUN_COMPUTE: u64 = 4;
/// Low 48 bits of a MOVE.
const VALUE: u64 = (1 << 48) - 1;
/// Bits 55:48 of a MOVE of a dispatch's program.
const PROGRAMS: [u64; 4] = [16, 18, 20, 22];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twist {
    Unknown,
    Draw,
    Endless,
    Jump,
    Store,
    Wait,
    Program,
}

pub(crate) const TWISTS: &[(&str, Twist)] = &[
    ("stream-unknown", Twist::Unknown),
    ("stream-draw", Twist::Draw),
    ("stream-endless", Twist::Endless),
    ("stream-jump", Twist::Jump),
    ("stream-store", Twist::Store),
    ("stream-wait", Twist::Wait),
    ("stream-program", Twist::Program),
];

impl Twist {
    fn of(self, words: &[u8]) -> Vec<u8> {
        // r2, r3: address; r4: bytes.
        let there = |address: u64| MOVE << 56 | 2 << 48 | address;
        let mut wrong = match self {
            Self::Unknown => vec![0xff << 56],
            Self::Draw => vec![7 << 56],
            Self::Endless => vec![0x16 << 56 | 6 << 28 | 0xffff],
            Self::Jump => vec![
                there(NOWHERE),
                2 << 56 | 4 << 48 | 8,
                0x21 << 56 | 2 << 40 | 4 << 32,
            ],
            Self::Store => vec![there(NOWHERE), 0x15 << 56 | 4 << 48 | 2 << 40 | 1 << 16],
            // A program's address serves as sync object.
            Self::Wait | Self::Program => Vec::new(),
        };
        for word in words.as_chunks::<8>().0 {
            let word = u64::from_le_bytes(*word);
            let names = word >> 56 == MOVE && PROGRAMS.contains(&(word >> 48 & 0xff));
            match self {
                Self::Program if names => wrong.push(word & !VALUE | NOWHERE),
                // SYNC_WAIT64 until greater than all values.
                Self::Wait if word >> 56 == RUN_COMPUTE => wrong.extend([
                    MOVE << 56 | 4 << 48 | VALUE,
                    2 << 56 | 5 << 48 | 0x7fff_ffff,
                    0x35 << 56 | 16 << 40 | 4 << 32 | 1 << 28,
                ]),
                Self::Wait | Self::Program => wrong.push(word),
                _ => {}
            }
        }
        wrong.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

struct Twisted {
    gpu: Stock,
    twist: Option<Twist>,
}

impl Wrapper for Twisted {
    type Inner = Stock;

    fn inner(&mut self) -> &mut Stock {
        &mut self.gpu
    }

    fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        match self.twist.take() {
            Some(twist) => self.gpu.run_chain(&Submission {
                words: &twist.of(work.words),
                ..*work
            }),
            None => self.gpu.run_chain(work),
        }
    }
}

fn open() -> Result<Stock, Box<dyn Error>> {
    Ok(panthor::open(&panthor::find(Path::new("/"))?)?)
}

fn verified<'a>(recording: &'a Recording<'a>) -> Result<Verified<'a, Streams>, Box<dyn Error>> {
    verify(recording, &Limits::default()).map_err(|error| format!("{error:?}").into())
}

pub(crate) fn run(
    recording: &Recording<'_>,
    values: &mut Values,
    runs: u32,
) -> Result<u32, Box<dyn Error>> {
    replay(&mut open()?, verified(recording)?, values, runs)
}

pub(crate) fn again(
    recording: &Recording<'_>,
    values: &mut Values,
) -> Result<String, Box<dyn Error>> {
    again::test(open()?, verified(recording)?, values)
}

pub(crate) fn hostile(
    recording: &Recording<'_>,
    values: &mut Values,
    twist: Twist,
) -> Result<String, Box<dyn Error>> {
    let mut gpu = Twisted {
        gpu: open()?,
        twist: Some(twist),
    };
    wrong_then_right(&mut gpu, verified(recording)?, values)
}
