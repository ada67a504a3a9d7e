// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams that no verifier has seen, for panthor.

use std::str::FromStr;

use gpureplay_core::{DeviceError, Gpu};
use gpureplay_format::{PAGE_SIZE, Recording};

/// An address that nothing is mapped at.
const NOWHERE: u64 = 0x7000_0000;
/// MOVE: a pair gets the value of the low 48 bits.
const MOVE: u64 = 1 << 56;
const VALUE: u64 = (1 << 48) - 1;

/// What is made wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twist {
    /// An instruction that there is not.
    Unknown,
    /// An instruction that draws.
    Draw,
    /// A branch to itself.
    Endless,
    /// The stream calls itself.
    Calls,
    /// A jump to nothing.
    Jump,
    /// A store to nothing.
    Store,
    /// Addresses of data, to nothing.
    Data,
}

impl FromStr for Twist {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "stream-unknown" => Self::Unknown,
            "stream-draw" => Self::Draw,
            "stream-endless" => Self::Endless,
            "stream-calls" => Self::Calls,
            "stream-jump" => Self::Jump,
            "stream-store" => Self::Store,
            "stream-data" => Self::Data,
            _ => return Err(format!("no twist {text}")),
        })
    }
}

impl Twist {
    /// Makes the stream at an address wrong.
    pub(crate) fn apply(
        self,
        gpu: &mut impl Gpu,
        recording: &Recording<'_>,
        head: u64,
    ) -> Result<(), DeviceError> {
        // r2 and r3 hold an address, r4 how many bytes are there.
        let there = |address: u64| MOVE | 2 << 48 | address;
        let (bytes, there_and_back) = (2 << 56 | 4 << 48 | 24, 2 << 40 | 4 << 32);
        let words = match self {
            Self::Unknown => vec![0xff << 56],
            Self::Draw => vec![7 << 56],
            Self::Endless => vec![0x16 << 56 | 6 << 28 | 0xffff],
            Self::Calls => vec![there(head), bytes, 0x20 << 56 | there_and_back],
            Self::Jump => vec![there(NOWHERE), bytes, 0x21 << 56 | there_and_back],
            Self::Store => vec![there(NOWHERE), 0x15 << 56 | 4 << 48 | 2 << 40 | 1 << 16],
            Self::Data => return data(gpu, recording, head),
        };
        for (address, word) in (head..).step_by(8).zip(words) {
            gpu.write_memory(address, &u64::to_le_bytes(word))?;
        }
        Ok(())
    }
}

/// Lets the stream name nothing where it names data.
fn data(gpu: &mut impl Gpu, recording: &Recording<'_>, head: u64) -> Result<(), DeviceError> {
    let named = |address: u64| {
        let mut regions = recording.regions().iter();
        regions.any(|region| (region.va.get()..region.end()).contains(&address))
    };
    let mut changed = false;
    let end = (head | u64::from(PAGE_SIZE - 1)) + 1;
    for address in (head..end).step_by(8) {
        let mut word = [0; 8];
        gpu.read_memory(address, &mut word)?;
        let word = u64::from_le_bytes(word);
        if word >> 56 == MOVE >> 56 && named(word & VALUE) {
            gpu.write_memory(address, &(word & !VALUE | NOWHERE).to_le_bytes())?;
            changed = true;
        }
    }
    match changed {
        true => Ok(()),
        false => Err(DeviceError::NotMapped(head)),
    }
}
