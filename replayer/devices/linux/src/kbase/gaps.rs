// SPDX-License-Identifier: MIT OR Apache-2.0
//! Free addresses of this process.

use std::fs;

use nix::errno::Errno;

/// The driver places nothing below.
pub(crate) const LOWEST: u64 = 2 << 20;
/// Guard gap below the stack; Linux 5.10 may use it all the same.
const STACK: u64 = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    between: Vec<(u64, u64)>,
    /// End of the last mapping, usually the stack: random.
    end: u64,
}

impl Gaps {
    pub(crate) fn now() -> Result<Self, Errno> {
        let maps = fs::read_to_string("/proc/self/maps");
        let maps = maps.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
        Ok(Self::between(&maps))
    }

    fn between(maps: &str) -> Self {
        let mut between = Vec::new();
        let mut end = LOWEST;
        for line in maps.lines() {
            let range = line
                .split_once(' ')
                .and_then(|(range, _)| range.split_once('-'));
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            let Some((from, to)) = range.and_then(|(a, b)| Some((number(a)?, number(b)?))) else {
                continue;
            };
            let limit = match line.ends_with("[stack]") {
                true => from.saturating_sub(STACK),
                false => from,
            };
            if limit > end {
                between.push((end, limit));
            }
            end = end.max(to);
        }
        Self { between, end }
    }

    #[cfg(test)]
    pub(crate) fn of(between: &[(u64, u64)]) -> Self {
        Self {
            between: between.to_vec(),
            end: u64::MAX,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Ascending; without what is above the last mapping.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.between.iter().copied()
    }

    pub(crate) fn has(&self, start: u64, end: u64) -> bool {
        let mut gaps = self.between.iter();
        gaps.any(|&(from, to)| from <= start && start < end && end <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_leave_room_below_the_stack() {
        let maps = "00400000-00500000 r-xp 00000000 00:00 0 /bin/x\n\
                    00700000-00800000 rw-p 00000000 00:00 0 [heap]\n\
                    7ff000000000-7ff000100000 rw-p 00000000 00:00 0 [stack]\n\
                    7ff100000000-7ff100001000 r-xp 00000000 00:00 0 [vdso]\n";
        let gaps = Gaps::between(maps);
        assert_eq!(
            gaps,
            Gaps {
                between: vec![
                    (0x20_0000, 0x40_0000),
                    (0x50_0000, 0x70_0000),
                    (0x80_0000, 0x7fef_fff0_0000),
                    (0x7ff0_0010_0000, 0x7ff1_0000_0000)
                ],
                end: 0x7ff1_0000_1000
            }
        );
        assert!(gaps.has(0x20_0000, 0x40_0000) && gaps.has(0x60_0000, 0x60_1000));
        assert!(!gaps.has(0x3f_f000, 0x40_1000) && !gaps.has(0x7ff1_0000_1000, 0x7ff1_0000_2000));
    }
}
