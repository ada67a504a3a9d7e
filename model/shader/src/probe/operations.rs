// SPDX-License-Identifier: MIT OR Apache-2.0
//! What probes do when executed: they tell.

use super::{Access, AccessKind, Lanes, Probing, Visit};
use crate::core::{Core, Done};
use crate::ir::micro::MicroOp;
use crate::operations::memory::address;
use crate::operations::sink::is_sink;
use crate::operations::uniform::LastBuffer;
use crate::rows::{LANES, Rows, lanes};

impl Probing {
    #[inline(always)]
    fn visit<'a>(&'a self, number: u32, rows: &Rows) -> Option<Visit<'a>> {
        Some(Visit {
            site: self.sites.get(number as usize)?,
            number,
            lanes: Lanes {
                active: rows.mask(),
                live: rows.live(),
                warp: self.warp,
                barriers: self.barriers,
                first: self.first,
                threads: self.threads.get(self.batch)?,
                size: self.size,
            },
        })
    }

    /// `as_is`: memory will hold the staging registers.
    #[inline(always)]
    fn tell(
        &mut self,
        op: &MicroOp,
        rows: &Rows,
        (kind, bytes): (AccessKind, u32),
        mask: u64,
        as_is: bool,
    ) {
        let Some(mut part) = self.part.take() else {
            return;
        };
        if let Some(mut visit) = self.visit(op.m, rows)
            && mask != 0
        {
            visit.lanes.active = mask;
            let words = bytes.div_ceil(4).max(1) as u16;
            let stored =
                || std::array::from_fn(|word| &rows.get(op.d + (word as u16).min(words - 1)).0);
            part.access(&Access {
                visit,
                kind,
                bytes,
                low: &rows.get(op.a).0,
                high: &rows.get(op.b).0,
                values: as_is.then(stored),
            });
        }
        self.part = Some(part);
    }
}

pub(super) fn begin(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    if let Some(probing) = &mut core.probing
        && let Some(mut part) = probing.part.take()
    {
        if let Some(visit) = probing.visit(op.m, rows) {
            part.clause(&visit);
        }
        probing.part = Some(part);
    }
    Ok(())
}

pub(super) fn load(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    if let Some(probing) = &mut core.probing {
        probing.tell(
            op,
            rows,
            (AccessKind::Load, op.c.into()),
            rows.mask(),
            false,
        );
    }
    Ok(())
}

pub(super) fn store(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    if let Some(probing) = &mut core.probing {
        probing.tell(
            op,
            rows,
            (AccessKind::Store, op.c.into()),
            rows.mask(),
            true,
        );
    }
    Ok(())
}

pub(super) fn atomic<const BYTES: u32>(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let gone = sinks(op, rows);
    if let Some(probing) = &mut core.probing {
        probing.tell(
            op,
            rows,
            (AccessKind::Atomic, BYTES),
            rows.mask() & !gone,
            false,
        );
    }
    Ok(())
}

fn sinks(op: &MicroOp, rows: &Rows) -> u64 {
    let (low, high) = (rows.get(op.a), rows.get(op.b));
    let sink = |lane: &usize| is_sink(address(low, high, *lane));
    let gone = lanes(rows.mask()).filter(sink);
    gone.fold(0, |mask, lane| mask | 1 << lane)
}

/// What lies outside the buffer is not read.
pub(super) fn load_uniform(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let (mut low, mut high, mut inside) = ([0; LANES], [0; LANES], 0);
    let mut buffers = LastBuffer::default();
    for lane in lanes(rows.mask()) {
        let (offset, index) = (rows.get(op.a).0[lane], rows.get(op.b).0[lane]);
        let Some(buffer) = buffers.get(index, core)? else {
            continue;
        };
        if u64::from(offset) + u64::from(op.c) <= buffer.bytes {
            let va = buffer.address.wrapping_add(offset.into());
            (low[lane], high[lane]) = (va as u32, (va >> 32) as u32);
            inside |= 1 << lane;
        }
    }
    if let Some(probing) = &mut core.probing {
        let Some(mut part) = probing.part.take() else {
            return Ok(());
        };
        if let Some(mut visit) = probing.visit(op.m, rows)
            && inside != 0
        {
            visit.lanes.active = inside;
            part.access(&Access {
                visit,
                kind: AccessKind::Load,
                bytes: op.c.into(),
                low: &low,
                high: &high,
                values: None,
            });
        }
        probing.part = Some(part);
    }
    Ok(())
}

pub(super) fn texel_load(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    texels(op, rows, core, AccessKind::Load)
}

pub(super) fn texel_store(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    texels(op, rows, core, AccessKind::Store)
}

fn texels(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>, kind: AccessKind) -> Done {
    let gone = sinks(op, rows);
    let mut sizes: [u64; 17] = [0; 17];
    for lane in lanes(rows.mask() & !gone) {
        let conversion = rows.get(op.c).0[lane];
        let bytes = core.family.texel_bytes(conversion, op.e)?;
        sizes[bytes.min(16)] |= 1 << lane;
    }
    for (bytes, mask) in (1..).zip(&sizes[1..]).filter(|(_, mask)| **mask != 0) {
        if let Some(probing) = &mut core.probing {
            probing.tell(op, rows, (kind, bytes), *mask, false);
        }
    }
    Ok(())
}

pub(super) fn unseen(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    if let Some(probing) = &mut core.probing
        && let Some(mut part) = probing.part.take()
    {
        if let Some(visit) = probing.visit(op.m, rows) {
            part.unseen(&visit);
        }
        probing.part = Some(part);
    }
    Ok(())
}
