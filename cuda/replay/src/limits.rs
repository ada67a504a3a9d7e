// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks sizes of a launch before the driver sees them.

use thiserror::Error;

/// Sizes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads in x, y, z.
    pub block: [u32; 3],
    /// Dynamic, in bytes.
    pub shared: u32,
}

impl Sizes {
    /// Another block, with at least as many threads per dimension.
    #[must_use]
    pub fn keep_total(self, block: [u32; 3]) -> Self {
        let blocks = |axis: usize| {
            let threads = u64::from(self.grid[axis]) * u64::from(self.block[axis]);
            let blocks = threads.div_ceil(u64::from(block[axis].max(1)));
            u32::try_from(blocks).unwrap_or(u32::MAX)
        };
        Self {
            grid: [blocks(0), blocks(1), blocks(2)],
            block,
            ..self
        }
    }
}

/// What GPU and kernel allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Per block: the GPU's, less by registers or `__launch_bounds__`.
    pub threads: u32,
    /// Threads in x, y, z.
    pub block: [u32; 3],
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Dynamic, in bytes.
    pub shared: u32,
    /// `.reqntid`: the only block.
    pub required: Option<[u32; 3]>,
    /// Per thread.
    pub registers: u32,
    /// Limits of an OpenMP kernel.
    pub openmp: OpenMp,
}

/// Threads and teams (blocks) that LLVM compiled for: least, most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenMp {
    threads: [Option<u32>; 2],
    teams: [Option<u32>; 2],
}

impl OpenMp {
    pub(crate) const BYTES: usize = 20;

    pub(crate) fn variable(kernel: &str) -> String {
        format!("{kernel}_kernel_environment")
    }

    /// Never refuses recorded sizes.
    ///
    /// At bytes 4, 8, 12, 16: least and most threads, least and most teams, if above 0 (LLVM,
    /// `ConfigurationEnvironmentTy` in openmp's Environment.h).
    pub(crate) fn read(environment: &[u8; Self::BYTES], recorded: &Sizes) -> Self {
        let (_, limits) = environment.split_at(4);
        let (limits, _) = limits.as_chunks();
        let limit = |number: usize| {
            let limit = i32::from_le_bytes(limits[number]);
            u32::try_from(limit).ok().filter(|limit| *limit > 0)
        };
        let around = |value: u64, number| {
            [
                limit(number).filter(|least| u64::from(*least) <= value),
                limit(number + 1).filter(|most| u64::from(*most) >= value),
            ]
        };
        Self {
            threads: around(product(recorded.block), 0),
            teams: around(product(recorded.grid), 2),
        }
    }

    fn check(&self, sizes: &Sizes) -> Result<(), Refusal> {
        for (what, value, limits) in [
            ("threads of a block", product(sizes.block), self.threads),
            ("teams", product(sizes.grid), self.teams),
        ] {
            for (bound, limit) in ["least", "most"].into_iter().zip(limits) {
                let is_broken = |limit: &u32| match bound {
                    "least" => value < u64::from(*limit),
                    _ => value > u64::from(*limit),
                };
                if let Some(limit) = limit.filter(is_broken) {
                    return Err(Refusal::OpenMp {
                        what,
                        value,
                        bound,
                        limit,
                    });
                }
            }
        }
        Ok(())
    }
}

fn product(sizes: [u32; 3]) -> u64 {
    let sizes = sizes.into_iter().map(u64::from);
    sizes.fold(1, u64::saturating_mul)
}

/// A limit that a launch would break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A dimension of 0.
    #[error("{what} {sizes:?} has a dimension of 0")]
    Zero {
        /// Block or grid.
        what: &'static str,
        /// Its sizes.
        sizes: [u32; 3],
    },
    /// Another block than the only one.
    #[error("block {block:?}: this kernel takes {required:?} only (.reqntid)")]
    Required {
        /// Wanted block.
        block: [u32; 3],
        /// The only one.
        required: [u32; 3],
    },
    /// Too many threads.
    #[error(
        "block {block:?} has {threads} threads; this kernel allows at most {limit} \
         (it has {registers} registers, and perhaps launch bounds)"
    )]
    Threads {
        /// Wanted block.
        block: [u32; 3],
        /// Its threads.
        threads: u64,
        /// Limit.
        limit: u32,
        /// Per thread.
        registers: u32,
    },
    /// Too large a dimension.
    #[error("{what} dimension {axis} is {value}; the GPU allows at most {limit}")]
    Dimension {
        /// Block or grid.
        what: &'static str,
        /// x, y or z.
        axis: char,
        /// Wanted.
        value: u32,
        /// Limit.
        limit: u32,
    },
    /// Outside OpenMP's threads or teams.
    #[error("{value} {what}; OpenMP compiled this kernel for at {bound} {limit}")]
    OpenMp {
        /// Threads or teams.
        what: &'static str,
        /// Wanted.
        value: u64,
        /// Least or most.
        bound: &'static str,
        /// Limit.
        limit: u32,
    },
    /// Too much shared memory.
    #[error("{bytes} bytes of dynamic shared memory; this kernel allows at most {limit}")]
    Shared {
        /// Wanted.
        bytes: u32,
        /// Limit.
        limit: u32,
    },
}

impl Limits {
    /// Refuses sizes that break a limit.
    ///
    /// # Errors
    /// The limit and its value.
    pub fn check(&self, sizes: &Sizes) -> Result<(), Refusal> {
        for (what, sizes) in [("block", sizes.block), ("grid", sizes.grid)] {
            if sizes.contains(&0) {
                return Err(Refusal::Zero { what, sizes });
            }
        }
        if let Some(required) = self.required
            && required != sizes.block
        {
            return Err(Refusal::Required {
                block: sizes.block,
                required,
            });
        }
        // First: in machine code OpenMP's limit is a nameless bound.
        self.openmp.check(sizes)?;
        let threads = product(sizes.block);
        if threads > u64::from(self.threads) {
            let (block, limit, registers) = (sizes.block, self.threads, self.registers);
            return Err(Refusal::Threads {
                block,
                threads,
                limit,
                registers,
            });
        }
        for (what, values, limits) in [
            ("block", sizes.block, self.block),
            ("grid", sizes.grid, self.grid),
        ] {
            for ((axis, value), limit) in ['x', 'y', 'z'].into_iter().zip(values).zip(limits) {
                if value > limit {
                    return Err(Refusal::Dimension {
                        what,
                        axis,
                        value,
                        limit,
                    });
                }
            }
        }
        if sizes.shared > self.shared {
            return Err(Refusal::Shared {
                bytes: sizes.shared,
                limit: self.shared,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, OpenMp, Refusal, Sizes};

    const LIMITS: Limits = Limits {
        threads: 512,
        block: [1024, 1024, 64],
        grid: [0x7fff_ffff, 65_535, 65_535],
        shared: 49_152,
        required: None,
        registers: 100,
        openmp: OpenMp {
            threads: [None; 2],
            teams: [None; 2],
        },
    };
    const SIZES: Sizes = Sizes {
        grid: [10, 1, 1],
        block: [512, 1, 1],
        shared: 49_152,
    };

    #[test]
    fn each_limit_is_named_with_its_value() {
        let said = |change: &dyn Fn(&mut Sizes)| {
            let mut sizes = SIZES;
            change(&mut sizes);
            LIMITS.check(&sizes).unwrap_err().to_string()
        };
        assert_eq!(LIMITS.check(&SIZES), Ok(()));
        assert_eq!(
            said(&|s| s.grid[1] = 0),
            "grid [10, 0, 1] has a dimension of 0"
        );
        assert!(
            said(&|s| s.block[1] = 2).contains("has 1024 threads; this kernel allows at most 512")
        );
        assert!(said(&|s| s.block = [u32::MAX; 3]).contains("this kernel allows at most 512"));
        assert_eq!(
            said(&|s| s.block = [1, 1, 65]),
            "block dimension z is 65; the GPU allows at most 64"
        );
        assert_eq!(
            said(&|s| s.grid[2] = 65_536),
            "grid dimension z is 65536; the GPU allows at most 65535"
        );
        assert!(said(&|s| s.shared += 1).starts_with("49153 bytes of dynamic shared memory"));
        let required = Limits {
            required: Some([128, 2, 1]),
            ..LIMITS
        };
        assert!(matches!(
            required.check(&SIZES),
            Err(Refusal::Required { .. })
        ));
    }

    #[test]
    fn what_openmp_compiled_a_kernel_for_is_a_limit() {
        let environment = |limits: [i32; 4]| {
            let mut bytes = [1, 0, 2, 0].to_vec();
            bytes.extend(limits.into_iter().flat_map(i32::to_le_bytes));
            OpenMp::read(bytes.as_slice().try_into().unwrap(), &SIZES)
        };
        let said = |openmp, grid, block| {
            let limits = Limits { openmp, ..LIMITS };
            let sizes = Sizes {
                grid: [grid, 1, 1],
                block: [block, 1, 1],
                shared: 0,
            };
            limits.check(&sizes).map_err(|refusal| refusal.to_string())
        };
        let beyond_both = said(environment([0, 512, 0, 0]), 10, 513);
        let wanted = "513 threads of a block; OpenMP compiled this kernel for at most 512";
        assert_eq!(beyond_both, Err(wanted.into()));
        let openmp = environment([64, 512, 2, 20]);
        assert_eq!(said(openmp, 20, 64), Ok(()));
        for (grid, block, wanted) in [
            (
                10,
                63,
                "63 threads of a block; OpenMP compiled this kernel for at least 64",
            ),
            (
                21,
                64,
                "21 teams; OpenMP compiled this kernel for at most 20",
            ),
            (1, 64, "1 teams; OpenMP compiled this kernel for at least 2"),
        ] {
            assert_eq!(said(openmp, grid, block), Err(wanted.into()));
        }
        // Of clang 19, for cuda/programs/openmp.c: at most 128 threads.
        let words = [0x1_0003_0000_u64, 0xffff_ffff_0000_0080, 0xffff_ffff];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let one = Sizes {
            block: [128, 1, 1],
            ..SIZES
        };
        let of_clang = OpenMp::read(bytes.first_chunk().unwrap(), &one);
        assert_eq!(
            of_clang,
            OpenMp {
                threads: [Some(1), Some(128)],
                teams: [None; 2]
            }
        );
        let few = environment([-1, 256, 0, -1]);
        // The recorded launch has 512 threads, so a limit of 256 does not count.
        assert_eq!(few, OpenMp::default());
        assert_eq!(said(few, 1 << 20, 512), Ok(()));
        let threads = environment([1, 512, -1, -1]);
        let more = Limits {
            threads: 1024,
            openmp: threads,
            ..LIMITS
        };
        let sizes = Sizes {
            block: [513, 1, 1],
            ..SIZES
        };
        assert!(matches!(
            more.check(&sizes),
            Err(Refusal::OpenMp { limit: 512, .. })
        ));
    }

    #[test]
    fn the_number_of_threads_is_kept_or_grows_by_less_than_a_block() {
        assert_eq!(SIZES.keep_total([128, 1, 1]).grid, [40, 1, 1]);
        assert_eq!(SIZES.keep_total([1000, 1, 1]).grid, [6, 1, 1]);
        assert_eq!(SIZES.keep_total([0, 1, 1]).grid, [5120, 1, 1]);
        let plane = Sizes {
            grid: [7, 5, 3],
            block: [32, 32, 1],
            shared: 0,
        };
        assert_eq!(plane.keep_total([16, 8, 2]).grid, [14, 20, 2]);
        assert_eq!(plane.keep_total([1024, 1, 1]).grid, [1, 160, 3]);
        let most = Sizes {
            grid: [u32::MAX; 3],
            block: [1024; 3],
            shared: 0,
        };
        assert_eq!(most.keep_total([1; 3]).grid, [u32::MAX; 3]);
    }
}
