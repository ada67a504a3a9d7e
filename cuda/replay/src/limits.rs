// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes of a launch, held against the limits of GPU and kernel before the driver sees them.

use thiserror::Error;

/// Sizes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared: u32,
}

impl Sizes {
    /// Another block, and in each dimension as many blocks as are needed for at least as many threads.
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
    /// Threads of a block of this kernel: registers and `__launch_bounds__` make them fewer than the GPU's.
    pub threads: u32,
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared: u32,
    /// `.reqntid`: the only block that the kernel takes.
    pub required: Option<[u32; 3]>,
    /// Registers of a thread.
    pub registers: u32,
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
        /// The block that was asked for.
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
        /// The block that was asked for.
        block: [u32; 3],
        /// Its threads.
        threads: u64,
        /// How many there may be.
        limit: u32,
        /// Registers of a thread.
        registers: u32,
    },
    /// A dimension that is too large.
    #[error("{what} dimension {axis} is {value}; the GPU allows at most {limit}")]
    Dimension {
        /// Block or grid.
        what: &'static str,
        /// x, y or z.
        axis: char,
        /// What was asked for.
        value: u32,
        /// What there may be.
        limit: u32,
    },
    /// Too much shared memory.
    #[error("{bytes} bytes of dynamic shared memory; this kernel allows at most {limit}")]
    Shared {
        /// What was asked for.
        bytes: u32,
        /// What there may be.
        limit: u32,
    },
}

impl Limits {
    /// Refuses sizes that break a limit.
    ///
    /// # Errors
    /// Which limit, and its value.
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
        let threads = sizes
            .block
            .iter()
            .fold(1u64, |all, size| all.saturating_mul(u64::from(*size)));
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
    use super::{Limits, Refusal, Sizes};

    const LIMITS: Limits = Limits {
        threads: 512,
        block: [1024, 1024, 64],
        grid: [0x7fff_ffff, 65_535, 65_535],
        shared: 49_152,
        required: None,
        registers: 100,
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
