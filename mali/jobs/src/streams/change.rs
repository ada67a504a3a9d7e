// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes launches; finds dispatches that wait.

use mali_drive::LAUNCHED_AT;
use mali_isa::valhall::streams::{Instruction, Op, WORD_BYTES};

use super::{DESTINATION, dispatches, words};

/// Keeps only the dispatch at this address on the model.
pub fn alone(bytes: &[u8], address: u64) -> Vec<u8> {
    let kept = |(place, word): (u64, u64)| {
        let run = Instruction::decode(word).map(Instruction::op) == Some(Op::RunCompute);
        match run && place != address {
            true => NOP,
            false => word,
        }
    };
    let places = (LAUNCHED_AT..).step_by(WORD_BYTES);
    places
        .zip(words(bytes))
        .map(kept)
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// Resizes the dispatch at this address: `size` as in a payload's first word. Returns the instruction's new address;
/// `None` without a dispatch.
pub fn resized(bytes: &[u8], address: u64, size: u32, count: [u32; 3]) -> Option<(Vec<u8>, u64)> {
    let mut found = None;
    dispatches(bytes, |at, compute| {
        if at == address {
            found = Some(*compute);
        }
    })
    .ok()?;
    let recorded = found?;
    let values = |size: u32, [x, y, z]: [u32; 3]| {
        let registers = [SIZE, COUNT, COUNT + 1, COUNT + 2].into_iter();
        registers.zip([size, x, y, z]).map(|(register, value)| {
            u64::from(Op::Move32.row().opcode) << 56 | register << DESTINATION | u64::from(value)
        })
    };
    let mut out = Vec::new();
    let mut place = 0;
    for (at, word) in (LAUNCHED_AT..).step_by(WORD_BYTES).zip(words(bytes)) {
        if at == address {
            out.extend(values(size, count));
            place = LAUNCHED_AT + (out.len() * WORD_BYTES) as u64;
        }
        out.push(word);
        if at == address {
            // Later dispatches may count on the old registers.
            out.extend(values(recorded.size, recorded.count));
        }
    }
    Some((out.into_iter().flat_map(u64::to_le_bytes).collect(), place))
}

const NOP: u64 = 0;
/// Registers: size, first of three numbers of work groups.
const SIZE: u64 = 33;
const COUNT: u64 = 37;

pub(crate) fn waits(bytes: &[u8]) -> impl Iterator<Item = bool> + '_ {
    let (mut scoreboard, mut pending) = (0u64, 0u64);
    words(bytes).filter_map(move |word| {
        match Instruction::decode(word)?.op() {
            Op::SetSbEntry => scoreboard = word & ENDPOINT_ENTRY,
            Op::Wait => pending &= !(word >> AWAITED & 0xff),
            Op::RunCompute => {
                let waited = pending == 0;
                pending |= 1 << scoreboard;
                return Some(waited);
            }
            _ => {}
        }
        None
    })
}

/// SET_SB_ENTRY: scoreboard of dispatches.
const ENDPOINT_ENTRY: u64 = 0xf;
/// WAIT: first bit of a mask of scoreboards.
const AWAITED: u32 = 16;
