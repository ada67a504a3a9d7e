// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operations of the table that are not executed, and why.

use mali_isa::Mnemonic as M;

/// Why an operation is not executed: a shader that contains it raises the fault of an invalid encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It belongs to another stage than compute; this is what it works on.
    Stage(&'static str),
    /// What it computes is not public, no compiler whose source or output is public emits it, and a guess would be
    /// worse than a fault; this is what is missing.
    Unknown(&'static str),
}

/// Why the model does not execute an operation, or `None`: it does.
pub fn absence(mnemonic: M) -> Option<Absence> {
    use Absence::{Stage, Unknown};
    Some(match mnemonic {
        M::Atest | M::DiscardF32 => Stage("the coverage of a fragment"),
        M::Blend | M::LdTile | M::StTile => Stage("the pixels of a tile"),
        M::ZsEmit => Stage("the depth and stencil of a fragment"),
        M::LdVar
        | M::LdVarFlat
        | M::LdVarFlatImm
        | M::LdVarImm
        | M::LdVarSpecial
        | M::VarTexF16
        | M::VarTexF32 => Stage("the varyings of a fragment"),
        M::LdAttr | M::LdAttrImm | M::LeaAttr | M::LeaAttrImm => {
            Stage("the attributes of a vertex")
        }
        M::Doorbell | M::Eureka | M::Kaboom => Stage("the job manager"),
        M::FatanAssistF16 | M::FatanAssistF32 | M::FatanTableF16 | M::FatanTableF32 => {
            Unknown("how the arc tangent is split between assist and table")
        }
        M::FrcbrtApproxAF32 | M::FrcbrtApproxBF32 | M::FrcbrtApproxCF32 => {
            Unknown("what each of the three steps of the cube root gives")
        }
        M::FpclassF16 | M::FpclassF32 => Unknown("the number of each class"),
        M::FsincosOffsetU6 => Unknown("sign and unit of the distance"),
        M::FmulCslice | M::FmulSliceF32 => Unknown("which bits of the mantissas a slice has"),
        M::VnAsst1F16 | M::VnAsst1F32 | M::VnAsst2F32 | M::VnAsst2V2f16 => {
            Unknown("what the assists give to one another")
        }
        M::Imuld | M::ImovFma => Unknown("which lane of a pair has which half of the product"),
        M::JumpEx => Unknown("the second operand, and where return addresses are kept"),
        M::BranchLowbitsF32 => Unknown("which low bits"),
        _ => return None,
    })
}
