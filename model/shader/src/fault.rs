// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ends a dispatch before its time.

use crate::MmuFault;

/// Faults of the shader cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The program counter left the shader: `INSTR_INVALID_PC`.
    InvalidPc,
    /// An encoding that is not allowed, at all or in a compute shader: `INSTR_INVALID_ENC`.
    InvalidEncoding,
    /// A senseless descriptor (grid, storage, texture, attribute): `DATA_INVALID_FAULT`.
    InvalidData,
    /// The MMU refused an access.
    Mmu(MmuFault),
    /// The control's budget was used up.
    Budget,
    /// The shared limit of work was used up.
    WorkLimit,
    /// The control asked to stop.
    Aborted,
}

impl FaultKind {
    /// The code that `JS_STATUS` and the job header show, from the Mali register interface.
    pub fn exception_code(&self) -> u8 {
        match self {
            FaultKind::InvalidPc => 0x50,
            FaultKind::InvalidEncoding => 0x51,
            FaultKind::InvalidData => 0x58,
            FaultKind::Mmu(fault) => fault.code,
            // Job terminated: what a hard stop leaves.
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
    /// Of the instruction, or of the data that could not be reached.
    pub address: u64,
    /// Of the executing clause.
    pub clause: u64,
    /// Instruction and reason, for people.
    pub text: String,
}
