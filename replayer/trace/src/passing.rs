// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts a passing trace's submissions.

use zerocopy::FromBytes;

use crate::RecordType;
use crate::layout::Header;

const HEADER: usize = size_of::<Header>();

/// Counts SUBMIT records.
#[derive(Clone, Debug, Default)]
pub struct Submissions {
    /// Received part of the next header.
    header: Vec<u8>,
    rest: usize,
    count: u64,
}

impl Submissions {
    /// Takes a trace's next bytes. Others give some count; a reader will refuse them.
    pub fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let skipped = self.rest.min(bytes.len());
                self.rest -= skipped;
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            let (part, later) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
            self.header.extend(part);
            bytes = later;
            if let Ok(header) = Header::read_from_bytes(&self.header) {
                self.count += u64::from(header.kind.get() == RecordType::Submit as u16);
                let length = usize::try_from(header.length.get()).unwrap_or(usize::MAX);
                self.rest = length.saturating_sub(HEADER);
                self.header.clear();
            }
        }
    }

    /// SUBMIT records so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: RecordType, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + payload];
        bytes[..2].copy_from_slice(&(kind as u16).to_le_bytes());
        bytes[4..8].copy_from_slice(&((HEADER + payload) as u32).to_le_bytes());
        bytes
    }

    #[test]
    fn pieces_of_any_size_give_the_same_count() {
        let mut trace = record(RecordType::Begin, 96);
        for _ in 0..3 {
            trace.extend(record(RecordType::Page, 4112));
            trace.extend(record(RecordType::Submit, 16));
        }
        trace.extend(record(RecordType::End, 16));
        for size in [1, 7, 24, 4096, trace.len()] {
            let mut submissions = Submissions::default();
            trace.chunks(size).for_each(|piece| submissions.pass(piece));
            assert_eq!(submissions.count(), 3, "{size}");
        }
        let mut submissions = Submissions::default();
        submissions.pass(&[0xff; 1000]);
        submissions.pass(&[0; 1000]);
        assert_eq!(submissions.count(), 0);
    }
}
