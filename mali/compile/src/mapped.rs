// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which driver buffer holds a page.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::capture::{Buffer, Capture};
use crate::pages::Moment;

#[derive(Debug)]
pub(crate) struct Mapped<'a> {
    capture: &'a Capture,
    /// `parts` covers mappings up to this moment.
    until: Option<Moment>,
    /// First address to end and buffer; the last mapped buffer wins.
    parts: BTreeMap<u64, (u64, Holder)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) moment: Moment,
    pub(crate) buffer: Buffer,
}

impl<'a> Mapped<'a> {
    pub(crate) fn new(capture: &'a Capture) -> Self {
        Self {
            capture,
            until: None,
            parts: BTreeMap::new(),
        }
    }

    /// Jobs must not decrease.
    pub(crate) fn go_to(&mut self, job: usize) {
        let end = Moment::before(job);
        let from = self.until.map_or(Bound::Unbounded, Bound::Excluded);
        if self.until.is_some_and(|until| until >= end) {
            return;
        }
        let capture = self.capture;
        for (moment, buffers) in capture.mapped.range((from, Bound::Included(end))) {
            for buffer in buffers {
                self.cover(Holder {
                    moment: *moment,
                    buffer: *buffer,
                });
            }
        }
        self.until = Some(end);
    }

    pub(crate) fn holder(&self, va: u64) -> Option<Holder> {
        let (_, (end, holder)) = self.parts.range(..=va).next_back()?;
        (va < *end).then_some(*holder)
    }

    pub(crate) fn is_new(&self, moment: Moment, va: u64) -> bool {
        self.holder(va)
            .is_some_and(|holder| holder.moment == moment)
    }

    fn cover(&mut self, holder: Holder) {
        let start = holder.buffer.va;
        let end = start.saturating_add(holder.buffer.size);
        if start >= end {
            return;
        }
        if let Some((first, (last, other))) = self.parts.range(..start).next_back() {
            let (first, last, other) = (*first, *last, *other);
            if last > start {
                self.parts.insert(first, (start, other));
            }
            if last > end {
                self.parts.insert(end, (last, other));
            }
        }
        while let Some((first, (last, other))) = self.parts.range(start..end).next() {
            let (first, last, other) = (*first, *last, *other);
            self.parts.remove(&first);
            if last > end {
                self.parts.insert(end, (last, other));
            }
        }
        self.parts.insert(start, (end, holder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn brute_force(capture: &Capture, job: usize, va: u64) -> Option<Holder> {
        let mapped = capture.mapped.range(..=Moment::before(job));
        let all = mapped.flat_map(|(moment, buffers)| buffers.iter().map(move |b| (*moment, *b)));
        let holders = all.map(|(moment, buffer)| Holder { moment, buffer });
        let holding =
            holders.filter(|holder| va.wrapping_sub(holder.buffer.va) < holder.buffer.size);
        holding.fold(None, |_, holder| Some(holder))
    }

    #[test]
    fn the_last_buffer_of_an_address_holds_it() {
        let mut capture = Capture::default();
        let mut state = 7u64;
        let mut below = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % most
        };
        for job in 0..40 {
            let buffers = (0..below(4)).map(|_| Buffer {
                va: PAGE * (1 + below(16)),
                size: PAGE * below(6),
            });
            let buffers: Vec<Buffer> = buffers.collect();
            capture.mapped.insert(Moment::before(job), buffers);
        }
        let mut mapped = Mapped::new(&capture);
        for job in [0, 1, 1, 2, 5, 6, 20, 39] {
            mapped.go_to(job);
            for va in (0..24).map(|page| page * PAGE) {
                let found = brute_force(&capture, job, va);
                assert_eq!(mapped.holder(va), found, "{job} {va:#x}");
                let now = Moment::before(job);
                let is_new = found.is_some_and(|holder| holder.moment == now);
                assert_eq!(mapped.is_new(now, va), is_new);
            }
        }
    }
}
