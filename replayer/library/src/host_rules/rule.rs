// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host rules, and broken ones.

gpureplay_format::named! {
    /// A rule that a recording must keep to be used on a host, besides those of `gpureplay-core`.
    HostRule;

    /// A name has at most 255 bytes.
    NameLength = "name-length";
    /// No two tensors have the same name.
    TensorNames = "tensor-names";
    /// The outputs together take at most four times the memory that the recording has, and 4 GiB.
    OutputBytes = "output-bytes";
    /// The pieces of a tensor cover each of its elements; those of an output and of a state cover none twice.
    TensorCoverage = "tensor-coverage";
    /// Every input, and every weight without a value, is bound before some job, and every output is read after one.
    TensorUse = "tensor-use";
    /// Tensors are copied in at most 2^26 stretches of memory in one pass.
    CopyRuns = "copy-runs";
    /// At most 256 settings are written: they are written again each time when the GPU was lent.
    Settings = "settings";
    /// A state has a value in the recording.
    StateValue = "state-value";
    /// A piece of a state, from its first to its last byte, shares no memory with another piece of any tensor.
    StateApart = "state-apart";
    /// No upload and no fill of a run lies in a state: nothing but its jobs changes it.
    StateKept = "state-kept";
    /// A run binds each state once, before its first job, and reads it once, after its last.
    StateBound = "state-bound";
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule.
    pub rule: HostRule,
    /// What breaks it.
    pub reason: String,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rule {}: {}", self.rule.name(), self.reason)
    }
}
