// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads from uniform buffers.

use crate::core::{Core, Done, Trouble, UniformBuffer};
use crate::ir::micro::{MicroOp, OnMemory};
use crate::rows::{Rows, lanes};
use crate::words::words_of;

type Words = [u32; 4];

/// Offset `a`, buffer `b`.
pub fn load_uniform(bytes: u32) -> OnMemory {
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

fn uniform<const BYTES: usize>(op: &MicroOp, rows: &mut Rows, core: &mut Core<'_>) -> Done {
    let words = BYTES.div_ceil(4);
    let mask = rows.mask();
    core.statistics.bytes_read += rows.active_count() * BYTES as u64;
    let (mut last, mut buffers) = (None, LastBuffer::default());
    for lane in lanes(mask) {
        let place = (rows.get(op.a).0[lane], rows.get(op.b).0[lane]);
        let value = match last {
            Some((known, value)) if known == place => value,
            _ => uniform_lane::<BYTES>(core, &mut buffers, place)?,
        };
        last = Some((place, value));
        core.results.put(lane, &value[..words]);
    }
    for word in 0..words {
        rows.replace(op.d + word as u16, &mut core.results.0[word]);
    }
    Ok(())
}

#[derive(Default)]
pub(crate) struct LastBuffer(Option<(u32, UniformBuffer)>);

impl LastBuffer {
    #[inline]
    pub(crate) fn get(
        &mut self,
        index: u32,
        core: &mut Core<'_>,
    ) -> Result<Option<UniformBuffer>, Trouble> {
        match self.0 {
            Some((of, buffer)) if of == index => Ok(Some(buffer)),
            _ => {
                let found = core.family.uniform_buffer(index, &mut core.read)?;
                self.0 = found.map(|buffer| (index, buffer));
                Ok(found)
            }
        }
    }
}

fn uniform_lane<const BYTES: usize>(
    core: &mut Core<'_>,
    buffers: &mut LastBuffer,
    (offset, index): (u32, u32),
) -> Result<Words, Trouble> {
    let Some(buffer) = buffers.get(index, core)? else {
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
