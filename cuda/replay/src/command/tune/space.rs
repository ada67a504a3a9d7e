// SPDX-License-Identifier: MIT OR Apache-2.0
//! The candidates that lists make together.

use crate::{JitOptions, Sizes};
use serde::{Deserialize, Serialize};

use super::words::Bounds;
use crate::command::failure::Failure;
use crate::command::report;

const MOST_CANDIDATES: usize = 1 << 20;

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
    /// Shared memory's part of what it shares with the first-level cache, in percent; -1 is as recorded.
    #[serde(default = "as_recorded")]
    pub(super) carveout: i32,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
}

fn as_recorded() -> i32 {
    -1
}

impl Candidate {
    pub(super) const RECORDED: &str = "recorded";

    pub(super) fn recorded(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            image: Self::RECORDED.to_owned(),
            max_registers: 0,
            optimisation: -1,
            max_threads: 0,
            min_blocks: 0,
            carveout: -1,
            grid,
            block,
        }
    }

    pub(super) fn options(&self) -> JitOptions {
        let said = |value: u32| (value > 0).then_some(value);
        JitOptions {
            registers: said(self.max_registers),
            optimisation: u32::try_from(self.optimisation).ok(),
            max_threads: said(self.max_threads),
            min_blocks: said(self.min_blocks),
        }
    }

    pub(super) fn is_loaded_as(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.options(), one.carveout);
        self.image == other.image && key(self) == key(other)
    }

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
        if self.carveout >= 0 {
            words += &format!(", {} % for shared memory", self.carveout);
        }
        if self.optimisation >= 0 {
            words += &format!(", optimisation {}", self.optimisation);
        }
        words
    }
}

#[derive(Clone, Copy)]
pub(super) enum Grids<'a> {
    /// Keeps the number of threads per dimension.
    Adapted,
    Kept,
    Given(&'a [[u32; 3]]),
}

pub(super) struct Space<'a> {
    pub(super) images: Vec<&'a str>,
    pub(super) registers: &'a [u32],
    pub(super) optimisation: &'a [i32],
    pub(super) bounds: &'a [Bounds],
    pub(super) carveouts: &'a [i32],
    pub(super) blocks: &'a [[u32; 3]],
    pub(super) grids: Grids<'a>,
}

impl Space<'_> {
    /// Neighbours share image and compilation. Minimum blocks do not count beside registers: no candidate has both.
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
                        if all.len() + shapes.len() * self.carveouts.len() > MOST_CANDIDATES {
                            return Err(Failure::Usage(format!(
                                "the lists make more than {MOST_CANDIDATES} candidates together"
                            )));
                        }
                        let of = |carveout: i32, [grid, block]: [[u32; 3]; 2]| Candidate {
                            image: (*image).to_owned(),
                            max_registers: *registers,
                            optimisation: *optimisation,
                            max_threads: bounds.threads,
                            min_blocks: bounds.blocks,
                            carveout,
                            grid,
                            block,
                        };
                        for carveout in self.carveouts {
                            all.extend(shapes.iter().map(|shape| of(*carveout, *shape)));
                        }
                    }
                }
            }
        }
        Ok(all)
    }

    fn shapes(&self, recorded: Sizes) -> Vec<[[u32; 3]; 2]> {
        let shapes = |block: &[u32; 3]| match self.grids {
            Grids::Adapted => vec![[recorded.keep_total(*block).grid, *block]],
            Grids::Kept => vec![[recorded.grid, *block]],
            Grids::Given(grids) => grids.iter().map(|grid| [*grid, *block]).collect(),
        };
        self.blocks.iter().flat_map(shapes).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::Sizes;

    use super::super::words::{AllBounds, List, Sampler};
    use super::{Grids, Space};

    fn list(text: &str) -> Vec<[u32; 3]> {
        text.parse::<List>().unwrap().0
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
            carveouts: &[-1],
            blocks: &blocks,
            grids: Grids::Adapted,
        };
        let all = space.candidates(recorded).unwrap();
        assert_eq!(all.len(), (3 + 2) * 3);
        assert_eq!(all[0].grid, [20, 12, 2]);
        assert_eq!(all[1].grid, [5, 48, 2]);
        assert_eq!(all[2].grid, [1, 192, 2]);
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        space.carveouts = &[-1, 0, 100];
        assert_eq!(space.candidates(recorded).unwrap().len(), 3 * 15);
        space.carveouts = &[-1];
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
            carveouts: &[-1],
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
