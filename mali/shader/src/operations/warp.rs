// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of other lanes.

use gpureplay_shader::core::{Core, Done};
use gpureplay_shader::ir::micro::MicroOp;
use gpureplay_shader::rows::{Rows, lanes};
use mali_isa::LaneOp;

/// Modifiers of [`permute`]; `log2` of a group's lanes.
pub(crate) fn modifiers(log2: u32, how: LaneOp) -> u32 {
    let how = match how {
        LaneOp::None => 0,
        LaneOp::Xor => 1,
        LaneOp::Accumulate => 2,
        LaneOp::Shift => 3,
    };
    log2 | how << 8
}

fn group(op: &MicroOp, core: &Core<'_>) -> usize {
    (1usize << (op.m & 0xff).min(6)).min(core.warp_lanes as usize)
}

/// `CLPER`: row `a` of lane `b`, or `c` if that is inactive.
pub(crate) fn permute(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let (mask, size) = (rows.mask(), group(op, core));
    for lane in lanes(mask) {
        let (first, own) = (lane & !(size - 1), lane & (size - 1));
        let operand = rows.get(op.b).0[lane] as usize;
        let other = match op.m >> 8 {
            0 => Some(operand & (size - 1)),
            1 => Some((own ^ operand) & (size - 1)),
            // A scan's step: the upper half gets the lower half's last lane. No compiler emits it: the meaning is
            // from its name.
            2 if operand.is_power_of_two() && own & operand != 0 => {
                Some(own & !(2 * operand - 1) | (operand - 1))
            }
            2 => None,
            _ => Some(own.wrapping_add(operand)).filter(|&other| other < size),
        };
        let other = other
            .map(|other| first + other)
            .filter(|other| mask >> other & 1 == 1);
        core.results.0[0].0[lane] = match other {
            Some(other) => rows.get(op.a).0[other],
            None => rows.get(op.c).0[lane],
        };
    }
    rows.replace(op.d, &mut core.results.0[0]);
    Ok(())
}

/// `WMASK`: lanes with non-zero `a`; modifier bit 8 stands for inactive lanes.
pub(crate) fn ballot(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let (mask, size) = (rows.mask(), group(op, core));
    let fill = if op.m >> 8 & 1 == 1 { !mask } else { 0 };
    let votes = rows.nonzero(op.a) | fill;
    for lane in lanes(mask) {
        let first = lane & !(size - 1);
        core.results.0[0].0[lane] = (votes >> first) as u32 & ((1u32 << size) - 1);
    }
    rows.replace(op.d, &mut core.results.0[0]);
    Ok(())
}
