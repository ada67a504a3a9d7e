// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomic operations, lane after lane, each atomic on the host.
//!
//! Hardware combines a warp's lanes first, in any order.

use super::memory::address;
use super::sink::is_sink;
use crate::alu::pack::{Atomic, atomic32, atomic64};
use crate::core::Core;
use crate::core::Done;
use crate::core::OFFSET;
use crate::ir::micro::MicroOp;
use crate::rows::{Rows, lanes};

/// The old value is returned.
pub const RETURNS: u32 = 1 << 8;

const OPERATIONS: [Atomic; 9] = [
    Atomic::Add,
    Atomic::SMin,
    Atomic::SMax,
    Atomic::UMin,
    Atomic::UMax,
    Atomic::And,
    Atomic::Or,
    Atomic::Xor,
    Atomic::Exchange,
];

/// In the modifiers.
pub fn number(op: Atomic) -> u32 {
    OPERATIONS
        .iter()
        .position(|&other| other == op)
        .unwrap_or(0) as u32
}

fn operation(op: &MicroOp) -> Atomic {
    OPERATIONS[(op.m & 0xff) as usize % OPERATIONS.len()]
}

/// Address in `a`, `b`; operand in `c`.
pub fn word(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let what = operation(op);
    for lane in lanes(rows.mask()) {
        let va = address(rows.get(op.a), rows.get(op.b), lane);
        let argument = rows.get(op.c).0[lane];
        if is_sink(va) {
            core.results.0[0].0[lane] = 0;
            continue;
        }
        let page = core.write.page(va)?;
        let old =
            page.fetch_update_u32((va & OFFSET) as usize, |old| atomic32(old, argument, what));
        core.results.0[0].0[lane] = old;
    }
    count(rows, core, 4);
    if op.m & RETURNS != 0 {
        rows.replace(op.d, &mut core.results.0[0]);
    }
    Ok(())
}

/// Address in `a`, `b`; operand in `c`, `e` (low, high).
pub fn double(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let what = operation(op);
    for lane in lanes(rows.mask()) {
        let va = address(rows.get(op.a), rows.get(op.b), lane);
        let argument = address(rows.get(op.c), rows.get(op.e), lane);
        let page = core.write.page(va)?;
        let old =
            page.fetch_update_u64((va & OFFSET) as usize, |old| atomic64(old, argument, what));
        core.results.0[0].0[lane] = old as u32;
        core.results.0[1].0[lane] = (old >> 32) as u32;
    }
    count(rows, core, 8);
    if op.m & RETURNS != 0 {
        rows.replace(op.d, &mut core.results.0[0]);
        rows.replace(op.d + 1, &mut core.results.0[1]);
    }
    Ok(())
}

/// Writes `d` where memory holds `d` + 1.
pub fn compare_word(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    for lane in lanes(rows.mask()) {
        let va = address(rows.get(op.a), rows.get(op.b), lane);
        let (new, expected) = (rows.get(op.d).0[lane], rows.get(op.d + 1).0[lane]);
        if is_sink(va) {
            core.results.0[0].0[lane] = 0;
            continue;
        }
        let page = core.write.page(va)?;
        core.results.0[0].0[lane] =
            page.compare_exchange_u32((va & OFFSET) as usize, expected, new);
    }
    count(rows, core, 4);
    if op.m & RETURNS != 0 {
        rows.replace(op.d, &mut core.results.0[0]);
    }
    Ok(())
}

/// Writes `d`, `d` + 1 where memory holds `d` + 2, `d` + 3.
pub fn compare_double(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    for lane in lanes(rows.mask()) {
        let va = address(rows.get(op.a), rows.get(op.b), lane);
        let new = address(rows.get(op.d), rows.get(op.d + 1), lane);
        let expected = address(rows.get(op.d + 2), rows.get(op.d + 3), lane);
        let page = core.write.page(va)?;
        let old = page.compare_exchange_u64((va & OFFSET) as usize, expected, new);
        core.results.0[0].0[lane] = old as u32;
        core.results.0[1].0[lane] = (old >> 32) as u32;
    }
    count(rows, core, 8);
    if op.m & RETURNS != 0 {
        rows.replace(op.d, &mut core.results.0[0]);
        rows.replace(op.d + 1, &mut core.results.0[1]);
    }
    Ok(())
}

fn count(rows: &Rows, core: &mut Core<'_>, bytes: u64) {
    let bytes = rows.active_count() * bytes;
    core.statistics.bytes_read += bytes;
    core.statistics.bytes_written += bytes;
}
