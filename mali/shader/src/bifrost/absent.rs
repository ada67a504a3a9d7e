// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only list of unexecuted operations.

use mali_isa::Mnemonic as M;

/// Why not; a shader with it faults for an invalid encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Another stage's; what it works on.
    Stage(&'static str),
    /// Not public, and not emitted by public compilers; what is missing. A guess would be worse than a fault.
    Unknown(&'static str),
}

/// Makes the pattern ([`absent_mnemonics!`]) and [`absence`].
macro_rules! operations {
    (only in shaders that draw { $($draws:ident($what:literal): $($drawing:ident)|+;)+ }
     never { $($kind:ident($why:literal): $($mnemonic:ident)|+;)+ }) => {
        /// Pattern of operations that are not translated.
        macro_rules! absent_mnemonics {
            () => { $($(M::$mnemonic)|+)|+ };
        }
        pub(super) use absent_mnemonics;

        /// Why compute shaders lack an operation; `None`: it is executed.
        pub fn absence(mnemonic: M) -> Option<Absence> {
            Some(match mnemonic {
                $($(M::$drawing)|+ => Absence::$draws($what),)+
                $($(M::$mnemonic)|+ => Absence::$kind($why),)+
                _ => return None,
            })
        }
    };
}

operations! {
    only in shaders that draw {
        Stage("the coverage of a fragment"): Atest;
        Stage("the pixels of a tile"): Blend;
        Stage("the varyings of a fragment"):
            LdVar | LdVarFlat | LdVarFlatImm | LdVarImm | VarTexF16 | VarTexF32;
        Stage("the attributes of a vertex"): LdAttr | LdAttrImm | LeaAttr | LeaAttrImm;
    }
    never {
        Stage("the coverage of a fragment"): DiscardF32;
        Stage("the pixels of a tile"): LdTile | StTile;
        Stage("the depth and stencil of a fragment"): ZsEmit;
        Stage("the varyings of a fragment"): LdVarSpecial;
        Stage("the job manager"): Doorbell | Eureka | Kaboom;
        Unknown("how the arc tangent is split between assist and table"):
            FatanAssistF16 | FatanAssistF32 | FatanTableF16 | FatanTableF32;
        Unknown("what each of the three steps of the cube root gives"):
            FrcbrtApproxAF32 | FrcbrtApproxBF32 | FrcbrtApproxCF32;
        Unknown("the number of each class"): FpclassF16 | FpclassF32;
        Unknown("sign and unit of the distance"): FsincosOffsetU6;
        Unknown("which bits of the mantissas a slice has"): FmulCslice | FmulSliceF32;
        Unknown("what the assists give to one another"):
            VnAsst1F16 | VnAsst1F32 | VnAsst2F32 | VnAsst2V2f16;
        Unknown("which lane of a pair has which half of the product"): Imuld | ImovFma;
        Unknown("the second operand, and where return addresses are kept"): JumpEx;
        Unknown("which low bits"): BranchLowbitsF32;
    }
}
