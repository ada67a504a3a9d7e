// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only encodings of Valhall instructions.

use crate::valhall::field::*;
use crate::valhall::row::{Registers, Row, Secondary, Unit};
use crate::valhall::source::Kind;

macro_rules! table {
    ($($op:ident = $name:literal, $opcode:literal, $secondary:expr, $unit:ident, $registers:ident,
       [$($source:ident),*], [$($immediate:ident),*], [$($modifier:ident),*];)*) => {
        /// Instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = concat!("`", $name, "`")] $op,)*
        }

        impl Op {
            /// By opcode.
            pub const ALL: &'static [Op] = &[$(Op::$op),*];
        }

        static ROWS: [Row; Op::ALL.len()] = [$(Row {
            name: $name,
            opcode: $opcode,
            secondary: $secondary,
            unit: Unit::$unit,
            registers: Registers::$registers,
            sources: &[$(Kind::$source),*],
            immediates: &[$(&$immediate),*],
            modifiers: &[$(&$modifier),*],
        }),*];
    };
}

impl Op {
    /// Table row.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    pub(crate) fn of(word: u64) -> Option<Op> {
        let opcode = usize::from(Row::opcode_of(word));
        let places = FIRST[opcode]..FIRST[opcode + 1];
        let mut same = Op::ALL[usize::from(places.start)..usize::from(places.end)].iter();
        let found = same.find(|op| op.row().secondary.is_in(word))?;
        (word >> 63 == 0).then_some(*found)
    }
}

/// Rows are sorted by opcode: its first place for each.
static FIRST: [u8; 513] = {
    let (mut first, mut opcode, mut place) = ([0; 513], 0, 0);
    while opcode < first.len() {
        while place < ROWS.len() && (ROWS[place].opcode as usize) < opcode {
            place += 1;
        }
        first[opcode] = place as u8;
        opcode += 1;
    }
    first
};

use Secondary::*;

// Name, opcode, secondary, unit, registers, sources by byte, immediates, modifiers in the text's order.
table! {
    Nop = "NOP", 0x000, Alone, Convert, None, [], [], [];
    Branchz = "BRANCHZ", 0x01f, Alone, Convert, None, [TRUTH], [BRANCH_OFFSET], [CONSERVATIVE, EQ];
    DiscardF32 = "DISCARD.f32", 0x020, Alone, Convert, None, [F32S, F32S], [], [CONDITION];
    Branchzi = "BRANCHZI", 0x02f, Alone, Convert, None, [TRUTH, R32], [], [CONSERVATIVE, EQ, ABSOLUTE];
    LdVarFlatImm = "LD_VAR_FLAT_IMM", 0x041, Alone, Varying, Loads, [], [TABLE, INDEX], [SLOT, VECTOR_SIZE, REGISTER_FORMAT];
    Barrier = "BARRIER", 0x045, Alone, Other, None, [], [], [SLOT];
    LdVarImm = "LD_VAR_IMM", 0x054, Alone, Varying, Loads, [R32], [TABLE, INDEX],
        [SLOT, VECTOR_SIZE, REGISTER_FORMAT, SAMPLE_MODE, UPDATE_MODE];
    LdVarFlat = "LD_VAR_FLAT", 0x055, Alone, Varying, Loads, [R32], [], [SLOT, VECTOR_SIZE, REGISTER_FORMAT];
    LdVarSpecial = "LD_VAR_SPECIAL", 0x056, Alone, Varying, Loads, [R32], [SPECIAL_INDEX],
        [VECTOR_SIZE, REGISTER_FORMAT, SAMPLE_MODE, UPDATE_MODE, SLOT];
    LdVarBufImmF32 = "LD_VAR_BUF_IMM.f32", 0x05c, Alone, Varying, Loads, [R32], [BUFFER_INDEX],
        [SLOT, VECTOR_SIZE, SOURCE_FORMAT, SAMPLE_MODE, UPDATE_MODE];
    LdVarBufImmF16 = "LD_VAR_BUF_IMM.f16", 0x05d, Alone, Varying, Loads, [R16], [BUFFER_INDEX],
        [SLOT, VECTOR_SIZE, SOURCE_FORMAT, SAMPLE_MODE, UPDATE_MODE];
    LeaBufImm = "LEA_BUF_IMM", 0x05e, Alone, Memory, Loads, [R32], [TABLE, INDEX], [SLOT];
    LoadI8 = "LOAD.i8", 0x060, Width(0), Memory, Loads, [R64], [OFFSET], [MEMORY_ACCESS, LOAD_LANE_8_BIT, UNSIGNED, SLOT];
    LoadI16 = "LOAD.i16", 0x060, Width(1), Memory, Loads, [R64], [OFFSET], [MEMORY_ACCESS, LOAD_LANE_16_BIT, UNSIGNED, SLOT];
    LoadI24 = "LOAD.i24", 0x060, Width(2), Memory, Loads, [R64], [OFFSET], [MEMORY_ACCESS, LOAD_LANE_24_BIT, UNSIGNED, SLOT];
    LoadI32 = "LOAD.i32", 0x060, Width(3), Memory, Loads, [R64], [OFFSET], [MEMORY_ACCESS, LOAD_LANE_32_BIT, UNSIGNED, SLOT];
    LoadI48 = "LOAD.i48", 0x060, Width(4), Memory, Loads, [R64], [OFFSET], [MEMORY_ACCESS, LOAD_LANE_48_BIT, UNSIGNED, SLOT];
    LoadI64 = "LOAD.i64", 0x060, Width(5), Memory, Loads, [R64], [OFFSET], [MEMORY_ACCESS, LOAD_LANE_64_BIT, UNSIGNED, SLOT];
    LoadI96 = "LOAD.i96", 0x060, Width(6), Memory, Loads, [R64], [OFFSET], [MEMORY_ACCESS, LOAD_LANE_96_BIT, UNSIGNED, SLOT];
    LoadI128 = "LOAD.i128", 0x060, Width(7), Memory, Loads, [R64], [OFFSET], [MEMORY_ACCESS, LOAD_LANE_128_BIT, UNSIGNED, SLOT];
    StoreI8 = "STORE.i8", 0x061, Width(0), Memory, Stores, [R64], [OFFSET], [MEMORY_ACCESS, SLOT];
    StoreI16 = "STORE.i16", 0x061, Width(1), Memory, Stores, [R64], [OFFSET], [MEMORY_ACCESS, SLOT];
    StoreI24 = "STORE.i24", 0x061, Width(2), Memory, Stores, [R64], [OFFSET], [MEMORY_ACCESS, SLOT];
    StoreI32 = "STORE.i32", 0x061, Width(3), Memory, Stores, [R64], [OFFSET], [MEMORY_ACCESS, SLOT];
    StoreI48 = "STORE.i48", 0x061, Width(4), Memory, Stores, [R64], [OFFSET], [MEMORY_ACCESS, SLOT];
    StoreI64 = "STORE.i64", 0x061, Width(5), Memory, Stores, [R64], [OFFSET], [MEMORY_ACCESS, SLOT];
    StoreI96 = "STORE.i96", 0x061, Width(6), Memory, Stores, [R64], [OFFSET], [MEMORY_ACCESS, SLOT];
    StoreI128 = "STORE.i128", 0x061, Width(7), Memory, Stores, [R64], [OFFSET], [MEMORY_ACCESS, SLOT];
    LdVar = "LD_VAR", 0x064, Alone, Varying, Loads, [R32, R32], [], [SLOT, VECTOR_SIZE, REGISTER_FORMAT, SAMPLE_MODE, UPDATE_MODE];
    LdAttrImm = "LD_ATTR_IMM", 0x066, Kind(0), Memory, Loads, [R32, R32], [RESOURCE_INDEX, RESOURCE_TABLE], [VECTOR_SIZE, REGISTER_FORMAT, SLOT];
    LdTexImm = "LD_TEX_IMM", 0x066, Kind(1), Memory, Loads, [R32, R32], [RESOURCE_INDEX, RESOURCE_TABLE], [VECTOR_SIZE, REGISTER_FORMAT, SLOT];
    LeaAttrImm = "LEA_ATTR_IMM", 0x067, Kind(0), Memory, Loads, [R32, R32], [RESOURCE_TABLE, RESOURCE_INDEX], [SLOT];
    LeaTexImm = "LEA_TEX_IMM", 0x067, Kind(1), Memory, Loads, [R32, R32], [RESOURCE_TABLE, RESOURCE_INDEX], [SLOT];
    AtomI32 = "ATOM.i32", 0x068, Width(3), Memory, Stores, [R64], [SHORT_OFFSET], [SLOT, ATOMIC_OPERATION];
    AtomI64 = "ATOM.i64", 0x068, Width(5), Memory, Stores, [R64], [SHORT_OFFSET], [SLOT, ATOMIC_OPERATION];
    Atom1ReturnI32 = "ATOM1_RETURN.i32", 0x069, Width(3), Memory, Loads, [R64], [SHORT_OFFSET], [SLOT, ATOMIC_1];
    Atom1ReturnI64 = "ATOM1_RETURN.i64", 0x069, Width(5), Memory, Loads, [R64], [SHORT_OFFSET], [SLOT, ATOMIC_1];
    LdBufferI8 = "LD_BUFFER.i8", 0x06a, Width(0), Memory, Loads, [R32, R32], [], [LOAD_LANE_8_BIT, UNSIGNED, SLOT];
    LdBufferI16 = "LD_BUFFER.i16", 0x06a, Width(1), Memory, Loads, [R32, R32], [], [LOAD_LANE_16_BIT, UNSIGNED, SLOT];
    LdBufferI24 = "LD_BUFFER.i24", 0x06a, Width(2), Memory, Loads, [R32, R32], [], [LOAD_LANE_24_BIT, UNSIGNED, SLOT];
    LdBufferI32 = "LD_BUFFER.i32", 0x06a, Width(3), Memory, Loads, [R32, R32], [], [LOAD_LANE_32_BIT, UNSIGNED, SLOT];
    LdBufferI48 = "LD_BUFFER.i48", 0x06a, Width(4), Memory, Loads, [R32, R32], [], [LOAD_LANE_48_BIT, UNSIGNED, SLOT];
    LdBufferI64 = "LD_BUFFER.i64", 0x06a, Width(5), Memory, Loads, [R32, R32], [], [LOAD_LANE_64_BIT, UNSIGNED, SLOT];
    LdBufferI96 = "LD_BUFFER.i96", 0x06a, Width(6), Memory, Loads, [R32, R32], [], [LOAD_LANE_96_BIT, UNSIGNED, SLOT];
    LdBufferI128 = "LD_BUFFER.i128", 0x06a, Width(7), Memory, Loads, [R32, R32], [], [LOAD_LANE_128_BIT, UNSIGNED, SLOT];
    LeaBuffer = "LEA_BUFFER", 0x06b, Alone, Memory, Loads, [R32, R32], [], [SLOT];
    LdVarBufF32 = "LD_VAR_BUF.f32", 0x06c, Alone, Varying, Loads, [R32, R32], [], [SLOT, VECTOR_SIZE, SOURCE_FORMAT, SAMPLE_MODE, UPDATE_MODE];
    LdVarBufF16 = "LD_VAR_BUF.f16", 0x06d, Alone, Varying, Loads, [R16, R16], [], [SLOT, VECTOR_SIZE, SOURCE_FORMAT, SAMPLE_MODE, UPDATE_MODE];
    StCvt = "ST_CVT", 0x071, Alone, Memory, Stores, [R64, GAP, R32], [SHORT_OFFSET], [SLOT, CONVERT_ACCESS, VECTOR_SIZE, REGISTER_FORMAT];
    LdAttr = "LD_ATTR", 0x076, Kind(0), Memory, Loads, [R32, R32, R32], [], [VECTOR_SIZE, REGISTER_FORMAT, SLOT];
    LdTex = "LD_TEX", 0x076, Kind(1), Memory, Loads, [R32, R32, R32], [], [VECTOR_SIZE, REGISTER_FORMAT, SLOT];
    LeaAttr = "LEA_ATTR", 0x077, Kind(0), Memory, Loads, [R32, R32, R32], [], [VECTOR_SIZE, SLOT];
    LeaTex = "LEA_TEX", 0x077, Kind(1), Memory, Loads, [R16, R32, R32], [], [VECTOR_SIZE, SLOT];
    LdTile = "LD_TILE", 0x078, Alone, Other, Loads, [R32, R32, R32], [], [VECTOR_SIZE, REGISTER_FORMAT, SLOT];
    StTile = "ST_TILE", 0x079, Alone, Other, Stores, [R32, R32, R32], [], [VECTOR_SIZE, REGISTER_FORMAT, SLOT];
    Atest = "ATEST", 0x07d, Alone, Other, Loads, [R32, I32S, R32], [], [];
    ZsEmit = "ZS_EMIT", 0x07e, Alone, Other, Loads, [R32, R32, R32], [], [Z, STENCIL, SLOT];
    Blend = "BLEND", 0x07f, Alone, Other, Stores, [R64, GAP, R32], [TARGET], [SLOT, VECTOR_SIZE, REGISTER_FORMAT];
    S8ToS32 = "S8_TO_S32", 0x090, Five(0), Convert, Dest, [BYTE], [], [];
    S8ToF32 = "S8_TO_F32", 0x090, Five(1), Convert, Dest, [BYTE], [], [];
    V2s8ToV2s16 = "V2S8_TO_V2S16", 0x090, Five(2), Convert, Dest, [HALVES], [], [];
    V2s8ToV2f16 = "V2S8_TO_V2F16", 0x090, Five(3), Convert, Dest, [HALVES], [], [];
    S16ToS32 = "S16_TO_S32", 0x090, Five(4), Convert, Dest, [I16S], [], [];
    S16ToF32 = "S16_TO_F32", 0x090, Five(5), Convert, Dest, [I16S], [], [];
    V2s16ToV2f16 = "V2S16_TO_V2F16", 0x090, Five(7), Convert, Dest, [I16W], [], [ROUND_MODE];
    S32ToF32 = "S32_TO_F32", 0x090, Five(9), Convert, Dest, [I32W], [], [ROUND_MODE];
    F16ToS32 = "F16_TO_S32", 0x090, Five(10), Convert, Dest, [F16S], [], [ROUND_MODE];
    F16ToF32 = "F16_TO_F32", 0x090, Five(11), Convert, Dest, [F16L], [], [ROUND_MODE];
    F32ToS32 = "F32_TO_S32", 0x090, Five(12), Convert, Dest, [F32], [], [ROUND_MODE];
    FroundF32 = "FROUND.f32", 0x090, Five(13), Convert, Dest, [F32S], [], [ROUND_MODE];
    V2f16ToV2s16 = "V2F16_TO_V2S16", 0x090, Five(14), Convert, Dest, [F16S], [], [ROUND_MODE];
    FroundV2f16 = "FROUND.v2f16", 0x090, Five(15), Convert, Dest, [F16S], [], [ROUND_MODE];
    U8ToU32 = "U8_TO_U32", 0x090, Five(16), Convert, Dest, [BYTE], [], [];
    U8ToF32 = "U8_TO_F32", 0x090, Five(17), Convert, Dest, [BYTE], [], [];
    V2u8ToV2u16 = "V2U8_TO_V2U16", 0x090, Five(18), Convert, Dest, [HALVES], [], [];
    V2u8ToV2f16 = "V2U8_TO_V2F16", 0x090, Five(19), Convert, Dest, [HALVES], [], [];
    U16ToU32 = "U16_TO_U32", 0x090, Five(20), Convert, Dest, [I16S], [], [];
    U16ToF32 = "U16_TO_F32", 0x090, Five(21), Convert, Dest, [I16S], [], [];
    V2u16ToV2f16 = "V2U16_TO_V2F16", 0x090, Five(23), Convert, Dest, [I16W], [], [ROUND_MODE];
    U32ToF32 = "U32_TO_F32", 0x090, Five(25), Convert, Dest, [I32W], [], [ROUND_MODE];
    F16ToU32 = "F16_TO_U32", 0x090, Five(26), Convert, Dest, [F16S], [], [ROUND_MODE];
    F32ToU32 = "F32_TO_U32", 0x090, Five(28), Convert, Dest, [F32], [], [ROUND_MODE];
    V2f16ToV2u16 = "V2F16_TO_V2U16", 0x090, Five(30), Convert, Dest, [F16S], [], [ROUND_MODE];
    MovI32 = "MOV.i32", 0x091, Four(0), Convert, Dest, [R32], [], [];
    ClzU32 = "CLZ.u32", 0x091, Four(4), Convert, Dest, [R32], [], [];
    ClzV2u16 = "CLZ.v2u16", 0x091, Four(5), Convert, Dest, [I16S], [], [];
    ClzV4u8 = "CLZ.v4u8", 0x091, Four(6), Convert, Dest, [R8], [], [];
    IabsS32 = "IABS.s32", 0x091, Four(8), Convert, Dest, [I32W], [], [];
    IabsV2s16 = "IABS.v2s16", 0x091, Four(9), Convert, Dest, [I16W], [], [];
    IabsV4s8 = "IABS.v4s8", 0x091, Four(10), Convert, Dest, [R8], [], [];
    PopcountI32 = "POPCOUNT.i32", 0x091, Four(12), Special, Dest, [R32], [], [];
    BitrevI32 = "BITREV.i32", 0x091, Four(13), Special, Dest, [R32], [], [];
    NotOldI32 = "NOT_OLD.i32", 0x091, Four(14), Special, Dest, [R32], [], [];
    Wmask = "WMASK", 0x095, Alone, Convert, Dest, [R32], [], [SUBGROUP_SIZE];
    FlushF32 = "FLUSH.f32", 0x098, Four(0), Convert, Dest, [F32S], [], [NAN_MODE, FTZ, FLUSH_INF];
    FlushV2f16 = "FLUSH.v2f16", 0x098, Four(1), Convert, Dest, [F16S], [], [NAN_MODE, FTZ, FLUSH_INF];
    FrexpmF32 = "FREXPM.f32", 0x099, Four(0), Convert, Dest, [I32S], [], [SQRT, LOG];
    FrexpmV2f16 = "FREXPM.v2f16", 0x099, Four(1), Convert, Dest, [I16S], [], [SQRT, LOG];
    FrexpeF32 = "FREXPE.f32", 0x099, Four(2), Convert, Dest, [I32S], [], [SQRT, LOG];
    FrexpeV2f16 = "FREXPE.v2f16", 0x099, Four(3), Convert, Dest, [I16S], [], [SQRT, LOG];
    FrcpF32 = "FRCP.f32", 0x09c, Four(0), Special, Dest, [F32S], [], [];
    FrcpF16 = "FRCP.f16", 0x09c, Four(1), Special, Dest, [F16S], [], [];
    FrsqF32 = "FRSQ.f32", 0x09c, Four(2), Special, Dest, [F32S], [], [];
    FrsqF16 = "FRSQ.f16", 0x09c, Four(3), Special, Dest, [F16S], [], [];
    FsinTableU6 = "FSIN_TABLE.u6", 0x09c, Four(4), Special, Dest, [R32], [], [];
    FcosTableU6 = "FCOS_TABLE.u6", 0x09c, Four(5), Special, Dest, [R32], [], [];
    FsincosOffsetU6 = "FSINCOS_OFFSET.u6", 0x09c, Four(6), Special, Dest, [R32], [], [];
    FlogdF32 = "FLOGD.f32", 0x09c, Four(8), Special, Dest, [F32S], [], [];
    FpclassF32 = "FPCLASS.f32", 0x09c, Four(10), Special, Dest, [F32S], [], [];
    FpclassF16 = "FPCLASS.f16", 0x09c, Four(11), Special, Dest, [F16S], [], [];
    FlogTableF32 = "FLOG_TABLE.f32", 0x09c, Four(12), Special, Dest, [F32S], [], [];
    FexpTableU4 = "FEXP_TABLE.u4", 0x09c, Four(13), Special, Dest, [R32], [], [];
    FrcpApproxF32 = "FRCP_APPROX.f32", 0x09c, Four(14), Special, Dest, [F32S], [], [];
    FrsqApproxF32 = "FRSQ_APPROX.f32", 0x09c, Four(15), Special, Dest, [F32S], [], [];
    IaddU32 = "IADD.u32", 0x0a0, Four(0), Convert, Dest, [I32W, I32W], [], [SATURATE];
    IsubU32 = "ISUB.u32", 0x0a0, Four(1), Convert, Dest, [I32W, I32W], [], [SATURATE];
    ImulI32 = "IMUL.i32", 0x0a0, Four(10), Special, Dest, [I32W, I32W], [], [SATURATE];
    HaddU32 = "HADD.u32", 0x0a0, Four(11), Convert, Dest, [I32W, I32W], [], [RHADD];
    ClperI32 = "CLPER.i32", 0x0a0, Four(15), Special, Dest, [R32, LANES], [], [SUBGROUP_SIZE, LANE_OPERATION, INACTIVE_RESULT];
    IaddV2u16 = "IADD.v2u16", 0x0a1, Four(0), Convert, Dest, [I16W, I16W], [], [SATURATE];
    IsubV2u16 = "ISUB.v2u16", 0x0a1, Four(1), Convert, Dest, [I16W, I16W], [], [SATURATE];
    MkvecV2i16 = "MKVEC.v2i16", 0x0a1, Four(5), Convert, Dest, [I16S, I16S], [], [];
    ImulV2i16 = "IMUL.v2i16", 0x0a1, Four(10), Special, Dest, [I16W, I16W], [], [SATURATE];
    HaddV2u16 = "HADD.v2u16", 0x0a1, Four(11), Convert, Dest, [I16W, I16W], [], [RHADD];
    ClperV2u16 = "CLPER.v2u16", 0x0a1, Four(15), Special, Dest, [R16, LANES], [], [SUBGROUP_SIZE, LANE_OPERATION, INACTIVE_RESULT];
    IaddV4u8 = "IADD.v4u8", 0x0a2, Four(0), Convert, Dest, [I8W, I8W], [], [SATURATE];
    IsubV4u8 = "ISUB.v4u8", 0x0a2, Four(1), Convert, Dest, [I8W, I8W], [], [SATURATE];
    ImulV4i8 = "IMUL.v4i8", 0x0a2, Four(10), Special, Dest, [I8W, I8W], [], [SATURATE];
    HaddV4u8 = "HADD.v4u8", 0x0a2, Four(11), Convert, Dest, [I8W, I8W], [], [RHADD];
    ClperV4u8 = "CLPER.v4u8", 0x0a2, Four(15), Special, Dest, [R8, LANES], [], [SUBGROUP_SIZE, LANE_OPERATION, INACTIVE_RESULT];
    FaddF32 = "FADD.f32", 0x0a4, Four(0), Fma, Dest, [F32S, F32S], [], [CLAMP];
    FminF32 = "FMIN.f32", 0x0a4, Four(2), Convert, Dest, [F32S, F32S], [], [CLAMP];
    FmaxF32 = "FMAX.f32", 0x0a4, Four(3), Convert, Dest, [F32S, F32S], [], [CLAMP];
    LdexpF32 = "LDEXP.f32", 0x0a4, Four(6), Fma, Dest, [F32, R32], [], [ROUND_MODE];
    FexpF32 = "FEXP.f32", 0x0a4, Four(8), Special, Dest, [R32, F32], [], [CLAMP];
    FaddLscaleF32 = "FADD_LSCALE.f32", 0x0a4, Four(9), Fma, Dest, [F32, F32], [], [CLAMP];
    FatanAssistF32 = "FATAN_ASSIST.f32", 0x0a4, Four(14), Special, Dest, [R32, R32], [], [SECOND];
    FaddV2f16 = "FADD.v2f16", 0x0a5, Four(0), Fma, Dest, [F16S, F16S], [], [CLAMP];
    FminV2f16 = "FMIN.v2f16", 0x0a5, Four(2), Convert, Dest, [F16S, F16S], [], [CLAMP];
    FmaxV2f16 = "FMAX.v2f16", 0x0a5, Four(3), Convert, Dest, [F16S, F16S], [], [CLAMP];
    V2f32ToV2f16 = "V2F32_TO_V2F16", 0x0a5, Four(4), Convert, Dest, [F16, F16], [], [CLAMP, ROUND_MODE];
    LdexpV2f16 = "LDEXP.v2f16", 0x0a5, Four(6), Fma, Dest, [F16, R16], [], [ROUND_MODE];
    IaddS32 = "IADD.s32", 0x0a8, Four(0), Convert, Dest, [I32W, I32W], [], [SATURATE];
    IsubS32 = "ISUB.s32", 0x0a8, Four(1), Convert, Dest, [I32W, I32W], [], [SATURATE];
    ImulS32 = "IMUL.s32", 0x0a8, Four(10), Special, Dest, [I32W, I32W], [], [SATURATE];
    HaddS32 = "HADD.s32", 0x0a8, Four(11), Convert, Dest, [I32W, I32W], [], [RHADD];
    ClperS32 = "CLPER.s32", 0x0a8, Four(15), Special, Dest, [R32, LANES], [], [SUBGROUP_SIZE, LANE_OPERATION, INACTIVE_RESULT];
    IaddV2s16 = "IADD.v2s16", 0x0a9, Four(0), Convert, Dest, [I16W, I16W], [], [SATURATE];
    IsubV2s16 = "ISUB.v2s16", 0x0a9, Four(1), Convert, Dest, [I16W, I16W], [], [SATURATE];
    ImulV2s16 = "IMUL.v2s16", 0x0a9, Four(10), Special, Dest, [I16W, I16W], [], [SATURATE];
    HaddV2s16 = "HADD.v2s16", 0x0a9, Four(11), Convert, Dest, [I16W, I16W], [], [RHADD];
    ClperV2s16 = "CLPER.v2s16", 0x0a9, Four(15), Special, Dest, [R16, LANES], [], [SUBGROUP_SIZE, LANE_OPERATION, INACTIVE_RESULT];
    IaddV4s8 = "IADD.v4s8", 0x0aa, Four(0), Convert, Dest, [I8W, I8W], [], [SATURATE];
    IsubV4s8 = "ISUB.v4s8", 0x0aa, Four(1), Convert, Dest, [I8W, I8W], [], [SATURATE];
    ImulV4s8 = "IMUL.v4s8", 0x0aa, Four(10), Special, Dest, [I8W, I8W], [], [SATURATE];
    HaddV4s8 = "HADD.v4s8", 0x0aa, Four(11), Convert, Dest, [I8W, I8W], [], [RHADD];
    ClperV4s8 = "CLPER.v4s8", 0x0aa, Four(15), Special, Dest, [R8, LANES], [], [SUBGROUP_SIZE, LANE_OPERATION, INACTIVE_RESULT];
    FmaF32 = "FMA.f32", 0x0b2, Alone, Fma, Dest, [F32S, F32S, F32S], [], [CLAMP];
    FmaV2f16 = "FMA.v2f16", 0x0b3, Alone, Fma, Dest, [F16S, F16S, F16S], [], [CLAMP];
    RshiftAndI32 = "RSHIFT_AND.i32", 0x0b4, Shift(0x0), Special, Dest, [I32W, LANES, N32], [], [SIGNED, NOT_RESULT];
    RshiftOrI32 = "RSHIFT_OR.i32", 0x0b4, Shift(0x1), Special, Dest, [I32W, LANES, N32], [], [SIGNED, NOT_RESULT];
    RshiftXorI32 = "RSHIFT_XOR.i32", 0x0b4, Shift(0x2), Special, Dest, [I32W, LANES, N32], [], [SIGNED, NOT_RESULT];
    LshiftAndI32 = "LSHIFT_AND.i32", 0x0b4, Shift(0x100), Special, Dest, [I32W, LANES, N32], [], [NOT_RESULT];
    LshiftOrI32 = "LSHIFT_OR.i32", 0x0b4, Shift(0x101), Special, Dest, [I32W, LANES, N32], [], [NOT_RESULT];
    LshiftXorI32 = "LSHIFT_XOR.i32", 0x0b4, Shift(0x102), Special, Dest, [I32W, LANES, N32], [], [NOT_RESULT];
    RshiftAndV2i16 = "RSHIFT_AND.v2i16", 0x0b5, Shift(0x0), Special, Dest, [I16W, LANES, N16], [], [SIGNED, NOT_RESULT];
    RshiftOrV2i16 = "RSHIFT_OR.v2i16", 0x0b5, Shift(0x1), Special, Dest, [I16W, LANES, N16], [], [SIGNED, NOT_RESULT];
    RshiftXorV2i16 = "RSHIFT_XOR.v2i16", 0x0b5, Shift(0x2), Special, Dest, [I16W, LANES, N16], [], [SIGNED, NOT_RESULT];
    LshiftAndV2i16 = "LSHIFT_AND.v2i16", 0x0b5, Shift(0x100), Special, Dest, [I16W, LANES, N16], [], [NOT_RESULT];
    LshiftOrV2i16 = "LSHIFT_OR.v2i16", 0x0b5, Shift(0x101), Special, Dest, [I16W, LANES, N16], [], [NOT_RESULT];
    LshiftXorV2i16 = "LSHIFT_XOR.v2i16", 0x0b5, Shift(0x102), Special, Dest, [I16W, LANES, N16], [], [NOT_RESULT];
    RshiftAndV4i8 = "RSHIFT_AND.v4i8", 0x0b6, Shift(0x0), Special, Dest, [I8W, LANES, N8], [], [SIGNED, NOT_RESULT];
    RshiftOrV4i8 = "RSHIFT_OR.v4i8", 0x0b6, Shift(0x1), Special, Dest, [I8W, LANES, N8], [], [SIGNED, NOT_RESULT];
    RshiftXorV4i8 = "RSHIFT_XOR.v4i8", 0x0b6, Shift(0x2), Special, Dest, [I8W, LANES, N8], [], [SIGNED, NOT_RESULT];
    LshiftAndV4i8 = "LSHIFT_AND.v4i8", 0x0b6, Shift(0x100), Special, Dest, [I8W, LANES, N8], [], [NOT_RESULT];
    LshiftOrV4i8 = "LSHIFT_OR.v4i8", 0x0b6, Shift(0x101), Special, Dest, [I8W, LANES, N8], [], [NOT_RESULT];
    LshiftXorV4i8 = "LSHIFT_XOR.v4i8", 0x0b6, Shift(0x102), Special, Dest, [I8W, LANES, N8], [], [NOT_RESULT];
    MuxI32 = "MUX.i32", 0x0b8, Alone, Special, Dest, [R32, R32, R32], [], [MUX];
    MuxV2i16 = "MUX.v2i16", 0x0b9, Alone, Special, Dest, [I16S, I16S, I16S], [], [MUX];
    MuxV4i8 = "MUX.v4i8", 0x0ba, Alone, Special, Dest, [R8, R8, R8], [], [MUX];
    CubeSsel = "CUBE_SSEL", 0x0bc, FourHigh(0), Special, Dest, [F32, F32, R32], [], [];
    CubeTsel = "CUBE_TSEL", 0x0bc, FourHigh(1), Special, Dest, [F32, F32, R32], [], [];
    MkvecV2i8 = "MKVEC.v2i8", 0x0bd, Alone, Convert, Dest, [PART, PART, R8], [], [];
    Cubeface1 = "CUBEFACE1", 0x0c0, Alone, Special, Dest, [F32, F32, F32], [], [];
    Cubeface2V9 = "CUBEFACE2_V9", 0x0c1, Alone, Special, Dest, [F32, F32, F32], [], [];
    IdpV4s8 = "IDP.v4s8", 0x0c2, FourHigh(0), Fma, Dest, [R8, R8, R8], [], [SATURATE];
    IdpV4u8 = "IDP.v4u8", 0x0c2, FourHigh(1), Fma, Dest, [R8, R8, R8], [], [SATURATE];
    IcmpOrU32 = "ICMP_OR.u32", 0x0f0, Two(0), Convert, Dest, [I32W, I32W, R32], [], [CONDITION, RESULT_TYPE];
    IcmpAndU32 = "ICMP_AND.u32", 0x0f0, Two(1), Convert, Dest, [I32W, I32W, R32], [], [CONDITION, RESULT_TYPE];
    IcmpMultiU32 = "ICMP_MULTI.u32", 0x0f0, Two(2), Convert, Dest, [I32W, I32W, R32], [], [CONDITION, RESULT_TYPE];
    IcmpOrV2u16 = "ICMP_OR.v2u16", 0x0f1, Two(0), Convert, Dest, [I16W, I16W, R16], [], [CONDITION, RESULT_TYPE];
    IcmpAndV2u16 = "ICMP_AND.v2u16", 0x0f1, Two(1), Convert, Dest, [I16W, I16W, R16], [], [CONDITION, RESULT_TYPE];
    IcmpOrV4u8 = "ICMP_OR.v4u8", 0x0f2, Two(0), Convert, Dest, [I8W, I8W, R8], [], [CONDITION, RESULT_TYPE];
    IcmpAndV4u8 = "ICMP_AND.v4u8", 0x0f2, Two(1), Convert, Dest, [I8W, I8W, R8], [], [CONDITION, RESULT_TYPE];
    FcmpOrF32 = "FCMP_OR.f32", 0x0f4, Two(0), Convert, Dest, [F32S, F32S, R32], [], [CONDITION, RESULT_TYPE];
    FcmpAndF32 = "FCMP_AND.f32", 0x0f4, Two(1), Convert, Dest, [F32S, F32S, R32], [], [CONDITION, RESULT_TYPE];
    FcmpOrV2f16 = "FCMP_OR.v2f16", 0x0f5, Two(0), Convert, Dest, [F16S, F16S, R16], [], [CONDITION, RESULT_TYPE];
    FcmpAndV2f16 = "FCMP_AND.v2f16", 0x0f5, Two(1), Convert, Dest, [F16S, F16S, R16], [], [CONDITION, RESULT_TYPE];
    IcmpOrS32 = "ICMP_OR.s32", 0x0f8, Two(0), Convert, Dest, [I32W, I32W, R32], [], [CONDITION, RESULT_TYPE];
    IcmpAndS32 = "ICMP_AND.s32", 0x0f8, Two(1), Convert, Dest, [I32W, I32W, R32], [], [CONDITION, RESULT_TYPE];
    IcmpMultiS32 = "ICMP_MULTI.s32", 0x0f8, Two(2), Convert, Dest, [I32W, I32W, R32], [], [CONDITION, RESULT_TYPE];
    IcmpOrV2s16 = "ICMP_OR.v2s16", 0x0f9, Two(0), Convert, Dest, [I16W, I16W, R16], [], [CONDITION, RESULT_TYPE];
    IcmpAndV2s16 = "ICMP_AND.v2s16", 0x0f9, Two(1), Convert, Dest, [I16W, I16W, R16], [], [CONDITION, RESULT_TYPE];
    IcmpOrV4s8 = "ICMP_OR.v4s8", 0x0fa, Two(0), Convert, Dest, [I8W, I8W, R8], [], [CONDITION, RESULT_TYPE];
    IcmpAndV4s8 = "ICMP_AND.v4s8", 0x0fa, Two(1), Convert, Dest, [I8W, I8W, R8], [], [CONDITION, RESULT_TYPE];
    IaddImmI32 = "IADD_IMM.i32", 0x110, Alone, Convert, Dest, [R32], [CONSTANT], [];
    IaddImmV2i16 = "IADD_IMM.v2i16", 0x111, Alone, Convert, Dest, [R16], [CONSTANT], [];
    IaddImmV4i8 = "IADD_IMM.v4i8", 0x112, Alone, Convert, Dest, [R8], [CONSTANT], [];
    FaddImmF32 = "FADD_IMM.f32", 0x114, Alone, Fma, Dest, [R32], [CONSTANT], [];
    FaddImmV2f16 = "FADD_IMM.v2f16", 0x115, Alone, Fma, Dest, [R16], [CONSTANT], [];
    AtomReturnI32 = "ATOM_RETURN.i32", 0x120, Width(3), Memory, Swaps, [R64], [SHORT_OFFSET], [SLOT, COMPARE, ATOMIC_OPERATION];
    AtomReturnI64 = "ATOM_RETURN.i64", 0x120, Width(5), Memory, Swaps, [R64], [SHORT_OFFSET], [SLOT, COMPARE, ATOMIC_OPERATION];
    TexFetch = "TEX_FETCH", 0x125, Alone, Texture, Fetches, [R64], [],
        [SLOT, SKIP, REGISTER_TYPE, REGISTER_WIDTH, WRITE_MASK, DIMENSION, WIDE_INDICES, ARRAY_ENABLE, TEXEL_OFFSET];
    TexSingle = "TEX_SINGLE", 0x128, Alone, Texture, Fetches, [R64], [],
        [SLOT, SKIP, REGISTER_TYPE, REGISTER_WIDTH, WRITE_MASK, DIMENSION, WIDE_INDICES, ARRAY_ENABLE, TEXEL_OFFSET, SHADOW, LOD_MODE];
    TexGather = "TEX_GATHER", 0x129, Alone, Texture, Fetches, [R64], [],
        [SLOT, SKIP, REGISTER_TYPE, REGISTER_WIDTH, WRITE_MASK, DIMENSION, WIDE_INDICES, ARRAY_ENABLE, TEXEL_OFFSET, INTEGER_COORDINATES, FETCH_COMPONENT, SHADOW];
    TexGradient = "TEX_GRADIENT", 0x12a, Alone, Texture, Fetches, [R64], [],
        [SLOT, SKIP, REGISTER_TYPE, REGISTER_WIDTH, WRITE_MASK, DIMENSION, WIDE_INDICES, LOD_BIAS_DISABLE, LOD_CLAMP_DISABLE, FORCE_DELTA_ENABLE, DERIVATIVE_ENABLE];
    TexDual = "TEX_DUAL", 0x12f, Alone, Texture, Fetches, [R64], [],
        [SLOT, SKIP, REGISTER_TYPE, REGISTER_WIDTH, SECOND_WIDTH, WRITE_MASK, DIMENSION, WIDE_INDICES, ARRAY_ENABLE, TEXEL_OFFSET, SHADOW, LOD_MODE];
    VarTexBufSingle = "VAR_TEX_BUF_SINGLE", 0x130, Alone, VaryingTexture, Samples, [R64, GAP, R32], [],
        [SLOT, SKIP, SAMPLE_AND_UPDATE, REGISTER_TYPE, VARYING_WIDTH, DIMENSION, ARRAY_ENABLE, SHADOW, LOD_MODE];
    VarTexBufGather = "VAR_TEX_BUF_GATHER", 0x131, Alone, VaryingTexture, Samples, [R64, GAP, R32], [],
        [SLOT, SKIP, SAMPLE_AND_UPDATE, REGISTER_TYPE, VARYING_WIDTH, DIMENSION, ARRAY_ENABLE, INTEGER_COORDINATES, FETCH_COMPONENT, SHADOW];
    VarTexBufGradient = "VAR_TEX_BUF_GRADIENT", 0x132, Alone, VaryingTexture, Samples, [R64, GAP, R32], [],
        [SLOT, SKIP, SAMPLE_AND_UPDATE, REGISTER_TYPE, VARYING_WIDTH, DIMENSION, ARRAY_ENABLE, SHADOW, LOD_BIAS_DISABLE, LOD_CLAMP_DISABLE];
    VarTexBufDual = "VAR_TEX_BUF_DUAL", 0x137, Alone, VaryingTexture, Samples, [R64, GAP, R32], [],
        [SLOT, SKIP, SAMPLE_AND_UPDATE, REGISTER_TYPE, VARYING_WIDTH, DIMENSION, ARRAY_ENABLE, SHADOW, LOD_MODE];
    VarTexSingle = "VAR_TEX_SINGLE", 0x138, Alone, VaryingTexture, Samples, [R64, GAP, R32], [],
        [SLOT, SKIP, SAMPLE_AND_UPDATE, REGISTER_TYPE, VARYING_WIDTH, DIMENSION, ARRAY_ENABLE, SHADOW, LOD_MODE];
    VarTexGather = "VAR_TEX_GATHER", 0x139, Alone, VaryingTexture, Samples, [R64, GAP, R32], [],
        [SLOT, SKIP, SAMPLE_AND_UPDATE, REGISTER_TYPE, VARYING_WIDTH, DIMENSION, ARRAY_ENABLE, INTEGER_COORDINATES, FETCH_COMPONENT, SHADOW];
    VarTexGradient = "VAR_TEX_GRADIENT", 0x13a, Alone, VaryingTexture, Samples, [R64, GAP, R32], [],
        [SLOT, SKIP, SAMPLE_AND_UPDATE, REGISTER_TYPE, VARYING_WIDTH, DIMENSION, ARRAY_ENABLE, SHADOW, LOD_BIAS_DISABLE, LOD_CLAMP_DISABLE];
    VarTexDual = "VAR_TEX_DUAL", 0x13f, Alone, VaryingTexture, Samples, [R64, GAP, R32], [],
        [SLOT, SKIP, SAMPLE_AND_UPDATE, REGISTER_TYPE, VARYING_WIDTH, DIMENSION, ARRAY_ENABLE, SHADOW, LOD_MODE];
    CselU32 = "CSEL.u32", 0x150, Alone, Convert, Dest, [R32, R32, R32, R32], [], [CONDITION];
    CselV2u16 = "CSEL.v2u16", 0x151, Alone, Convert, Dest, [R16, R16, R16, R16], [], [CONDITION];
    CselF32 = "CSEL.f32", 0x154, Alone, Convert, Dest, [R32, R32, R32, R32], [], [CONDITION];
    CselV2f16 = "CSEL.v2f16", 0x155, Alone, Convert, Dest, [R16, R16, R16, R16], [], [CONDITION];
    CselS32 = "CSEL.s32", 0x158, Alone, Convert, Dest, [R32, R32, R32, R32], [], [CONDITION];
    CselV2s16 = "CSEL.v2s16", 0x159, Alone, Convert, Dest, [R16, R16, R16, R16], [], [CONDITION];
    FmaRscaleF32 = "FMA_RSCALE.f32", 0x160, Alone, Fma, Dest, [F32, F32, F32, R32], [], [CLAMP];
    FmaRscaleNF32 = "FMA_RSCALE_N.f32", 0x161, Alone, Fma, Dest, [F32, F32, F32, R32], [], [CLAMP];
    FmaRscaleLeftF32 = "FMA_RSCALE_LEFT.f32", 0x162, Alone, Fma, Dest, [F32, F32, F32, R32], [], [CLAMP];
    FmaRscaleScale16F32 = "FMA_RSCALE_SCALE16.f32", 0x163, Alone, Fma, Dest, [F32, F32, F32, R32], [], [CLAMP];
    NotOldI64 = "NOT_OLD.i64", 0x191, Four(14), Special, Dest, [R64], [], [];
    IaddU64 = "IADD.u64", 0x1a3, Four(0), Convert, Dest, [I64W, I64W], [], [SATURATE];
    IsubU64 = "ISUB.u64", 0x1a3, Four(1), Convert, Dest, [I64W, I64W], [], [SATURATE];
    SegAddU64 = "SEG_ADD.u64", 0x1a3, Four(6), Convert, Dest, [R64, I64W], [], [NEG, PRESERVE_NULL];
    ShaddxU64 = "SHADDX.u64", 0x1a3, Four(7), Convert, Dest, [R64, I64W], [SHIFT], [];
    ImuldU64 = "IMULD.u64", 0x1a3, Four(10), Special, Dest, [I64W, I64W], [], [SATURATE];
    ClperU64 = "CLPER.u64", 0x1a3, Four(15), Special, Dest, [R64, LANES], [], [SUBGROUP_SIZE, LANE_OPERATION, INACTIVE_RESULT];
    IaddS64 = "IADD.s64", 0x1ab, Four(0), Convert, Dest, [I64W, I64W], [], [SATURATE];
    IsubS64 = "ISUB.s64", 0x1ab, Four(1), Convert, Dest, [I64W, I64W], [], [SATURATE];
    ShaddxS64 = "SHADDX.s64", 0x1ab, Four(7), Convert, Dest, [R64, I64W], [SHIFT], [];
    ClperS64 = "CLPER.s64", 0x1ab, Four(15), Special, Dest, [R64, LANES], [], [SUBGROUP_SIZE, LANE_OPERATION, INACTIVE_RESULT];
    RshiftAndI64 = "RSHIFT_AND.i64", 0x1b7, Shift(0x0), Special, Dest, [I64W, LANES, N64], [], [SIGNED, NOT_RESULT];
    RshiftOrI64 = "RSHIFT_OR.i64", 0x1b7, Shift(0x1), Special, Dest, [I64W, LANES, N64], [], [SIGNED, NOT_RESULT];
    RshiftXorI64 = "RSHIFT_XOR.i64", 0x1b7, Shift(0x2), Special, Dest, [I64W, LANES, N64], [], [SIGNED, NOT_RESULT];
    LshiftAndI64 = "LSHIFT_AND.i64", 0x1b7, Shift(0x100), Special, Dest, [I64W, LANES, N64], [], [NOT_RESULT];
    LshiftOrI64 = "LSHIFT_OR.i64", 0x1b7, Shift(0x101), Special, Dest, [I64W, LANES, N64], [], [NOT_RESULT];
    LshiftXorI64 = "LSHIFT_XOR.i64", 0x1b7, Shift(0x102), Special, Dest, [I64W, LANES, N64], [], [NOT_RESULT];
}
