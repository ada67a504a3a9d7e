// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of a search: sizes, bounds, order, budget.

use std::str::FromStr;
use std::time::Duration;

use crate::command::target::sizes;

const MOST_OF_RANGE: u32 = 1 << 14;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List(pub(super) Vec<[u32; 3]>);

impl FromStr for List {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut list = Vec::new();
        for word in text.split([' ', ';']).filter(|word| !word.is_empty()) {
            match word.split_once("..") {
                Some((first, rest)) => range(&mut list, first, rest).ok_or_else(|| {
                    format!(
                        "{word:?} is no range A..B or A..B:STEP of sizes above 0, or has too many"
                    )
                })?,
                None => list.push(sizes(word)?),
            }
        }
        if list.is_empty() {
            return Err("names no sizes".into());
        }
        Ok(Self(list))
    }
}

/// `A..B`: doubled from A; `A..B:STEP`: from A by STEP.
fn range(list: &mut Vec<[u32; 3]>, first: &str, rest: &str) -> Option<()> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (last, Some(number(step)?)),
        None => (rest, None),
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last || step.is_some_and(|step| (last - first) / step >= MOST_OF_RANGE) {
        return None;
    }
    let next = |size: &u32| match step {
        Some(step) => size.checked_add(step),
        None => size.checked_mul(2),
    };
    let all = std::iter::successors(Some(first), next).take_while(|size| *size <= last);
    list.extend(all.map(|x| [x, 1, 1]));
    Some(())
}

/// `THREADS` or `THREADS,BLOCKS`; 0 as in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) threads: u32,
    pub(super) blocks: u32,
}

#[derive(Clone, Debug)]
pub(super) struct AllBounds(pub(super) Vec<Bounds>);

impl FromStr for AllBounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.split([' ', ';']).filter(|word| !word.is_empty());
        let bounds = |word: &str| {
            let (threads, blocks) = word.split_once(',').unwrap_or((word, "0"));
            let number = |text: &str, most| text.parse().ok().filter(|number| *number <= most);
            match (number(threads, 1024), number(blocks, 32)) {
                (Some(threads), Some(blocks)) if threads > 0 || blocks == 0 => {
                    Ok(Bounds { threads, blocks })
                }
                _ => Err(format!(
                    "{word:?} is not THREADS or THREADS,BLOCKS, of at most 1024 and 32"
                )),
            }
        };
        words.map(bounds).collect::<Result<_, _>>().map(Self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampler {
    All,
    Random(u64),
    Learn(u64),
}

impl FromStr for Sampler {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':').unwrap_or((text, "0")) {
            ("all", "0") => Ok(Self::All),
            (name @ ("random" | "learn"), seed) => {
                let seed = seed.parse().map_err(|_| format!("{seed:?} is no seed"))?;
                Ok(match name {
                    "learn" => Self::Learn(seed),
                    _ => Self::Random(seed),
                })
            }
            _ => Err("is neither all, random:SEED nor learn:SEED".into()),
        }
    }
}

impl Sampler {
    pub(super) fn order<T>(self, candidates: &mut [T]) {
        if let Self::Random(seed) = self {
            fastrand::Rng::with_seed(seed).shuffle(candidates);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    Tries(u64),
    Time(Duration),
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let number = text.parse::<u64>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| {
                "is neither a number of tries nor of seconds, such as 60s".to_owned()
            })
        };
        match text.strip_suffix('s') {
            Some(seconds) => Ok(Self::Time(Duration::from_secs(number(seconds)?))),
            None => Ok(Self::Tries(number(text)?)),
        }
    }
}

impl Budget {
    pub(super) fn is_spent(self, tries: u64, time: Duration) -> bool {
        match self {
            Self::Tries(most) => tries >= most,
            Self::Time(most) => time >= most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AllBounds, Budget, List, Sampler};

    fn list(text: &str) -> Vec<[u32; 3]> {
        text.parse::<List>().unwrap().0
    }

    #[test]
    fn sizes_and_ranges_are_read_and_nonsense_is_not() {
        assert_eq!(list("64 8,4;2,2,2"), [[64, 1, 1], [8, 4, 1], [2, 2, 2]]);
        assert_eq!(list("3..24"), [3, 6, 12, 24].map(|x| [x, 1, 1]));
        assert_eq!(list("5 10..19:4"), [5, 10, 14, 18].map(|x| [x, 1, 1]));
        assert_eq!(list("2147483648..4294967295").len(), 1);
        for nonsense in [
            "",
            " ",
            "0..8",
            "8..4",
            "1..8:0",
            "1..",
            "..8",
            "1..99999:1",
            "4,,",
            "x",
        ] {
            assert!(nonsense.parse::<List>().is_err(), "{nonsense}");
        }
        for nonsense in ["1025", "128,33", "0,2", "128,2,1", "-1"] {
            assert!(nonsense.parse::<AllBounds>().is_err(), "{nonsense}");
        }
        for nonsense in ["0", "0s", "s", "5m", "-1"] {
            assert!(nonsense.parse::<Budget>().is_err(), "{nonsense}");
        }
        for nonsense in ["some", "random:", "all:3", "learn:x"] {
            assert!(nonsense.parse::<Sampler>().is_err(), "{nonsense}");
        }
    }
}
