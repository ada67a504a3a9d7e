// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gr_sync_as`: ranges of GPU memory that the app synchronised. u32 count, then each: u64 first address, u64 end,
//! u64 size.

use super::Cursor;
use crate::Diagnosis;
use crate::diagnosis::Listed;

/// Synchronised range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// In the file.
    pub index: usize,
    /// First GPU address.
    pub start: u64,
    /// After the last byte.
    pub end: u64,
}

/// File of synchronised ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// Sound ranges in file order.
    pub ranges: Vec<Range>,
}

const ENTRY: usize = 24;

impl Ranges {
    pub(crate) fn all(&self) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
        self.ranges.iter().map(|range| range.start..range.end)
    }

    pub(crate) fn parse(bytes: &[u8], diagnoses: &mut Vec<Diagnosis>) -> Ranges {
        let mut cursor = Cursor::new(bytes);
        let stated = u64::from(cursor.u32().unwrap_or(0));
        let found = (cursor.left() / ENTRY) as u64;
        if stated > found {
            diagnoses.push(Diagnosis::RangesExceedFile { stated, found });
        }
        let mut ranges = Vec::new();
        let mut shapes = Listed::new(diagnoses);
        for index in 0..stated.min(found) as usize {
            let entry = (|| Some((cursor.u64()?, cursor.u64()?, cursor.u64()?)))();
            let Some((start, end, size)) = entry else {
                break;
            };
            if end.checked_sub(start) != Some(size) || size == 0 || end > 1 << 48 {
                shapes.push(Diagnosis::RangeShape {
                    index,
                    start,
                    end,
                    size,
                });
            } else {
                ranges.push(Range { index, start, end });
            }
        }
        shapes.finish();
        if cursor.left() > 0 {
            diagnoses.push(Diagnosis::RangesTail {
                bytes: cursor.left(),
            });
        }
        Ranges { ranges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_shapes() {
        let entry = |s: u64, e: u64, n: u64| [s, e, n].map(u64::to_le_bytes).concat();
        let mut bytes = 3u32.to_le_bytes().to_vec();
        bytes.extend(entry(0x1000, 0x1020, 0x20));
        bytes.extend(entry(0x2000, 0x2020, 0x10));
        bytes.extend([7; 5]);
        let mut d = Vec::new();
        let r = Ranges::parse(&bytes, &mut d);
        assert_eq!(r.ranges.len(), 1);
        let names: Vec<_> = d.iter().map(Diagnosis::name).collect();
        assert_eq!(names, ["ranges-exceed-file", "range-shape", "ranges-tail"]);
        assert_eq!(Ranges::parse(&[], &mut d), Ranges::default());
        d.clear();
        let many = [1000u32.to_le_bytes().to_vec(), vec![0; 24 * 1000]].concat();
        Ranges::parse(&many, &mut d);
        assert_eq!(d.len(), 17);
        assert_eq!(d.iter().map(Diagnosis::count).sum::<u64>(), 1000);
    }
}
