// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of a batch: rows of lanes.

mod row;
mod whole;
#[cfg(target_arch = "x86_64")]
pub(crate) mod wide;

pub(crate) use row::{CHUNK, GROUP};
pub use row::{LANES, Row, lanes};
pub(crate) use whole::{repeat, spread};

/// Of the architecture; temporaries and constants follow.
pub const REGISTERS: usize = 64;

/// The rows of one batch.
#[derive(Debug)]
pub struct Rows {
    #[allow(clippy::vec_box)]
    rows: Vec<Box<Row>>,
    #[allow(clippy::vec_box)]
    unused: Vec<Box<Row>>,
    spare: Box<Row>,
    active: Box<Row>,
    mask: u64,
    count: u32,
    live: u64,
    /// Results replace whole rows: no lane that matters is inactive.
    full: bool,
    chunks: usize,
}

impl Rows {
    pub(crate) fn new(count: u16, lanes: usize) -> Rows {
        Rows {
            rows: (0..usize::from(count).max(REGISTERS))
                .map(|_| Box::new(Row::ZERO))
                .collect(),
            unused: Vec::new(),
            spare: Box::new(Row::ZERO),
            active: Box::new(Row::ZERO),
            mask: 0,
            count: 0,
            live: 0,
            full: false,
            chunks: lanes.clamp(1, LANES).div_ceil(CHUNK),
        }
    }

    /// Rows after the registers are zero: a thread's start sets the registers that it can see.
    pub(crate) fn reset(&mut self, count: u16, lanes: usize) {
        let count = usize::from(count).max(REGISTERS);
        if self.rows.len() > count {
            self.unused.extend(self.rows.drain(count..));
        }
        for row in self.rows.iter_mut().skip(REGISTERS) {
            row.0.fill(0);
        }
        while self.rows.len() < count {
            self.push(0);
        }
        self.activate(0, 0);
        self.full = false;
        self.chunks = lanes.clamp(1, LANES).div_ceil(CHUNK);
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.rows.len() + self.unused.len() + 2) * (size_of::<Row>() + size_of::<Box<Row>>())
    }

    /// Lanes outside `live` may receive anything.
    pub fn activate(&mut self, mask: u64, live: u64) {
        self.full = mask & live == live;
        self.live = live;
        if self.mask != mask {
            self.mask = mask;
            self.count = mask.count_ones();
            for (lane, active) in self.active.0.iter_mut().enumerate() {
                *active = ((mask >> lane) as u32 & 1).wrapping_neg();
            }
        }
    }

    #[inline(always)]
    pub(crate) fn active(&self) -> &Row {
        &self.active
    }

    /// Active lanes.
    #[inline(always)]
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Counted once per change: counting bits may be slow.
    #[inline(always)]
    pub(crate) fn active_count(&self) -> u64 {
        self.count.into()
    }

    #[inline(always)]
    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.full && self.chunks * CHUNK == LANES
    }

    /// A row.
    #[inline(always)]
    pub fn get(&self, row: u16) -> &Row {
        &self.rows[usize::from(row)]
    }

    /// A row to write, whichever lanes are active.
    #[inline(always)]
    pub fn get_mut(&mut self, row: u16) -> &mut Row {
        &mut self.rows[usize::from(row)]
    }

    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn push(&mut self, value: u32) {
        let mut row = self.unused.pop().unwrap_or_else(|| Box::new(Row::ZERO));
        row.0.fill(value);
        self.rows.push(row);
    }

    pub(crate) fn push_row(&mut self, values: &[u32; LANES]) {
        self.push(0);
        if let Some(row) = self.rows.last_mut() {
            row.0 = *values;
        }
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.rows.truncate(count);
    }

    pub(crate) fn merges(&self, row: u16) -> bool {
        !self.full && usize::from(row) < REGISTERS
    }

    #[inline(always)]
    pub(crate) fn replaced(&mut self, row: u16, count: u16) -> Option<&mut [Box<Row>]> {
        let first = usize::from(row);
        match self.full || first >= REGISTERS {
            true => self.rows.get_mut(first..first + usize::from(count)),
            false => None,
        }
    }

    pub(crate) fn set(&mut self, row: u16, from: u16) {
        self.rows[usize::from(row)].0 = self.rows[usize::from(from)].0;
    }

    /// Inactive lanes that matter keep their words in registers.
    #[inline(always)]
    pub fn replace(&mut self, row: u16, new: &mut Box<Row>) {
        std::mem::swap(&mut self.spare, new);
        self.commit(row);
        std::mem::swap(&mut self.spare, new);
    }

    #[inline(always)]
    pub(crate) fn lanes(&self) -> usize {
        self.chunks * CHUNK
    }

    #[inline(always)]
    pub(crate) fn commit(&mut self, row: u16) {
        let row = usize::from(row);
        if self.full || row >= REGISTERS {
            std::mem::swap(&mut self.rows[row], &mut self.spare);
        } else {
            whole::merge(&mut self.rows[row], &self.spare, &self.active);
        }
    }

    /// Merges for inactive lanes; row `from` may lose its content.
    #[inline(always)]
    pub(crate) fn take(&mut self, from: u16, to: u16) {
        let (from, to) = (usize::from(from), usize::from(to));
        if self.full {
            self.rows.swap(from, to);
        } else if let Ok([from, to]) = self.rows.get_disjoint_mut([from, to]) {
            whole::merge(to, from, &self.active);
        }
    }

    /// The spare row, to be committed, and sources.
    #[inline(always)]
    pub(crate) fn operands<const N: usize>(&mut self, rows: [u16; N]) -> (&mut Row, [&Row; N]) {
        let sources = rows.map(|row| &*self.rows[usize::from(row)]);
        (&mut self.spare, sources)
    }

    /// Active lanes with a bit set there.
    pub fn nonzero(&self, row: u16) -> u64 {
        whole::nonzero(&self.rows[usize::from(row)]) & self.mask
    }

    #[inline(always)]
    pub(crate) fn copy(&mut self, from: u16, to: u16) {
        self.spare.0 = self.rows[usize::from(from)].0;
        self.commit(to);
    }
}
