// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of modifiers, as disassembled.

/// Names of values, from 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Values {
    /// Empty ones, and what lies beyond, are reserved.
    names: &'static [&'static str],
    default: &'static str,
}

impl Values {
    /// `None` if reserved.
    pub fn name(&self, value: u32) -> Option<&'static str> {
        let name = self.names.get(usize::try_from(value).ok()?)?;
        (!name.is_empty()).then_some(name)
    }

    /// The name that is not written.
    pub fn default_name(&self) -> Option<&'static str> {
        (!self.default.is_empty()).then_some(self.default)
    }

    /// Names with their values, without reserved ones.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &'static str)> {
        let all = (0..).zip(self.names.iter().copied());
        all.filter(|(_, name)| !name.is_empty())
    }
}

macro_rules! values {
    ($($(#[$doc:meta])* $name:ident = [$($value:literal),*], $default:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) static $name: Values = Values { names: &[$($value),*], default: $default };
    )*};
}

// Sets of values, each with its unwritten one.
values! {
    FLOW = [
        "none", "wait0", "wait1", "wait01", "wait2", "wait02", "wait12", "wait012", "wait0126", "wait",
        "reconverge", "", "", "discard", "", "end"
    ], "none";
    /// Order of a source's four bytes.
    SWIZZLES_8_BIT = [
        "b0123", "b3210", "b0101", "b2323", "b0000", "b1111", "b2222", "b3333", "b2301", "b1032", "b0011",
        "b2233"
    ], "b0123";
    /// Byte that counts a shift or names a lane.
    LANES_8_BIT = ["", "", "", "", "b00", "b11", "b22", "b33"], "";
    /// Two bytes, low one first.
    HALF_SWIZZLES_8_BIT = [
        "b00", "b10", "b20", "b30", "b01", "b11", "b21", "b31", "b02", "b12", "b22", "b32", "b03", "b13",
        "b23", "b33"
    ], "";
    /// Two halves, or two widened bytes; low one first.
    SWIZZLES_16_BIT = [
        "h00", "h10", "h01", "h11", "b00", "b20", "b02", "b22", "b11", "b31", "b13", "b33", "b01", "b23"
    ], "h01";
    /// Part widened to 32 bits.
    SWIZZLES_32_BIT = ["none", "", "h0", "h1", "b0", "b1", "b2", "b3"], "none";
    /// Part widened to 64 bits.
    SWIZZLES_64_BIT = ["none", "", "h0", "h1", "b0", "b1", "b2", "b3", "w0"], "none";
    LANE_8_BIT = ["b0", "b1", "b2", "b3"], "";
    /// What a branch compares with zero.
    COMBINE = ["none", "h0", "h1", "and", "lowbits"], "none";
    LANE_16_BIT = ["h0", "h1"], "";
    LOAD_LANE_8_BIT = ["b0", "b1", "b2", "b3", "h0", "h1", "w0", "d0"], "b0";
    LOAD_LANE_16_BIT = ["h0", "h1", "w0", "d0"], "h0";
    LOAD_LANE_24_BIT = ["identity"], "identity";
    LOAD_LANE_32_BIT = ["w0", "d0"], "w0";
    LOAD_LANE_48_BIT = ["", "", "", "", "identity"], "identity";
    LOAD_LANE_64_BIT = ["", "", "", "", "", "", "", "identity"], "identity";
    LOAD_LANE_96_BIT = ["", "", "", "", "", "", "identity"], "identity";
    LOAD_LANE_128_BIT = ["", "", "", "", "", "", "", "identity"], "identity";
    /// Rounding: to the nearest even, up, down, to zero.
    ROUND_MODE = ["rte", "rtp", "rtn", "rtz"], "rte";
    /// For true: 1, 1.0, all ones; `u1` is not known.
    RESULT_TYPE = ["i1", "f1", "m1", "u1"], "";
    /// Half read as f16 and widened.
    WIDEN = ["none", "h0", "h1"], "none";
    CLAMP = ["none", "clamp_0_inf", "clamp_m1_1", "clamp_0_1"], "none";
    CONDITION = ["eq", "gt", "ge", "ne", "lt", "le", "gtlt", "total"], "";
    DIMENSION = ["1d", "2d", "3d", "cube"], "";
    LOD_MODE = ["zero", "computed", "", "", "explicit", "computed_bias", "grdesc"], "";
    REGISTER_FORMAT = ["auto", "", "f32", "f16", "s32", "s16", "u32", "u16"], "";
    WRITE_MASK = ["", "r", "g", "rg", "b", "rb", "gb", "rgb", "a", "ra", "ga", "rga", "ba", "rba", "gba", "rgba"], "rgba";
    FETCH_COMPONENT = ["gather4_r", "gather4_g", "gather4_b", "gather4_a"], "";
    /// Mesa's compiler leaves it at 0: the texture's format decides. Its disassembler calls that reserved.
    REGISTER_TYPE = ["reserved", "f", "u", "s"], "";
    REGISTER_WIDTH = ["16", "32"], "";
    /// Bits in registers: a varying's, then a texel's.
    VARYING_TEXTURE_REGISTER_WIDTH = ["16", "32", "16.32", "32.32"], "";
    VECTOR_SIZE = ["none", "v2", "v3", "v4"], "none";
    SLOT = ["slot0", "slot1", "slot2", "", "", "", "", "slot7"], "";
    MEMORY_ACCESS = ["none", "istream", "estream", "force"], "none";
    SUBGROUP_SIZE = ["subgroup2", "subgroup4", "subgroup8", "subgroup16"], "subgroup16";
    LANE_OPERATION = ["none", "xor", "accumulate", "shift"], "none";
    INACTIVE_RESULT = [
        "zero", "umax", "i1", "v2i1", "smin", "smax", "v2smin", "v2smax", "v4smin", "v4smax", "f1", "v2f1",
        "infn", "inf", "v2infn", "v2inf"
    ], "zero";
    MUX = ["neg", "int_zero", "fp_zero", "bit"], "int_zero";
    SAMPLE_MODE = ["center", "centroid", "sample", "explicit"], "";
    UPDATE_MODE = ["store", "retrieve", "", "clobber"], "";
    SAMPLE_AND_UPDATE_MODE = [
        "center_store", "centroid_store", "sample_store", "explicit_store", "center_clobber", "",
        "sample_clobber", "retrieve"
    ], "";
    SOURCE_FORMAT = ["src_flat32", "src_flat16", "src_f32", "src_f16"], "";
    ATOMIC_OPERATION = [
        "", "", "aadd", "", "", "", "", "", "asmin", "asmax", "aumin", "aumax", "aand", "aor", "axor",
        "axchg"
    ], "";
    ATOMIC_OPERATION_WITH_1 = ["ainc", "adec", "aumax1", "asmax1", "aor1"], "";
    NAN_MODE = ["none", "flush_nan", "quiet_nan"], "";
}
