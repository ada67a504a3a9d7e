// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores of a batch.
//!
//! Rows hold low and high address words. Lanes with one address share an access, lanes in one page a translation;
//! the rest goes lane by lane.

use gpureplay_memory::{PAGE_SIZE, Page};

use super::addresses::{common, pattern, run};
use crate::core::Done;
use crate::core::Trouble;
use crate::core::{Core, Results};
use crate::core::{OFFSET, Tlb};
use crate::ir::micro::{MicroOp, OnMemory};
use crate::rows::{CHUNK, GROUP, LANES, Row, Rows, lanes};
use crate::rows::{repeat, spread};
use crate::words::{Words, bytes_of, words_of};

/// Per lane by itself, in sixteenths of a clause.
const LANE_COST: u32 = 6;

/// ALIGNED: the caller has checked alignment.
#[inline(always)]
pub(super) fn fetch<const BYTES: usize, const ALIGNED: bool>(page: &Page<'_>, at: usize) -> Words {
    let half = |at: usize| {
        u32::from(if ALIGNED && BYTES == 2 {
            page.load_aligned_u16(at)
        } else {
            page.load_u16(at)
        })
    };
    let word = |at: usize| {
        if ALIGNED && BYTES >= 4 {
            page.load_aligned_u32(at)
        } else {
            page.load_u32(at)
        }
    };
    let pair = |at: usize| {
        let value = if ALIGNED {
            page.load_aligned_u64(at)
        } else {
            page.load_u64(at)
        };
        [value as u32, (value >> 32) as u32]
    };
    match BYTES {
        1 => [page.load_u8(at).into(), 0, 0, 0],
        2 => [half(at), 0, 0, 0],
        3 => [half(at) | u32::from(page.load_u8(at + 2)) << 16, 0, 0, 0],
        4 => [word(at), 0, 0, 0],
        6 => [page.load_u32(at), half(at + 4), 0, 0],
        8 => {
            let [a, b] = pair(at);
            [a, b, 0, 0]
        }
        12 => [word(at), word(at + 4), word(at + 8), 0],
        _ => {
            let ([a, b], [c, d]) = (pair(at), pair(at + 8));
            [a, b, c, d]
        }
    }
}

#[inline(always)]
pub(super) fn put<const BYTES: usize, const ALIGNED: bool>(
    page: &Page<'_>,
    at: usize,
    words: Words,
) {
    let word = |at: usize, value: u32| {
        if ALIGNED && BYTES >= 4 {
            page.store_aligned_u32(at, value)
        } else {
            page.store_u32(at, value)
        }
    };
    let pair = |at: usize, low: u32, high: u32| {
        let value = u64::from(low) | u64::from(high) << 32;
        if ALIGNED {
            page.store_aligned_u64(at, value)
        } else {
            page.store_u64(at, value)
        }
    };
    match BYTES {
        1 => page.store_u8(at, words[0] as u8),
        2 => page.store_u16(at, words[0] as u16),
        3 => {
            page.store_u16(at, words[0] as u16);
            page.store_u8(at + 2, (words[0] >> 16) as u8);
        }
        4 => word(at, words[0]),
        6 => {
            page.store_u32(at, words[0]);
            page.store_u16(at + 4, words[1] as u16);
        }
        8 => pair(at, words[0], words[1]),
        12 => {
            word(at, words[0]);
            word(at + 4, words[1]);
            word(at + 8, words[2]);
        }
        _ => {
            pair(at, words[0], words[1]);
            pair(at + 8, words[2], words[3]);
        }
    }
}

/// From the rows of low and high words.
#[inline(always)]
pub fn address(low: &Row, high: &Row, lane: usize) -> u64 {
    u64::from(low.0[lane]) | u64::from(high.0[lane]) << 32
}

#[inline(always)]
fn eight(row: &Row, group: usize) -> &[u32; GROUP] {
    &row.0.as_chunks().0[group]
}

pub(super) const LOADED_ALIGN: u32 = 4;

pub(super) const fn align(bytes: usize) -> u32 {
    match bytes {
        2 => 2,
        4 | 12 => 4,
        8 | 16 => 8,
        _ => 1,
    }
}

#[inline(always)]
fn gather<const BYTES: usize>(
    page: &Page<'_>,
    lows: &[u32; GROUP],
    results: &mut Results,
    group: usize,
) {
    let words = BYTES.div_ceil(4);
    let mut values = [[0; GROUP]; 4];
    for lane in 0..GROUP {
        let value = fetch::<BYTES, true>(page, lows[lane] as usize & (PAGE_SIZE - 1));
        for (values, word) in values.iter_mut().zip(value).take(words) {
            values[lane] = word;
        }
    }
    for (row, values) in results.0.iter_mut().zip(values).take(words) {
        row.0[group * GROUP..][..GROUP].copy_from_slice(&values);
    }
}

/// 1, 2, 3, 4, 6, 8, 12 or 16 bytes.
pub fn load_of(bytes: u32) -> OnMemory {
    match bytes {
        1 => load::<1>,
        2 => load::<2>,
        3 => load::<3>,
        4 => load::<4>,
        6 => load::<6>,
        8 => load::<8>,
        12 => load::<12>,
        _ => load::<16>,
    }
}

pub(crate) fn load<const BYTES: usize>(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let mask = rows.mask();
    core.statistics.bytes_read += rows.active_count() * BYTES as u64;
    load_rows::<BYTES>(core, rows.get(op.a), rows.get(op.b), mask, rows.lanes())?;
    for word in 0..BYTES.div_ceil(4) {
        rows.replace(op.d + word as u16, &mut core.results.0[word]);
    }
    Ok(())
}

#[inline(always)]
pub(super) fn load_rows<const BYTES: usize>(
    core: &mut Core<'_>,
    low: &Row,
    high: &Row,
    mask: u64,
    width: usize,
) -> Done {
    if BYTES == 4
        && let Some((first, count)) = run(low, high, mask)
    {
        // Results of inactive lanes between are dropped.
        let page = core.read.page(address(low, high, first))?;
        let to = &mut core.results.0[0].0[first..first + count];
        page.load_words(low.0[first] as usize, to);
        Ok(())
    } else if mask == u64::MAX >> (LANES - width) {
        load_all::<BYTES>(core, low, high, width)
    } else {
        load_groups::<BYTES>(core, low, high, width, mask)
    }
}

#[inline(always)]
fn load_all<const BYTES: usize>(core: &mut Core<'_>, low: &Row, high: &Row, width: usize) -> Done {
    let words = BYTES.div_ceil(4);
    let pattern = pattern(low, high, width, BYTES as u32, align(BYTES));
    if pattern.same {
        let value = load_lane::<BYTES>(core, address(low, high, 0))?;
        for (row, word) in core.results.0.iter_mut().zip(value).take(words) {
            row.0[..width].fill(word);
        }
        return Ok(());
    }
    if !pattern.whole {
        return load_groups::<BYTES>(core, low, high, width, u64::MAX >> (LANES - width));
    }
    let Core { read, results, .. } = core;
    if pattern.flat {
        let mut values = [[0; CHUNK]; 4];
        for group in 0..width / GROUP {
            let va = address(low, high, group * GROUP);
            let value = fetch::<BYTES, true>(read.page(va)?, (va & OFFSET) as usize);
            for (values, word) in values.iter_mut().zip(value) {
                values[group] = word;
            }
        }
        for (row, values) in results.0.iter_mut().zip(&values).take(words) {
            spread(row, values);
        }
        return Ok(());
    }
    // Work groups' lines are often 16 or 32 lanes and read the same.
    let chunks = match () {
        () if pattern.repeat => 1,
        () if width == LANES && is_repeated(low) => LANES / CHUNK / 2,
        () => width / CHUNK,
    };
    for chunk in 0..chunks {
        load_chunk::<BYTES>(read, low, high, chunk, pattern.page, results)?;
    }
    for row in results.0.iter_mut().take(words) {
        if pattern.repeat {
            repeat(row);
        } else if chunks < width / CHUNK {
            row.0.copy_within(..LANES / 2, LANES / 2);
        }
    }
    Ok(())
}

#[inline(always)]
fn is_repeated(row: &Row) -> bool {
    let (first, second) = row.0.split_at(LANES / 2);
    let pairs = first.iter().zip(second);
    pairs.fold(0, |differs, (one, other)| differs | one ^ other) == 0
}

#[inline(always)]
fn load_chunk<const BYTES: usize>(
    read: &mut Tlb<'_>,
    low: &Row,
    high: &Row,
    chunk: usize,
    page: bool,
    results: &mut Results,
) -> Done {
    if BYTES != 8 && BYTES != 16 {
        if page {
            let first = chunk * CHUNK;
            let page = read.page(address(low, high, first))?;
            for group in first / GROUP..(first + CHUNK) / GROUP {
                gather::<BYTES>(page, eight(low, group), results, group);
            }
            return Ok(());
        }
        return load_lanes::<BYTES>(read, low, high, chunk, results);
    }
    match gather_chunk::<BYTES>(read, low, high, chunk, page, results)? {
        Some(()) => Ok(()),
        None => load_lanes::<BYTES>(read, low, high, chunk, results),
    }
}

/// 8 or 16 aligned bytes per lane, in at most two pages: those of a lane and its neighbour. `None`: more.
#[inline(always)]
pub(super) fn gather_chunk<const BYTES: usize>(
    read: &mut Tlb<'_>,
    low: &Row,
    high: &Row,
    chunk: usize,
    page: bool,
    results: &mut Results,
) -> Result<Option<()>, Trouble> {
    let first = chunk * CHUNK;
    let lows = &low.0.as_chunks::<CHUNK>().0[chunk];
    let offsets = if page {
        lows.map(|low| low & OFFSET as u32)
    } else {
        let base = lows.iter().fold(u32::MAX, |least, &low| least.min(low)) & !(OFFSET as u32);
        lows.map(|low| low - base)
    };
    let second = if page {
        0
    } else {
        offsets
            .iter()
            .position(|offset| (offset ^ offsets[0]) & !(OFFSET as u32) != 0)
            .unwrap_or(0)
    };
    if !page && offsets.iter().any(|&offset| offset >= 2 * PAGE_SIZE as u32) {
        return Ok(None);
    }
    let va = address(low, high, first);
    let pages = if second == 0 {
        let page = read.page(va)?;
        [page, page]
    } else {
        // In lane order, which decides the fault that is reported.
        let [own, other] = read.neighbours([va, address(low, high, first + second)])?;
        if offsets[0] < PAGE_SIZE as u32 {
            [own, other]
        } else {
            [other, own]
        }
    };
    let [a, b, c, d] = &mut results.0;
    let [a, b, c, d] = [a, b, c, d].map(|row| &mut row.0.as_chunks_mut::<CHUNK>().0[chunk]);
    if BYTES == 8 {
        gpureplay_memory::gather(pages, &offsets, [a, b]);
    } else {
        gpureplay_memory::gather(pages, &offsets, [a, b, c, d]);
    }
    Ok(Some(()))
}

fn load_lanes<const BYTES: usize>(
    read: &mut Tlb<'_>,
    low: &Row,
    high: &Row,
    chunk: usize,
    results: &mut Results,
) -> Done {
    let words = BYTES.div_ceil(4);
    let lows = &low.0.as_chunks::<CHUNK>().0[chunk];
    let mut to = results
        .0
        .each_mut()
        .map(|row| &mut row.0.as_chunks_mut::<CHUNK>().0[chunk]);
    let mut lane = 0;
    while let Some(&first) = lows.get(lane) {
        let page = read.page(address(low, high, chunk * CHUNK + lane))?;
        while let Some(&low) = lows.get(lane)
            && (low ^ first) & !(OFFSET as u32) == 0
        {
            let value = fetch::<BYTES, true>(page, low as usize & (PAGE_SIZE - 1));
            for (to, word) in to.iter_mut().zip(value).take(words) {
                to[lane] = word;
            }
            lane += 1;
        }
    }
    Ok(())
}

fn load_groups<const BYTES: usize>(
    core: &mut Core<'_>,
    low: &Row,
    high: &Row,
    width: usize,
    mask: u64,
) -> Done {
    let words = BYTES.div_ceil(4);
    let common = common(low, high, width, BYTES as u32, align(BYTES));
    for group in 0..width / GROUP {
        let base = group * GROUP;
        let active = mask >> base & 0xff;
        if active == 0xff && common.same >> group & 1 == 1 {
            let value = load_lane::<BYTES>(core, address(low, high, base))?;
            for (row, word) in core.results.0.iter_mut().zip(value).take(words) {
                row.0[base..base + GROUP].fill(word);
            }
        } else if active == 0xff && common.page >> group & 1 == 1 {
            let page = core.read.page(address(low, high, base))?;
            gather::<BYTES>(page, eight(low, group), &mut core.results, group);
        } else {
            core.lane_by_lane(active.count_ones().into(), LANE_COST);
            for lane in lanes(active << base) {
                let value = load_lane::<BYTES>(core, address(low, high, lane))?;
                core.results.put(lane, &value[..words]);
            }
        }
    }
    Ok(())
}

#[inline(always)]
fn load_lane<const BYTES: usize>(core: &mut Core<'_>, va: u64) -> Result<Words, Trouble> {
    let offset = (va & OFFSET) as usize;
    if offset <= PAGE_SIZE - BYTES {
        return Ok(fetch::<BYTES, false>(core.read.page(va)?, offset));
    }
    let mut bytes = [0; 16];
    core.read.read(va, &mut bytes[..BYTES])?;
    Ok(words_of(bytes))
}

pub(crate) fn store_of(bytes: u32) -> OnMemory {
    match bytes {
        1 => store::<1>,
        2 => store::<2>,
        3 => store::<3>,
        4 => store::<4>,
        6 => store::<6>,
        8 => store::<8>,
        12 => store::<12>,
        _ => store::<16>,
    }
}

pub(crate) fn store<const BYTES: usize>(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Done {
    let words = BYTES.div_ceil(4);
    let mask = rows.mask();
    core.statistics.bytes_written += rows.active_count() * BYTES as u64;
    let (low, high) = (rows.get(op.a), rows.get(op.b));
    let sources: [&Row; 4] =
        std::array::from_fn(|word| rows.get(op.d + word.min(words - 1) as u16));
    let width = rows.lanes();
    if BYTES == 4
        && let Some((first, count)) = run(low, high, mask)
        && rows.active_count() == count as u64
    {
        let page = core.write.page(address(low, high, first))?;
        page.store_words(low.0[first] as usize, &sources[0].0[first..first + count]);
        return Ok(());
    }
    if mask == u64::MAX >> (LANES - width) {
        let pattern = pattern(low, high, width, BYTES as u32, align(BYTES));
        if pattern.whole {
            let lows = &low.0[..width];
            let mut lane = 0;
            while let Some(&first) = lows.get(lane) {
                let page = core.write.page(address(low, high, lane))?;
                while let Some(&low) = lows.get(lane)
                    && (low ^ first) & !(OFFSET as u32) == 0
                {
                    let value = sources.map(|row| row.0[lane]);
                    put::<BYTES, true>(page, low as usize & (PAGE_SIZE - 1), value);
                    lane += 1;
                }
            }
            return Ok(());
        }
    }
    let common = common(low, high, width, BYTES as u32, align(BYTES));
    for group in 0..width / GROUP {
        let base = group * GROUP;
        let active = mask >> base & 0xff;
        if active == 0xff && common.page >> group & 1 == 1 {
            let page = core.write.page(address(low, high, base))?;
            for (lane, low) in eight(low, group).iter().enumerate() {
                let value = sources.map(|row| row.0[base + lane]);
                put::<BYTES, true>(page, *low as usize & (PAGE_SIZE - 1), value);
            }
            continue;
        }
        core.lane_by_lane(active.count_ones().into(), LANE_COST);
        for lane in lanes(active << base) {
            let va = address(low, high, lane);
            let value = sources.map(|row| row.0[lane]);
            let offset = (va & OFFSET) as usize;
            if offset <= PAGE_SIZE - BYTES {
                put::<BYTES, false>(core.write.page(va)?, offset, value);
            } else {
                core.write.write(va, &bytes_of(value)[..BYTES])?;
            }
        }
    }
    Ok(())
}
