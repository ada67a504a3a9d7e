// SPDX-License-Identifier: MIT OR Apache-2.0
//! What becomes of each instruction: one line for each mnemonic of the table.
//!
//! The match has no default. An instruction that is new in the table does not compile until a line here translates it, or
//! [`absent`](super::absent) says why the model does not execute it.

use mali_isa::Mnemonic as M;

use super::absent::absent_mnemonics;
use super::control::Operands;
use super::elements::After;
use super::emit::Emit;
use super::shift::Width;
use super::{Translator, Trap};
use crate::alu::integer::{self, Element};
use crate::alu::shift::{Double, Extend, Logic, Shift, Sum};
use crate::alu::{power, special};

impl Translator<'_> {
    /// Emits the micro-operations of one instruction.
    pub(super) fn instruction(&mut self) -> Result<(), Trap> {
        use Element::{S8, S16, S32, U8, U16, U32};
        use Shift::{Arithmetic, Left, Right};
        use Width::{Byte, Half, Word};
        const AND: After = After::Logic(Logic::And);
        const OR: After = After::Logic(Logic::Or);
        const XOR: After = After::Logic(Logic::Xor);
        const ADD: After = After::Sum(Sum::Add);
        const SUB: After = After::Sum(Sum::Sub);
        const RSUB: After = After::Sum(Sum::ReverseSub);
        match self.ins.op.mnemonic() {
            M::Nop => Ok(()),

            // Single precision.
            M::FaddF32 => self.fadd(),
            M::FmaF32 => self.fma(),
            M::FmaxF32 => self.fmax(true),
            M::FminF32 => self.fmax(false),
            M::FcmpF32 => self.fcmp(),
            M::CselF32 => self.csel_float(false),
            M::FroundF32 => self.fround(),
            M::FmaRscaleF32 => self.fma_rscale(),
            M::FaddRscaleF32 => self.fadd_rscale(),
            M::FaddLscaleF32 => self.fadd_lscale(),
            M::LdexpF32 => self.ldexp(),
            M::QuietF32 => self.quiet(),

            // Half precision.
            M::FaddV2f16 => self.fadd_halves(),
            M::FmaV2f16 => self.fma_halves(),
            M::FmaRscaleV2f16 => self.fma_rscale_halves(),
            M::FmaxV2f16 => self.fmax_halves(true),
            M::FminV2f16 => self.fmax_halves(false),
            M::FcmpV2f16 => self.fcmp_halves(),
            M::CselV2f16 => self.csel_float(true),
            M::FroundV2f16 => self.fround_halves(),
            M::LdexpV2f16 => self.ldexp_halves(),
            M::QuietV2f16 => self.quiet_halves(),

            // Sums, products, minima, bits.
            M::IaddS32 => self.iadd(S32),
            M::IaddU32 => self.iadd(U32),
            M::IaddV2s16 => self.iadd(S16),
            M::IaddV2u16 => self.iadd(U16),
            M::IaddV4s8 => self.iadd(S8),
            M::IaddV4u8 => self.iadd(U8),
            M::IsubS32 => self.isub(S32),
            M::IsubU32 => self.isub(U32),
            M::IsubV2s16 => self.isub(S16),
            M::IsubV2u16 => self.isub(U16),
            M::IsubV4s8 => self.isub(S8),
            M::IsubV4u8 => self.isub(U8),
            M::HaddS32 => self.hadd(S32),
            M::HaddU32 => self.hadd(U32),
            M::HaddV2s16 => self.hadd(S16),
            M::HaddV2u16 => self.hadd(U16),
            M::HaddV4s8 => self.hadd(S8),
            M::HaddV4u8 => self.hadd(U8),
            M::IabsS32 => self.iabs(S32),
            M::IabsV2s16 => self.iabs(S16),
            M::IabsV4s8 => self.iabs(S8),
            M::ImulI32 => self.imul_word(),
            M::ImulV2i16 => self.imul(U16),
            M::ImulV4i8 => self.imul(U8),
            M::IaddcI32 => direct!(self, |a, b, c| integer::iaddc(a, b, c)),
            M::IsubbI32 => direct!(self, |a, b, c| integer::isubb(a, b, c)),
            M::ImadI32 => direct!(self, |a, b, c| integer::imad(a, b, c)),
            M::ImulsubI32 => direct!(self, |a, b, c| integer::imulsub(a, b, c)),
            M::ImsubI32 => direct!(self, |a, b, c| integer::imsub(a, b, c)),
            M::Imax3S32 => direct!(self, |a, b, c| integer::imax3(a, b, c, true)),
            M::Imax3U32 => direct!(self, |a, b, c| integer::imax3(a, b, c, false)),
            M::Imin3S32 => direct!(self, |a, b, c| integer::imin3(a, b, c, true)),
            M::Imin3U32 => direct!(self, |a, b, c| integer::imin3(a, b, c, false)),
            M::IclampS32 => direct!(self, |a, b, c| integer::iclamp(a, b, c, true)),
            M::IclampU32 => direct!(self, |a, b, c| integer::iclamp(a, b, c, false)),
            M::IdpV4i8 => self.idp(),
            M::ClzU32 => self.clz(U32),
            M::ClzV2u16 => self.clz(U16),
            M::ClzV4u8 => self.clz(U8),
            M::PopcountI32 => direct!(self, |a| integer::popcount(a)),
            M::BitrevI32 => direct!(self, |a| integer::bitrev(a)),
            // Only 64-bit tuples have it, whose operands are pairs of registers.
            M::ImadI64 => Err(self.trap("is not in a 64-bit tuple")),

            // Comparison, selection, permutation.
            M::IcmpI32 | M::IcmpU32 => self.icmp(U32),
            M::IcmpS32 => self.icmp(S32),
            M::IcmpV2i16 | M::IcmpV2u16 => self.icmp(U16),
            M::IcmpV2s16 => self.icmp(S16),
            M::IcmpV4i8 | M::IcmpV4u8 => self.icmp(U8),
            M::IcmpV4s8 => self.icmp(S8),
            M::IcmpiI32 | M::IcmpiU32 => self.icmp_low(false),
            M::IcmpiS32 => self.icmp_low(true),
            M::IcmpmI32 => self.icmp_middle(),
            M::IcmpfI32 => self.icmp_top(),
            M::CselI32 | M::CselU32 => self.csel(U32),
            M::CselS32 => self.csel(S32),
            M::CselV2i16 | M::CselV2u16 => self.csel(U16),
            M::CselV2s16 => self.csel(S16),
            M::MuxI32 => self.mux(32),
            M::MuxV2i16 => self.mux(16),
            M::MuxV4i8 => self.mux(8),
            M::MovI32 => self.same(),
            M::AndI32 => direct!(self, |a, b| a & b),
            M::OrI32 => direct!(self, |a, b| a | b),
            M::XorI32 => direct!(self, |a, b| a ^ b),
            M::MkvecV2i16 => self.mkvec_halves(),
            M::MkvecV4i8 => self.mkvec_bytes(),
            M::SwzV2i16 | M::SwzV4i8 => self.extended(false),

            // Shifts, and what is done to their results.
            M::LshiftAndI32 => self.shift_and(Left, AND, Word),
            M::LshiftAndV2i16 => self.shift_and(Left, AND, Half),
            M::LshiftAndV4i8 => self.shift_and(Left, AND, Byte),
            M::LshiftOrI32 => self.shift_and(Left, OR, Word),
            M::LshiftOrV2i16 => self.shift_and(Left, OR, Half),
            M::LshiftOrV4i8 => self.shift_and(Left, OR, Byte),
            M::LshiftXorI32 => self.shift_and(Left, XOR, Word),
            M::LshiftXorV2i16 => self.shift_and(Left, XOR, Half),
            M::LshiftXorV4i8 => self.shift_and(Left, XOR, Byte),
            M::RshiftAndI32 => self.shift_and(Right, AND, Word),
            M::RshiftAndV2i16 => self.shift_and(Right, AND, Half),
            M::RshiftAndV4i8 => self.shift_and(Right, AND, Byte),
            M::RshiftOrI32 => self.shift_and(Right, OR, Word),
            M::RshiftOrV2i16 => self.shift_and(Right, OR, Half),
            M::RshiftOrV4i8 => self.shift_and(Right, OR, Byte),
            M::RshiftXorI32 => self.shift_and(Right, XOR, Word),
            M::RshiftXorV2i16 => self.shift_and(Right, XOR, Half),
            M::RshiftXorV4i8 => self.shift_and(Right, XOR, Byte),
            M::LshiftAddI32 => self.shift_and(Left, ADD, Word),
            M::LshiftAddV2i16 => self.shift_and(Left, ADD, Half),
            M::LshiftAddV4i8 => self.shift_and(Left, ADD, Byte),
            M::LshiftSubI32 => self.shift_and(Left, SUB, Word),
            M::LshiftSubV2i16 => self.shift_and(Left, SUB, Half),
            M::LshiftSubV4i8 => self.shift_and(Left, SUB, Byte),
            M::LshiftRsubI32 => self.shift_and(Left, RSUB, Word),
            M::LshiftRsubV2i16 => self.shift_and(Left, RSUB, Half),
            M::LshiftRsubV4i8 => self.shift_and(Left, RSUB, Byte),
            M::RshiftAddI32 => self.shift_and(Right, ADD, Word),
            M::RshiftAddV2i16 => self.shift_and(Right, ADD, Half),
            M::RshiftAddV4i8 => self.shift_and(Right, ADD, Byte),
            M::RshiftSubI32 => self.shift_and(Right, SUB, Word),
            M::RshiftSubV2i16 => self.shift_and(Right, SUB, Half),
            M::RshiftSubV4i8 => self.shift_and(Right, SUB, Byte),
            M::RshiftRsubI32 => self.shift_and(Right, RSUB, Word),
            M::RshiftRsubV2i16 => self.shift_and(Right, RSUB, Half),
            M::RshiftRsubV4i8 => self.shift_and(Right, RSUB, Byte),
            M::ArshiftAddI32 => self.shift_and(Arithmetic, ADD, Word),
            M::ArshiftAddV2i16 => self.shift_and(Arithmetic, ADD, Half),
            M::ArshiftAddV4i8 => self.shift_and(Arithmetic, ADD, Byte),
            M::ArshiftSubI32 => self.shift_and(Arithmetic, SUB, Word),
            M::ArshiftSubV2i16 => self.shift_and(Arithmetic, SUB, Half),
            M::ArshiftSubV4i8 => self.shift_and(Arithmetic, SUB, Byte),
            M::ArshiftRsubI32 => self.shift_and(Arithmetic, RSUB, Word),
            M::ArshiftRsubV2i16 => self.shift_and(Arithmetic, RSUB, Half),
            M::ArshiftRsubV4i8 => self.shift_and(Arithmetic, RSUB, Byte),
            M::ArshiftV2i16 => self.shift_and(Arithmetic, After::Nothing, Half),
            M::ArshiftV4i8 => self.shift_and(Arithmetic, After::Nothing, Byte),
            // On the FMA unit the shift comes third, on the ADD unit second.
            M::ArshiftI32 if self.ins.sources().len() == 3 => {
                self.shift_and(Arithmetic, After::Nothing, Word)
            }
            M::ArshiftI32 => direct!(self, |a, n| ((a as i32) >> (n & 31)) as u32),
            M::LshiftI32 => direct!(self, |a, n| a << (n & 31)),
            M::RshiftI32 => direct!(self, |a, n| a >> (n & 31)),
            M::LshiftDoubleI32 => self.double(Double::Left),
            M::RshiftDoubleI32 => self.double(Double::Right),
            M::ArshiftDoubleI32 => self.double(Double::Arithmetic),
            M::LrotDoubleI32 => self.double(Double::RotateLeft),
            M::RrotDoubleI32 => self.double(Double::RotateRight),
            M::ShiftDoubleI32 => self.double_upper(),
            M::FlshiftDoubleI32 => self.funnel(Left),
            M::FrshiftDoubleI32 => self.funnel(Right),
            M::ShaddxlI64 => self.add_low(Extend::I64),
            M::ShaddxlS32 => self.add_low(Extend::S32),
            M::ShaddxlU32 => self.add_low(Extend::U32),
            M::ShaddxhI32 => self.add_high_words(),

            // Conversions.
            M::F32ToS32 => self.single_to_integer(true),
            M::F32ToU32 => self.single_to_integer(false),
            M::S32ToF32 => self.integer_to_single(true),
            M::U32ToF32 => self.integer_to_single(false),
            M::F16ToF32 => self.half_to_single(),
            M::F16ToS32 => self.half_to_integer(true),
            M::F16ToU32 => self.half_to_integer(false),
            M::V2f16ToV2s16 => self.halves_to_integers(true),
            M::V2f16ToV2u16 => self.halves_to_integers(false),
            M::V2s16ToV2f16 => self.integers_to_halves(true),
            M::V2u16ToV2f16 => self.integers_to_halves(false),
            M::V2s8ToV2f16 => self.bytes_to_halves(true),
            M::V2u8ToV2f16 => self.bytes_to_halves(false),
            M::V2f32ToV2f16 => self.singles_to_halves(),
            M::S8ToF32 | M::S16ToF32 => self.part_to_single(true),
            M::U8ToF32 | M::U16ToF32 => self.part_to_single(false),
            M::S8ToS32 | M::S16ToS32 | M::V2s8ToV2s16 => self.extended(true),
            M::U8ToU32 | M::U16ToU32 | M::V2u8ToV2u16 => self.extended(false),

            // Mantissas, exponents, and what hardware computes from tables.
            M::FrexpmF32 => self.frexpm(),
            M::FrexpmV2f16 => self.frexpm_halves(),
            M::FrexpeF32 => self.frexpe(),
            M::FrexpeV2f16 => self.frexpe_halves(),
            M::LogbF32 => self.logb(false),
            M::IlogbF32 => self.logb(true),
            M::LogbV2f16 => self.logb_halves(false),
            M::IlogbV2f16 => self.logb_halves(true),
            M::FrcpF32 => self.frcp(),
            M::FrsqF32 => self.frsq(),
            M::FrcpF16 => self.frcp_half(),
            M::FrsqF16 => self.frsq_half(),
            M::FrcpApproxF32 => self.frcp_approx(),
            M::FrsqApproxF32 => self.frsq_approx(),
            M::FexpF32 => direct!(self, |a, b| special::fexp(a, b)),
            M::FlogdF32 => self.flogd(),
            M::FlogTableF32 => self.flog_table(),
            M::FexpTableU4 => self.fexp_table(),
            M::FsinTableU6 => self.sine_table(true),
            M::FcosTableU6 => self.sine_table(false),
            M::FpowScDetF32 => self.power_special(false),
            M::FpowScDetF16 => self.power_special(true),
            M::FpowScApply => direct!(self, |a, b| power::apply(a, b)),
            M::Cubeface1 => self.cube_largest(),
            M::Cubeface2 => self.cube_face(),
            M::CubeSsel => self.cube_select(true),
            M::CubeTsel => self.cube_select(false),

            // Control.
            M::BranchF32 => self.branch(Operands::FLOAT),
            M::BranchF16 => self.branch(Operands::HALF),
            M::BranchI32 | M::BranchU32 => self.branch(Operands::UNSIGNED),
            M::BranchS32 => self.branch(Operands::SIGNED),
            M::BranchI16 | M::BranchU16 => self.branch(Operands::UNSIGNED.narrow()),
            M::BranchS16 => self.branch(Operands::SIGNED.narrow()),
            M::BranchzF32 => self.branch(Operands::FLOAT.with_zero()),
            M::BranchzF16 => self.branch(Operands::HALF.with_zero()),
            M::BranchzI32 | M::BranchzU32 => self.branch(Operands::UNSIGNED.with_zero()),
            M::BranchzS32 => self.branch(Operands::SIGNED.with_zero()),
            M::BranchzI16 | M::BranchzU16 => self.branch(Operands::UNSIGNED.narrow().with_zero()),
            M::BranchzS16 => self.branch(Operands::SIGNED.narrow().with_zero()),
            M::BranchcI32 => self.branch_combined(Operands::UNSIGNED),
            M::BranchcI16 => self.branch_combined(Operands::UNSIGNED.narrow()),
            M::BranchDiverg => self.branch_diverged(true),
            M::BranchNoDiverg => self.branch_diverged(false),
            M::Jump => self.jump(),
            M::Barrier => self.wait(),
            M::ClperI32 => self.lane_permute(),
            M::ClperOldI32 => self.lane_permute_old(),
            M::Wmask => self.ballot(),

            // Memory.
            M::LoadI8 => self.load(1),
            M::LoadI16 => self.load(2),
            M::LoadI24 => self.load(3),
            M::LoadI32 => self.load(4),
            M::LoadI48 => self.load(6),
            M::LoadI64 => self.load(8),
            M::LoadI96 => self.load(12),
            M::LoadI128 => self.load(16),
            M::StoreI8 => self.store(1),
            M::StoreI16 => self.store(2),
            M::StoreI24 => self.store(3),
            M::StoreI32 => self.store(4),
            M::StoreI48 => self.store(6),
            M::StoreI64 => self.store(8),
            M::StoreI96 => self.store(12),
            M::StoreI128 => self.store(16),
            M::SegAdd => self.segment(false),
            M::SegSub => self.segment(true),

            // Atomics.
            M::AtomCI32 => self.atomic(false, false),
            M::AtomCReturnI32 => self.atomic(false, true),
            M::AtomCI64 => self.atomic(true, false),
            M::AtomCReturnI64 => self.atomic(true, true),
            M::AtomC1I32 => self.atomic_of_one(false, false),
            M::AtomC1ReturnI32 => self.atomic_of_one(false, true),
            M::AtomC1I64 => self.atomic_of_one(true, false),
            M::AtomC1ReturnI64 => self.atomic_of_one(true, true),
            M::AtomCx => self.atomic_access(),
            M::AtomPostI32 | M::AtomPostI64 | M::AtomPreI64 => self.same(),
            M::AxchgI32 => self.exchange(false),
            M::AxchgI64 => self.exchange(true),
            M::AcmpxchgI32 => self.compare_exchange(false, true),
            M::AcmpstoreI32 => self.compare_exchange(false, false),
            M::AcmpxchgI64 => self.compare_exchange(true, true),
            M::AcmpstoreI64 => self.compare_exchange(true, false),

            // Images, textures, clocks.
            // Says which of the attribute tables the ADD instruction means; compute shaders have one.
            M::DtselImm => self.same(),
            M::LeaAttrTex => self.texel_address(),
            M::LeaTex | M::LeaTexImm => self.texture_address(),
            M::LdAttrTex => self.load_texel(),
            M::LdCvt => self.load_conversion(),
            M::StCvt => self.store_conversion(),
            M::Texc => self.texture_operation(),
            M::Texs2dF32 => self.sample_simple(false, false),
            M::Texs2dF16 => self.sample_simple(true, false),
            M::TexsCubeF32 => self.sample_simple(false, true),
            M::TexsCubeF16 => self.sample_simple(true, true),
            M::LdGclkU64 => self.clock(),

            // Vertices and fragments. In a compute shader these raise a fault when they are executed.
            M::LdAttr | M::LdAttrImm => self.load_attribute(),
            M::LeaAttr | M::LeaAttrImm => self.varying_address(),
            M::LdVarFlat | M::LdVarFlatImm => self.flat_varying(),
            M::LdVar | M::LdVarImm => self.varying(),
            M::VarTexF32 => self.varying_texture(false),
            M::VarTexF16 => self.varying_texture(true),
            M::Atest => self.alpha_test(),
            M::Blend => self.blend(),

            absent_mnemonics!() => Err(self.absent()),
        }
    }

    /// Copies the first source.
    fn same(&mut self) -> Result<(), Trap> {
        let (a, d) = (self.source(0)?, self.dest);
        self.copy(a, d);
        Ok(())
    }
}
