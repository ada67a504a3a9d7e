// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ends a dispatch early.

use crate::MmuFault;

/// Shader cores' faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The program counter left the shader.
    InvalidPc,
    /// No such encoding, or not in a compute shader.
    InvalidEncoding,
    /// A senseless descriptor.
    InvalidData,
    /// The MMU refused an access.
    Mmu(MmuFault),
    /// The control's budget is used up.
    Budget,
    /// The shared limit is used up.
    WorkLimit,
    /// The control asked to stop.
    Aborted,
}

/// A fault with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} (clause at {clause:#x}, address {address:#x})")]
pub struct ShaderFault {
    /// What happened.
    pub kind: FaultKind,
    /// Of the instruction or the data.
    pub address: u64,
    /// Of the executing clause.
    pub clause: u64,
    /// For people.
    pub text: String,
}
