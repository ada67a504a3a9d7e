// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules for running on another GPU.

use std::fmt;

gpureplay_format::named! {
    /// A rule for a recording that is to run on another GPU.
    TargetRule;

    /// The recording is sound on the GPU that was recorded, job chains included.
    Sound = "target-sound";
    /// Both GPUs are of the same architecture version, unless mixing them is asked for.
    Version = "target-version";
    /// The GPU has every instruction of every shader that a job runs.
    Instructions = "target-instructions";
    /// All of a shader can be seen: no jump whose target is known only when it runs.
    WholeShader = "target-whole-shader";
    /// No shader looks at the number of its core, where the cores differ.
    CoreNumber = "target-core-number";
    /// No shader looks at lanes or warps, where the width of a warp differs.
    Warp = "target-warp";
    /// Work groups are no larger than the GPU allows, for shaders with that many registers.
    GroupSize = "target-group-size";
    /// Work groups with a barrier are no larger than the GPU allows.
    BarrierSize = "target-barrier-size";
    /// The GPU has the job slot of every chain, and the slot runs jobs of these types.
    JobSlot = "target-job-slot";
    /// The GPU has the pixel formats of all textures and images, written in the same way.
    Format = "target-format";
    /// All GPU memory lies where the GPU can address it.
    AddressBits = "target-address-bits";
    /// There is room in the address space for storage of all threads that the GPU runs.
    Storage = "target-storage";
    /// With the changes the recording keeps all rules, job chains included, for the other GPU.
    Deep = "target-deep";
    /// Outputs do not depend on the order in which work groups start, which other GPUs choose in other ways.
    Order = "target-order";
    /// After every chain all memory is the same on the models of both GPUs, thread storage left out.
    Equal = "target-equal";
}

/// Why a recording cannot become one of another GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Broken rule.
    pub rule: TargetRule,
    /// Submission, from 0, and header's address.
    pub job: Option<(u32, u64)>,
    /// Cause.
    pub text: String,
}

impl Refusal {
    pub(crate) fn new(rule: TargetRule, text: impl Into<String>) -> Self {
        Self {
            rule,
            job: None,
            text: text.into(),
        }
    }

    pub(crate) fn of_job(rule: TargetRule, job: (u32, u64), text: impl Into<String>) -> Self {
        Self {
            job: Some(job),
            ..Self::new(rule, text)
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} broken", self.rule.name())?;
        if let Some((submission, address)) = self.job {
            write!(f, " by job {address:#x} of submission {submission}")?;
        }
        write!(f, ": {} ({})", self.text, self.rule.meaning().trim())
    }
}

impl std::error::Error for Refusal {}
