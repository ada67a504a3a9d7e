// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads of words that later micro-operations take.

use super::addresses::{behind, pattern};
use super::memory::{LOADED_ALIGN, address, gather_chunk, load_rows};
use crate::core::{Core, Done, OFFSET, Results, Tlb};
use crate::ir::micro::MicroOp;
use crate::rows::{CHUNK, GROUP, LANES, Row, Rows};
use crate::rows::{repeat, spread};
use crate::words::Words;

/// BYTES is 8 or 16. Sets bit `m` of the loads ahead if it could load for all lanes together.
pub(crate) fn ahead<const BYTES: usize>(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Done {
    core.ahead &= !(1 << op.m);
    let (mask, width) = (rows.mask(), rows.lanes());
    let (base, high, offset) = (rows.get(op.a), rows.get(op.b), op.e.into());
    let (mut sums, lows, highs);
    let (mut low, mut high) = (base, high);
    if offset != 0 {
        sums = Row::ZERO;
        if !behind(base, offset, &mut sums) {
            return Ok(());
        }
        low = &sums;
    }
    if mask != u64::MAX >> (LANES - width) {
        let active = rows.active();
        (lows, highs) = (
            like_first(low, active, mask),
            like_first(high, active, mask),
        );
        (low, high) = (&lows, &highs);
    }
    // The later loads meet the fault again.
    if load_together::<BYTES>(core, low, high, width).is_none() {
        return Ok(());
    }
    for word in 0..BYTES / 4 {
        rows.replace(op.d + word as u16, &mut core.results.0[word]);
    }
    core.ahead |= 1 << op.m;
    Ok(())
}

fn like_first(row: &Row, active: &Row, mask: u64) -> Row {
    let first = row.0[mask.trailing_zeros() as usize % LANES];
    let mut all = Row([first; LANES]);
    for (to, (word, active)) in all.0.iter_mut().zip(row.0.iter().zip(&active.0)) {
        *to = word & active | first & !active;
    }
    all
}

pub(crate) fn word(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    core.statistics.bytes_read += 4 * rows.active_count();
    if core.ahead >> op.m & 1 == 1 {
        rows.take(op.c, op.d);
        return Ok(());
    }
    load_word(op, rows, core)
}

/// The next `c` words; `m` has their loads' bits.
pub(crate) fn words_are_there(op: &MicroOp, rows: &Rows, core: &mut Core<'_>) -> bool {
    let all = core.ahead & u64::from(op.m) == u64::from(op.m);
    if all {
        core.statistics.bytes_read += 4 * u64::from(op.c) * rows.active_count();
    }
    all
}

#[cold]
#[inline(never)]
fn load_word(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let (base, high) = (rows.get(op.a), rows.get(op.b));
    let (offset, mask, width) = (u32::from(op.e), rows.mask(), rows.lanes());
    let mut low = Row::ZERO;
    if behind(base, offset, &mut low) {
        load_rows::<4>(core, &low, high, mask, width)?;
    } else {
        let mut high = high.clone();
        for (high, (sum, base)) in high.0.iter_mut().zip(low.0.iter().zip(&base.0)) {
            *high = high.wrapping_add(u32::from(sum < base));
        }
        load_rows::<4>(core, &low, &high, mask, width)?;
    }
    rows.replace(op.d, &mut core.results.0[0]);
    Ok(())
}

#[inline(always)]
fn load_together<const BYTES: usize>(
    core: &mut Core<'_>,
    low: &Row,
    high: &Row,
    width: usize,
) -> Option<()> {
    let words = BYTES / 4;
    let pattern = pattern(low, high, width, BYTES as u32, LOADED_ALIGN);
    if !pattern.whole {
        return None;
    }
    let Core { read, results, .. } = core;
    if pattern.same {
        let value = words_at::<BYTES>(read, address(low, high, 0))?;
        for (row, word) in results.0.iter_mut().zip(value).take(words) {
            row.0[..width].fill(word);
        }
        return Some(());
    }
    if pattern.flat {
        let mut values = [[0; CHUNK]; 4];
        let mut known = (
            address(low, high, 0),
            words_at::<BYTES>(read, address(low, high, 0))?,
        );
        for group in 0..width / GROUP {
            let va = address(low, high, group * GROUP);
            if va != known.0 {
                known = (va, words_at::<BYTES>(read, va)?);
            }
            for (values, word) in values.iter_mut().zip(known.1).take(words) {
                values[group] = word;
            }
        }
        for (row, values) in results.0.iter_mut().zip(&values).take(words) {
            spread(row, values);
        }
        return Some(());
    }
    let chunks = if pattern.repeat { 1 } else { width / CHUNK };
    for chunk in 0..chunks {
        let gathered = gather_chunk::<BYTES>(read, low, high, chunk, pattern.page, results);
        if gathered.ok()?.is_none() {
            load_chunk::<BYTES>(read, low, high, chunk, results)?;
        }
    }
    if pattern.repeat {
        results.0.iter_mut().take(words).for_each(|row| repeat(row));
    }
    Some(())
}

fn load_chunk<const BYTES: usize>(
    read: &mut Tlb<'_>,
    low: &Row,
    high: &Row,
    chunk: usize,
    results: &mut Results,
) -> Option<()> {
    let lanes = chunk * CHUNK..(chunk + 1) * CHUNK;
    let mut to = results.0.each_mut().map(|row| &mut row.0[lanes.clone()]);
    for (at, lane) in lanes.clone().enumerate() {
        let value = words_at::<BYTES>(read, address(low, high, lane))?;
        for (to, word) in to.iter_mut().zip(value).take(BYTES / 4) {
            to[at] = word;
        }
    }
    Some(())
}

/// Words in one page, at a multiple of 4.
#[inline(always)]
fn words_at<const BYTES: usize>(read: &mut Tlb<'_>, va: u64) -> Option<Words> {
    let page = read.page(va).ok()?;
    let at = (va & OFFSET) as usize;
    let word = |word: usize| match word < BYTES / 4 {
        true => page.load_aligned_u32(at + 4 * word),
        false => 0,
    };
    Some(std::array::from_fn(word))
}
