// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules for job chains.

use crate::walk::program::Full;

gpureplay_format::named! {
    /// A rule that the job chains of a recording must keep.
    DeepRule;

    /// The recording is for a GPU whose descriptors are known.
    KnownGpu = "deep-gpu";
    /// A chain ends: no job follows itself, directly or through others.
    ChainLoop = "chain-loop";
    /// Every job header of a chain is aligned and lies in a region of descriptors.
    ChainHeader = "chain-header";
    /// Every job that was made ready is part of the chain that is submitted next.
    ChainComplete = "chain-complete";
    /// A job is of a type that recordings use: null, write value, cache flush, compute.
    JobType = "job-type";
    /// Every descriptor that a job names lies in a region of descriptors or data.
    DescriptorRegion = "descriptor-region";
    /// No caller's tensor lies over a descriptor that a job uses.
    DescriptorTensor = "descriptor-tensor";
    /// A descriptor has a form that the GPU accepts.
    DescriptorForm = "descriptor-form";
    /// A shader lies in a region of code.
    ShaderRegion = "shader-region";
    /// Every buffer that a job names lies inside one region, in a writable one if the job writes it.
    BufferRegion = "buffer-region";
    /// Chains, jobs and their uploads stay within what this check keeps.
    MemoryLimit = "deep-limit";
}

/// Broken rule, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeepViolation {
    /// The rule.
    pub rule: DeepRule,
    /// Index of the submitting action.
    pub action: u32,
    /// GPU address of what breaks it.
    pub address: u64,
    /// What lies there.
    pub text: String,
}

impl From<Full> for DeepViolation {
    fn from(full: Full) -> Self {
        Self {
            rule: DeepRule::MemoryLimit,
            action: full.action,
            address: full.address,
            text: "more memory is uploaded than this check keeps".into(),
        }
    }
}

impl std::fmt::Display for DeepViolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "rule {} broken by the chain of action {} at {:#x} ({}): {}",
            self.rule.name(),
            self.action,
            self.address,
            self.text,
            self.rule.meaning().trim()
        )
    }
}

impl std::error::Error for DeepViolation {}
