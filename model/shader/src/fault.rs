// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ends a dispatch before its time.

use crate::MmuFault;

/// Faults of the shader cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// `INSTR_INVALID_PC`: the program counter left the shader.
    InvalidPc,
    /// `INSTR_INVALID_ENC`: no such encoding, or not in a compute shader.
    InvalidEncoding,
    /// `DATA_INVALID_FAULT`: a senseless descriptor.
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

impl FaultKind {
    /// Exception code for `JS_STATUS` and the job header, from the Mali register interface.
    pub fn exception_code(&self) -> u8 {
        match self {
            FaultKind::InvalidPc => 0x50,
            FaultKind::InvalidEncoding => 0x51,
            FaultKind::InvalidData => 0x58,
            FaultKind::Mmu(fault) => fault.code,
            // Job terminated, as by a hard stop.
            FaultKind::Budget | FaultKind::WorkLimit | FaultKind::Aborted => 0x04,
        }
    }
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
    /// Instruction and reason, for people.
    pub text: String,
}
