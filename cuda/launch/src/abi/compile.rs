// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the driver's compiler.

use crate::abi::attribute::jit;

/// Any option makes the driver compile PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JitOptions {
    /// Registers of a thread, at most.
    pub registers: Option<u32>,
    /// 0 to 4.
    pub optimisation: Option<u32>,
    /// Threads of a block, at most, whatever the PTX says; from CUDA 12.4.
    pub max_threads: Option<u32>,
    /// Blocks per multiprocessor, at least; only with `max_threads` and without `registers`.
    pub min_blocks: Option<u32>,
}

impl JitOptions {
    /// Set options, for `cuModuleLoadDataEx`.
    pub fn listed(&self) -> impl Iterator<Item = (i32, u64)> {
        [
            (jit::MAX_REGISTERS, self.registers),
            (jit::OPTIMIZATION_LEVEL, self.optimisation),
            (jit::MAX_THREADS_PER_BLOCK, self.max_threads),
            (jit::MIN_CTA_PER_SM, self.min_blocks),
            (jit::OVERRIDE_DIRECTIVE_VALUES, self.max_threads.map(|_| 1)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, u64::from(value?))))
    }
}
