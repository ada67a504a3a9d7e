// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores of a batch.
//!
//! Addresses come as two rows: low and high words. Lanes that read one and the same address share one access, lanes in
//! one page share one translation; everything else goes lane by lane.

use mali_memory::{PAGE_SIZE, Page};

use super::core::Core;
use super::micro::{MicroOp, Trouble};
use super::rows::{LANES, Row, Rows};
use super::tlb::OFFSET;

/// Lanes that are checked together for being in one page.
const GROUP: usize = 8;

/// Words of an access of any size.
type Words = [u32; 4];

#[inline(always)]
fn fetch<const BYTES: usize>(page: &Page<'_>, at: usize) -> Words {
    match BYTES {
        1 => [page.load_u8(at).into(), 0, 0, 0],
        2 => [page.load_u16(at).into(), 0, 0, 0],
        3 => [
            u32::from(page.load_u16(at)) | u32::from(page.load_u8(at + 2)) << 16,
            0,
            0,
            0,
        ],
        4 => [page.load_u32(at), 0, 0, 0],
        6 => [page.load_u32(at), page.load_u16(at + 4).into(), 0, 0],
        8 => {
            let value = page.load_u64(at);
            [value as u32, (value >> 32) as u32, 0, 0]
        }
        12 => [
            page.load_u32(at),
            page.load_u32(at + 4),
            page.load_u32(at + 8),
            0,
        ],
        _ => {
            let value = page.load_u128(at);
            [
                value as u32,
                (value >> 32) as u32,
                (value >> 64) as u32,
                (value >> 96) as u32,
            ]
        }
    }
}

#[inline(always)]
fn put<const BYTES: usize>(page: &Page<'_>, at: usize, words: Words) {
    match BYTES {
        1 => page.store_u8(at, words[0] as u8),
        2 => page.store_u16(at, words[0] as u16),
        3 => {
            page.store_u16(at, words[0] as u16);
            page.store_u8(at + 2, (words[0] >> 16) as u8);
        }
        4 => page.store_u32(at, words[0]),
        6 => {
            page.store_u32(at, words[0]);
            page.store_u16(at + 4, words[1] as u16);
        }
        8 => page.store_u64(at, u64::from(words[0]) | u64::from(words[1]) << 32),
        12 => {
            page.store_u32(at, words[0]);
            page.store_u32(at + 4, words[1]);
            page.store_u32(at + 8, words[2]);
        }
        _ => {
            page.store_u64(at, u64::from(words[0]) | u64::from(words[1]) << 32);
            page.store_u64(at + 8, u64::from(words[2]) | u64::from(words[3]) << 32);
        }
    }
}

/// Lanes whose bits are set.
pub(crate) fn lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

#[inline(always)]
pub(crate) fn address(low: &Row, high: &Row, lane: usize) -> u64 {
    u64::from(low.0[lane]) | u64::from(high.0[lane]) << 32
}

/// What the addresses of eight lanes have in common.
#[inline(always)]
fn in_one_page<const BYTES: usize>(low: &[u32], high: &[u32]) -> bool {
    let mut differ = 0;
    let mut crosses = false;
    for lane in 0..GROUP {
        differ |= (high[lane] ^ high[0]) | ((low[lane] ^ low[0]) & !(OFFSET as u32));
        crosses |= (low[lane] & OFFSET as u32) as usize > PAGE_SIZE - BYTES;
    }
    differ == 0 && !crosses
}

/// Whether all lanes of the batch have the address of lane 0.
#[inline(always)]
fn is_uniform(low: &Row, high: &Row, lanes: usize) -> bool {
    let mut differ = 0;
    for (l, h) in low.0[..lanes].iter().zip(&high.0[..lanes]) {
        differ |= (l ^ low.0[0]) | (h ^ high.0[0]);
    }
    differ == 0
}

/// Loads BYTES bytes for each active lane from the address in rows `a` (low) and `b` (high) into rows `d` on.
pub(crate) fn load<const BYTES: usize>(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
    let words = BYTES.div_ceil(4);
    let mask = rows.mask();
    core.statistics.bytes_read += u64::from(mask.count_ones()) * BYTES as u64;
    {
        let (low, high) = (rows.get(op.a), rows.get(op.b));
        let width = rows.lanes();
        let all = mask == u64::MAX >> (LANES - width);
        if all && is_uniform(low, high, width) {
            let value = load_lane::<BYTES>(core, address(low, high, 0))?;
            for (row, word) in core.results.0.iter_mut().zip(value).take(words) {
                row.0[..width].fill(word);
            }
        } else {
            for base in (0..width).step_by(GROUP) {
                let group = mask >> base & 0xff;
                if group == 0xff
                    && in_one_page::<BYTES>(&low.0[base..base + GROUP], &high.0[base..base + GROUP])
                {
                    let page = core.read.page(address(low, high, base))?;
                    for lane in base..base + GROUP {
                        let value = fetch::<BYTES>(page, (low.0[lane] & OFFSET as u32) as usize);
                        core.results.put(lane, &value[..words]);
                    }
                } else {
                    for lane in lanes(group << base) {
                        let value = load_lane::<BYTES>(core, address(low, high, lane))?;
                        core.results.put(lane, &value[..words]);
                    }
                }
            }
        }
    }
    for word in 0..words {
        rows.replace(op.d + word as u16, &mut core.results.0[word]);
    }
    Ok(())
}

#[inline(always)]
fn load_lane<const BYTES: usize>(core: &mut Core<'_>, va: u64) -> Result<Words, Trouble> {
    let offset = (va & OFFSET) as usize;
    if offset <= PAGE_SIZE - BYTES {
        return Ok(fetch::<BYTES>(core.read.page(va)?, offset));
    }
    let mut bytes = [0; 16];
    core.read.read(va, &mut bytes[..BYTES])?;
    Ok(words_of(bytes))
}

/// The words of 16 bytes.
pub(crate) fn words_of(bytes: [u8; 16]) -> Words {
    let value = u128::from_le_bytes(bytes);
    [
        value as u32,
        (value >> 32) as u32,
        (value >> 64) as u32,
        (value >> 96) as u32,
    ]
}

/// The bytes of four words.
pub(crate) fn bytes_of(words: Words) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Stores BYTES bytes for each active lane from rows `d` on to the address in rows `a` (low) and `b` (high).
pub(crate) fn store<const BYTES: usize>(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
    let words = BYTES.div_ceil(4);
    let mask = rows.mask();
    core.statistics.bytes_written += u64::from(mask.count_ones()) * BYTES as u64;
    let (low, high) = (rows.get(op.a), rows.get(op.b));
    let value = |lane: usize| {
        let mut value = [0; 4];
        for (word, value) in value.iter_mut().enumerate().take(words) {
            *value = rows.get(op.d + word as u16).0[lane];
        }
        value
    };
    for base in (0..rows.lanes()).step_by(GROUP) {
        let group = mask >> base & 0xff;
        if group == 0xff
            && in_one_page::<BYTES>(&low.0[base..base + GROUP], &high.0[base..base + GROUP])
        {
            let page = core.write.page(address(low, high, base))?;
            for lane in base..base + GROUP {
                put::<BYTES>(page, (low.0[lane] & OFFSET as u32) as usize, value(lane));
            }
            continue;
        }
        for lane in lanes(group << base) {
            let va = address(low, high, lane);
            let offset = (va & OFFSET) as usize;
            if offset <= PAGE_SIZE - BYTES {
                put::<BYTES>(core.write.page(va)?, offset, value(lane));
            } else {
                core.write.write(va, &bytes_of(value(lane))[..BYTES])?;
            }
        }
    }
    Ok(())
}

/// The load of `bytes` bytes from a uniform buffer: offset in row `a`, index of the buffer in row `b`.
pub(crate) fn load_uniform(
    bytes: u32,
) -> fn(&MicroOp, &mut Rows, &mut Core<'_>) -> Result<(), Trouble> {
    match bytes {
        1 => uniform::<1>,
        2 => uniform::<2>,
        3 => uniform::<3>,
        4 => uniform::<4>,
        6 => uniform::<6>,
        8 => uniform::<8>,
        12 => uniform::<12>,
        _ => uniform::<16>,
    }
}

fn uniform<const BYTES: usize>(
    op: &MicroOp,
    rows: &mut Rows,
    core: &mut Core<'_>,
) -> Result<(), Trouble> {
    let words = BYTES.div_ceil(4);
    let mask = rows.mask();
    core.statistics.bytes_read += u64::from(mask.count_ones()) * BYTES as u64;
    let mut last = None;
    for lane in lanes(mask) {
        let place = (rows.get(op.a).0[lane], rows.get(op.b).0[lane]);
        let value = match last {
            Some((known, value)) if known == place => value,
            _ => uniform_lane::<BYTES>(core, place.0, place.1)?,
        };
        last = Some((place, value));
        core.results.put(lane, &value[..words]);
    }
    for word in 0..words {
        rows.replace(op.d + word as u16, &mut core.results.0[word]);
    }
    Ok(())
}

/// What lies outside of the buffer, or in a buffer that does not exist, reads as zero.
fn uniform_lane<const BYTES: usize>(
    core: &mut Core<'_>,
    offset: u32,
    index: u32,
) -> Result<Words, Trouble> {
    let Some(buffer) = core.uniform_buffer(index)? else {
        return Ok([0; 4]);
    };
    let left = buffer
        .bytes
        .saturating_sub(u64::from(offset))
        .min(BYTES as u64) as usize;
    let mut bytes = [0; 16];
    core.read.read(
        buffer.address.wrapping_add(u64::from(offset)),
        &mut bytes[..left],
    )?;
    Ok(words_of(bytes))
}
