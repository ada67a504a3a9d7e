// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lanes' places in work groups.

use super::layout::Layout;
use crate::rows::{LANES, Row};

#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) mask: u64,
    pub(crate) local: [Row; 3],
    pub(crate) packed: Row,
    pub(crate) group: Row,
}

impl Places {
    pub(crate) fn new(layout: &Layout, [width, height, _]: [u32; 3], batch: usize) -> Places {
        let mut places = Places {
            mask: 0,
            local: [Row::ZERO, Row::ZERO, Row::ZERO],
            packed: Row::ZERO,
            group: Row::ZERO,
        };
        let mut number = (batch * LANES) as u32;
        for (group, lanes) in (0..).zip(layout.groups(batch)) {
            let skipped = number.max(group * layout.pitch) - group * layout.pitch;
            number = (group + 1) * layout.pitch;
            let mut at = [
                skipped % width,
                skipped / width % height,
                skipped / width / height,
            ];
            for lane in lanes.take(layout.size.saturating_sub(skipped) as usize) {
                places.mask |= 1 << lane;
                places.group.0[lane] = group;
                places.packed.0[lane] = at[0] | at[1] << 16;
                for (row, at) in places.local.iter_mut().zip(at) {
                    row.0[lane] = at;
                }
                at[0] += 1;
                if at[0] == width {
                    at = [0, at[1] + 1, at[2]];
                }
                if at[1] == height {
                    at = [0, 0, at[2] + 1];
                }
            }
        }
        places
    }
}
