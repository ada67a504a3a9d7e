// SPDX-License-Identifier: MIT OR Apache-2.0
//! The candidates of a search: what its lists make together, in which order, and how many of them.

use std::str::FromStr;
use std::time::Duration;

use gpureplay_cuda_replay::{JitOptions, Sizes};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::report;
use crate::target::sizes;

/// The most candidates that lists may make together.
const MOST: usize = 1 << 20;
/// The most sizes of one range.
const MOST_OF_RANGE: u32 = 1 << 14;

/// One way to run the launch.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Candidate {
    /// `recorded`, or the file.
    pub(super) image: String,
    /// Registers of a thread, at most; 0 if that is the compiler's choice.
    pub(super) max_registers: u32,
    /// Level of optimisation; -1 is the compiler's own.
    pub(super) optimisation: i32,
    /// Launch bounds: threads of a block at most; 0 if they are those of the image.
    pub(super) max_threads: u32,
    /// Launch bounds: blocks of a multiprocessor at least; 0 if they are those of the image.
    pub(super) min_blocks: u32,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
}

impl Candidate {
    /// The name of the recorded image.
    pub(super) const RECORDED: &str = "recorded";

    /// What the compiler is told.
    pub(super) fn options(&self) -> JitOptions {
        let said = |value: u32| (value > 0).then_some(value);
        JitOptions {
            registers: said(self.max_registers),
            optimisation: u32::try_from(self.optimisation).ok(),
            max_threads: said(self.max_threads),
            min_blocks: said(self.min_blocks),
        }
    }

    /// Whether one loaded image serves both.
    pub(super) fn is_loaded_as(&self, other: &Self) -> bool {
        self.image == other.image && self.options() == other.options()
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let mut words = format!(
            "{}, grid {}, block {}",
            self.image,
            report::sizes(self.grid),
            report::sizes(self.block)
        );
        for (value, what) in [
            (self.max_registers, "registers at most"),
            (self.max_threads, "threads of a block at most"),
            (self.min_blocks, "blocks of a multiprocessor at least"),
        ] {
            if value > 0 {
                words += &format!(", {value} {what}");
            }
        }
        if self.optimisation >= 0 {
            words += &format!(", optimisation {}", self.optimisation);
        }
        words
    }
}

/// Blocks or grids: sizes and ranges, separated by spaces or semicolons.
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

/// `A..B`: A, doubled up to B; `A..B:STEP`: every STEP-th from A to B.
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

/// Launch bounds: `THREADS` or `THREADS,BLOCKS`; 0 leaves those of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    threads: u32,
    blocks: u32,
}

/// Launch bounds, separated by spaces or semicolons.
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

/// How the grid follows the block.
#[derive(Clone, Copy)]
pub(super) enum Grids<'a> {
    /// As many blocks in each dimension as keep the number of threads.
    Adapted,
    /// As recorded.
    Kept,
    /// Each of these.
    Given(&'a [[u32; 3]]),
}

/// What the lists say.
pub(super) struct Space<'a> {
    pub(super) images: Vec<&'a str>,
    pub(super) registers: &'a [u32],
    pub(super) optimisation: &'a [i32],
    pub(super) bounds: &'a [Bounds],
    pub(super) blocks: &'a [[u32; 3]],
    pub(super) grids: Grids<'a>,
}

impl Space<'_> {
    /// All candidates, those of one image and one way to compile it after each other. The fewest blocks of a multiprocessor do not
    /// count beside registers, so that no candidate has both.
    pub(super) fn candidates(&self, recorded: Sizes) -> Result<Vec<Candidate>, Failure> {
        let shapes = self.shapes(recorded);
        let mut all = Vec::new();
        for image in &self.images {
            for registers in self.registers {
                for optimisation in self.optimisation {
                    for bounds in self.bounds {
                        if *registers > 0 && bounds.blocks > 0 {
                            continue;
                        }
                        if all.len() + shapes.len() > MOST {
                            return Err(Failure::Usage(format!(
                                "the lists make more than {MOST} candidates together"
                            )));
                        }
                        all.extend(shapes.iter().map(|[grid, block]| Candidate {
                            image: (*image).to_owned(),
                            max_registers: *registers,
                            optimisation: *optimisation,
                            max_threads: bounds.threads,
                            min_blocks: bounds.blocks,
                            grid: *grid,
                            block: *block,
                        }));
                    }
                }
            }
        }
        Ok(all)
    }

    /// Grid and block of each.
    fn shapes(&self, recorded: Sizes) -> Vec<[[u32; 3]; 2]> {
        let shapes = |block: &[u32; 3]| match self.grids {
            Grids::Adapted => vec![[recorded.keep_total(*block).grid, *block]],
            Grids::Kept => vec![[recorded.grid, *block]],
            Grids::Given(grids) => grids.iter().map(|grid| [*grid, *block]).collect(),
        };
        self.blocks.iter().flat_map(shapes).collect()
    }
}

/// In which order candidates are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampler {
    /// As the lists name them.
    All,
    /// At random, the same for the same seed.
    Random(u64),
}

impl FromStr for Sampler {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':').unwrap_or((text, "0")) {
            ("all", "0") => Ok(Self::All),
            ("random", seed) => seed
                .parse()
                .map(Self::Random)
                .map_err(|_| format!("{seed:?} is no seed")),
            _ => Err("is neither all, random nor random:SEED".into()),
        }
    }
}

impl Sampler {
    pub(super) fn order(self, candidates: &mut [Candidate]) {
        if let Self::Random(seed) = self {
            fastrand::Rng::with_seed(seed).shuffle(candidates);
        }
    }
}

/// When a search ends although there are more candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    /// After so many tries.
    Tries(u64),
    /// No try begins after so long.
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
    /// Whether nothing is left after so many tries and so long.
    pub(super) fn is_spent(self, tries: u64, time: Duration) -> bool {
        match self {
            Self::Tries(most) => tries >= most,
            Self::Time(most) => time >= most,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gpureplay_cuda_replay::Sizes;

    use super::{AllBounds, Budget, Grids, List, Sampler, Space};

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
        for nonsense in ["some", "random:", "all:3"] {
            assert!(nonsense.parse::<Sampler>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn lists_are_multiplied_and_the_grid_follows_the_block_in_each_dimension() {
        let recorded = Sizes {
            grid: [10, 6, 2],
            block: [32, 32, 1],
            shared: 0,
        };
        let bounds: AllBounds = "0 256 256,4".parse().unwrap();
        let blocks = list("16,16 64,4 1024");
        let mut space = Space {
            images: vec!["recorded"],
            registers: &[0, 64],
            optimisation: &[-1],
            bounds: &bounds.0,
            blocks: &blocks,
            grids: Grids::Adapted,
        };
        let all = space.candidates(recorded).unwrap();
        // Registers go with two of three bounds.
        assert_eq!(all.len(), (3 + 2) * 3);
        assert_eq!(all[0].grid, [20, 12, 2]);
        assert_eq!(all[1].grid, [5, 48, 2]);
        assert_eq!(all[2].grid, [1, 192, 2]);
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        let grids = list("1..1024");
        space.grids = Grids::Given(&grids);
        assert_eq!(space.candidates(recorded).unwrap().len(), 15 * 11);
        space.grids = Grids::Kept;
        assert!(
            space
                .candidates(recorded)
                .unwrap()
                .iter()
                .all(|one| one.grid == recorded.grid)
        );
        let many: Vec<_> = (1..2000).map(|x| [x, 1, 1]).collect();
        space.blocks = &many;
        space.grids = Grids::Given(&many);
        assert!(space.candidates(recorded).is_err());
    }

    #[test]
    fn a_sample_is_the_same_for_the_same_seed() {
        let blocks = list("1..64:1");
        let space = Space {
            images: vec!["recorded"],
            registers: &[0],
            optimisation: &[-1],
            bounds: &"0".parse::<AllBounds>().unwrap().0,
            blocks: &blocks,
            grids: Grids::Kept,
        };
        let recorded = Sizes {
            grid: [1; 3],
            block: [1; 3],
            shared: 0,
        };
        let sample = |seed| {
            let mut all = space.candidates(recorded).unwrap();
            Sampler::Random(seed).order(&mut all);
            all
        };
        assert_eq!(sample(3), sample(3));
        assert_ne!(sample(3), sample(4));
        let mut sorted = sample(3);
        sorted.sort();
        assert_eq!(sorted, space.candidates(recorded).unwrap());
    }
}
