// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds turns of a loop (`--region turn`). A turn ends with the first work after the host may have read a result.
//! The repeated turn with most launches is recorded.

use std::collections::HashMap;

#[derive(Default)]
struct Kind {
    times: u64,
    launches: u64,
    next: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Border {
    pub(super) expected: bool,
    pub(super) begins: bool,
}

pub(super) struct Watch {
    hash: u64,
    launches: u64,
    pending: bool,
    seen: bool,
    before: Option<u64>,
    expected: Option<u64>,
    kinds: HashMap<u64, Kind>,
}

/// At so many kinds, all are forgotten: turns that all differ are no loop.
const MOST_KINDS: usize = 1 << 16;
const MOST_OF_LOOP: usize = 1 << 10;
/// Fowler, Noll and Vo's, 64 bits.
const FNV: [u64; 2] = [0xcbf2_9ce4_8422_2325, 0x0100_0000_01b3];

impl Default for Watch {
    fn default() -> Self {
        Self {
            hash: FNV[0],
            launches: 0,
            pending: false,
            seen: false,
            before: None,
            expected: None,
            kinds: HashMap::new(),
        }
    }
}

impl Watch {
    /// Adds work before memory changes; equal work has equal `words`. A border if a turn ends.
    pub(super) fn work(&mut self, words: &[u64], is_launch: bool) -> Option<Border> {
        let border = self.seen.then(|| self.border());
        for word in words {
            for byte in word.to_le_bytes() {
                self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(FNV[1]);
            }
        }
        self.launches += u64::from(is_launch);
        border
    }

    /// `now`, or after the host's next wait.
    pub(super) fn output(&mut self, now: bool) {
        self.pending = true;
        self.seen |= now;
    }

    pub(super) fn host(&mut self) {
        self.seen |= self.pending;
    }

    pub(super) fn is_whole(&self) -> bool {
        self.seen && self.expected == Some(self.hash)
    }

    /// Most launches of a kind in this kind's loop, by what followed last; 0 outside. Earlier work, such as a
    /// tuner's trials, does not count.
    fn most_of_loop(&self, kind: u64) -> u64 {
        let mut most = 0;
        let mut at = kind;
        for _ in 0..MOST_OF_LOOP {
            let Some(next) = self.kinds.get(&at).and_then(|kind| kind.next) else {
                return 0;
            };
            most = most.max(self.kinds.get(&next).map_or(0, |kind| kind.launches));
            at = next;
            if at == kind {
                return most;
            }
        }
        0
    }

    fn border(&mut self) -> Border {
        let (ended, launches) = (self.hash, self.launches);
        (self.hash, self.launches) = (FNV[0], 0);
        (self.pending, self.seen) = (false, false);
        if self.kinds.len() >= MOST_KINDS {
            self.kinds.clear();
        }
        if let Some(before) = self.before.replace(ended) {
            self.kinds.entry(before).or_default().next = Some(ended);
        }
        let kind = self.kinds.entry(ended).or_default();
        kind.times += 1;
        kind.launches = launches;
        let next = kind.next;
        let expected = self.expected.take() == Some(ended);
        let most = self.most_of_loop(ended);
        let worth = |next: &u64| {
            let kind = self.kinds.get(next);
            kind.is_some_and(|kind| kind.times >= 2 && kind.launches == most && most > 0)
        };
        self.expected = next.filter(worth);
        Border {
            expected,
            begins: self.expected.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Border, Watch};

    fn turn(watch: &mut Watch, kernel: u64, launches: usize) -> Option<Border> {
        let border = watch.work(&[1, 64], false);
        for _ in 0..launches {
            assert_eq!(watch.work(&[7, kernel], true), None);
        }
        watch.output(false);
        watch.output(false);
        watch.host();
        border
    }

    const NOTHING: Border = Border {
        expected: false,
        begins: false,
    };
    const BEGINS: Border = Border {
        expected: false,
        begins: true,
    };
    const AGAIN: Border = Border {
        expected: true,
        begins: true,
    };

    #[test]
    fn the_third_of_equal_turns_is_recorded_and_each_after_it() {
        let mut watch = Watch::default();
        assert_eq!(turn(&mut watch, 9, 50), None, "what comes before the loop");
        let found: Vec<_> = (0..5).map(|_| turn(&mut watch, 1, 3).unwrap()).collect();
        assert_eq!(found, [NOTHING, NOTHING, BEGINS, AGAIN, AGAIN]);
        assert!(watch.is_whole());
        turn(&mut watch, 2, 3);
        assert_eq!(turn(&mut watch, 1, 3), Some(NOTHING));
    }

    #[test]
    fn of_turns_that_alternate_the_larger_is_recorded() {
        let mut watch = Watch::default();
        let mut found = Vec::new();
        for _ in 0..4 {
            found.extend(turn(&mut watch, 1, 2));
            found.extend(turn(&mut watch, 2, 20));
        }
        // Known after the second; expected after each small one.
        let large = [NOTHING, NOTHING, BEGINS, BEGINS];
        let small = [
            NOTHING,
            NOTHING,
            Border {
                expected: true,
                begins: false,
            },
        ];
        assert!(found.iter().step_by(2).eq(&large), "{found:?}");
        assert!(found.iter().skip(1).step_by(2).eq(&small), "{found:?}");
    }

    #[test]
    fn larger_turns_before_the_loop_do_not_count() {
        let mut watch = Watch::default();
        for _ in 0..5 {
            turn(&mut watch, 7, 9);
            turn(&mut watch, 8, 1);
        }
        let found: Vec<_> = (0..5).map(|_| turn(&mut watch, 1, 3).unwrap()).collect();
        assert_eq!(found[2..], [BEGINS, AGAIN, AGAIN]);
    }

    #[test]
    fn a_copy_that_waits_for_nothing_ends_no_turn() {
        let mut watch = Watch::default();
        watch.work(&[1], true);
        watch.output(false);
        assert_eq!(watch.work(&[1], true), None);
        watch.output(true);
        assert_eq!(watch.work(&[1], true), Some(NOTHING));
    }
}
