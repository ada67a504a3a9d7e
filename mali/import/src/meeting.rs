// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts overlaps among many ranges without comparing each pair.

use std::ops::Range;

#[derive(Debug, Default)]
pub(crate) struct Meeting {
    starts: Vec<u64>,
    /// Not in the order of `starts`: each list ascends.
    ends: Vec<u64>,
}

impl Meeting {
    pub(crate) fn count(&self, range: &Range<u64>) -> usize {
        let begun = self.starts.partition_point(|start| *start < range.end);
        let over = self.ends.partition_point(|end| *end <= range.start);
        begun.saturating_sub(over)
    }
}

impl FromIterator<Range<u64>> for Meeting {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let (mut starts, mut ends): (Vec<u64>, Vec<u64>) = ranges
            .into_iter()
            .map(|range| (range.start, range.end))
            .unzip();
        starts.sort_unstable();
        ends.sort_unstable();
        Self { starts, ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_meet_as_one_by_one() {
        let ranges = [0..4, 2..6, 2..6, 6..9, 1..9, 12..14, 13..13, 14..14, 20..30];
        let meeting: Meeting = ranges.iter().cloned().collect();
        for start in 0..32 {
            for end in start + 1..=32 {
                let meets = |r: &&Range<u64>| r.start < end && start < r.end;
                let expected = ranges.iter().filter(meets).count();
                assert_eq!(meeting.count(&(start..end)), expected, "{start}..{end}");
            }
        }
        assert_eq!(Meeting::default().count(&(0..u64::MAX)), 0);
    }
}
