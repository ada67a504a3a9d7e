// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two recordings of one app with different inputs must differ only in the inputs.

/// A difference between two runs that no tensor explains.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Unexplained {
    /// What differs, and where.
    pub what: String,
}
