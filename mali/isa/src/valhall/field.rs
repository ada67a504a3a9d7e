// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modifiers and immediates: named fields of a word.

use crate::valhall::values::{self, Values};

/// Field of an instruction word.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Also the text of a flag.
    pub name: &'static str,
    /// Lowest bit.
    pub at: u8,
    /// Width.
    pub bits: u8,
    /// What its values mean.
    pub meaning: Meaning,
}

/// What the values of a field mean.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Modifier with named values.
    Named(&'static Values),
    /// One bit, written as the field's name.
    Flag,
    /// Number.
    Number,
    /// Signed number.
    Signed,
}

impl Field {
    /// Bits in the word.
    pub const fn mask(&self) -> u64 {
        ones(self.bits) << self.at
    }

    /// Value in a word.
    pub const fn read(&self, word: u64) -> u32 {
        (word >> self.at & ones(self.bits)) as u32
    }

    /// Value with its sign.
    pub const fn number(&self, word: u64) -> i64 {
        let value = self.read(word) as i64;
        let signed = matches!(self.meaning, Meaning::Signed) && value >> (self.bits - 1) != 0;
        if signed {
            value - (1 << self.bits)
        } else {
            value
        }
    }

    /// Value's name, if it has one.
    pub fn name_in(&self, word: u64) -> Option<&'static str> {
        match &self.meaning {
            Meaning::Named(values) => values.name(self.read(word)),
            Meaning::Flag if self.read(word) == 1 => Some(self.name),
            _ => None,
        }
    }

    /// Whether the value has no meaning.
    pub fn is_reserved(&self, word: u64) -> bool {
        matches!(&self.meaning, Meaning::Named(values) if values.name(self.read(word)).is_none())
    }
}

/// Fields have 1 to 32 bits.
pub(crate) const fn ones(bits: u8) -> u64 {
    (1 << bits) - 1
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $at:literal, $bits:literal, $meaning:expr;)*) => {$(
        $(#[$doc])*
        pub static $name: Field = Field { name: $text, at: $at, bits: $bits, meaning: $meaning };
    )*};
}

use Meaning::{Flag, Named, Number, Signed};

// Name in the text, lowest bit, width, meaning. Modifiers first, then immediates.
fields! {
    /// Branch conservatively.
    CONSERVATIVE = "conservative", 35, 1, Flag;
    /// Branch if the source is zero.
    EQ = "eq", 36, 1, Flag;
    /// Condition of a comparison.
    CONDITION = "condition", 32, 3, Named(&values::CONDITION);
    /// The target is an address.
    ABSOLUTE = "absolute", 40, 1, Flag;
    /// Message slot.
    SLOT = "slot", 30, 3, Named(&values::SLOT);
    /// Elements.
    VECTOR_SIZE = "vector_size", 28, 2, Named(&values::VECTOR_SIZE);
    /// Element type in registers.
    REGISTER_FORMAT = "register_format", 24, 3, Named(&values::REGISTER_FORMAT);
    /// Sample's place.
    SAMPLE_MODE = "sample_mode", 38, 2, Named(&values::SAMPLE_MODE);
    /// What becomes of the stored varying.
    UPDATE_MODE = "update_mode", 36, 2, Named(&values::UPDATE_MODE);
    /// Varying's type in memory.
    SOURCE_FORMAT = "source_format", 24, 4, Named(&values::SOURCE_FORMAT);
    /// Cache hint.
    MEMORY_ACCESS = "memory_access", 24, 2, Named(&values::MEMORY_ACCESS);
    /// Where 8 loaded bits go.
    LOAD_LANE_8_BIT = "load_lane_8_bit", 36, 3, Named(&values::LOAD_LANE_8_BIT);
    /// Extend by zeros, not by the sign.
    UNSIGNED = "unsigned", 39, 1, Flag;
    /// Where 16 loaded bits go.
    LOAD_LANE_16_BIT = "load_lane_16_bit", 36, 3, Named(&values::LOAD_LANE_16_BIT);
    /// Where 24 loaded bits go.
    LOAD_LANE_24_BIT = "load_lane_24_bit", 36, 3, Named(&values::LOAD_LANE_24_BIT);
    /// Where 32 loaded bits go.
    LOAD_LANE_32_BIT = "load_lane_32_bit", 36, 3, Named(&values::LOAD_LANE_32_BIT);
    /// Where 48 loaded bits go.
    LOAD_LANE_48_BIT = "load_lane_48_bit", 36, 3, Named(&values::LOAD_LANE_48_BIT);
    /// Where 64 loaded bits go.
    LOAD_LANE_64_BIT = "load_lane_64_bit", 36, 3, Named(&values::LOAD_LANE_64_BIT);
    /// Where 96 loaded bits go.
    LOAD_LANE_96_BIT = "load_lane_96_bit", 36, 3, Named(&values::LOAD_LANE_96_BIT);
    /// Where 128 loaded bits go.
    LOAD_LANE_128_BIT = "load_lane_128_bit", 36, 3, Named(&values::LOAD_LANE_128_BIT);
    /// Atomic operation.
    ATOMIC_OPERATION = "atomic_operation", 22, 4, Named(&values::ATOMIC_OPERATION);
    /// Atomic operation without operand.
    ATOMIC_1 = "atomic_operation_with_1", 22, 4, Named(&values::ATOMIC_OPERATION_WITH_1);
    /// Cache hint of a converting store.
    CONVERT_ACCESS = "memory_access", 37, 3, Named(&values::MEMORY_ACCESS);
    /// Write depth.
    Z = "z", 25, 1, Flag;
    /// Write stencil.
    STENCIL = "stencil", 24, 1, Flag;
    /// Rounding.
    ROUND_MODE = "round_mode", 30, 2, Named(&values::ROUND_MODE);
    /// Lanes that exchange values.
    SUBGROUP_SIZE = "subgroup_size", 36, 4, Named(&values::SUBGROUP_SIZE);
    /// What becomes of a NaN.
    NAN_MODE = "nan_mode", 8, 2, Named(&values::NAN_MODE);
    /// Denormals become zero.
    FTZ = "ftz", 10, 1, Flag;
    /// Infinities become the largest number.
    FLUSH_INF = "flush_inf", 11, 1, Flag;
    /// For square roots.
    SQRT = "sqrt", 24, 1, Flag;
    /// For logarithms.
    LOG = "log", 25, 1, Flag;
    /// Saturate instead of wrapping.
    SATURATE = "saturate", 30, 1, Flag;
    /// Round the half up.
    RHADD = "rhadd", 30, 1, Flag;
    /// How the other lane is found.
    LANE_OPERATION = "lane_operation", 32, 2, Named(&values::LANE_OPERATION);
    /// Result of inactive lanes.
    INACTIVE_RESULT = "inactive_result", 22, 4, Named(&values::INACTIVE_RESULT);
    /// Result's range.
    CLAMP = "clamp", 32, 2, Named(&values::CLAMP);
    /// Second step.
    SECOND = "second", 24, 1, Flag;
    /// Shift in copies of the sign.
    SIGNED = "signed", 34, 1, Flag;
    /// Result's complement.
    NOT_RESULT = "not_result", 30, 1, Flag;
    /// What chooses.
    MUX = "mux", 32, 2, Named(&values::MUX);
    /// What is true.
    RESULT_TYPE = "result_type", 30, 2, Named(&values::RESULT_TYPE);
    /// Exchange only if memory has the expected value.
    COMPARE = "compare", 26, 1, Flag;
    /// Helper lanes may skip.
    SKIP = "skip", 39, 1, Flag;
    /// Texel's type in registers.
    REGISTER_TYPE = "register_type", 26, 2, Named(&values::REGISTER_TYPE);
    /// Texel's bits in registers.
    REGISTER_WIDTH = "register_width", 46, 1, Named(&values::REGISTER_WIDTH);
    /// Components returned.
    WRITE_MASK = "write_mask", 22, 4, Named(&values::WRITE_MASK);
    /// Texture's dimensions.
    DIMENSION = "dimension", 28, 2, Named(&values::DIMENSION);
    /// Handles have 32 bits.
    WIDE_INDICES = "wide_indices", 8, 1, Flag;
    /// The texture is an array.
    ARRAY_ENABLE = "array_enable", 10, 1, Flag;
    /// Offsets are given.
    TEXEL_OFFSET = "texel_offset", 11, 1, Flag;
    /// A reference to compare with is given.
    SHADOW = "shadow", 12, 1, Flag;
    /// Source of the level of detail.
    LOD_MODE = "lod_mode", 13, 3, Named(&values::LOD_MODE);
    /// Coordinates are integers.
    INTEGER_COORDINATES = "integer_coordinates", 13, 1, Flag;
    /// Component that a gather returns.
    FETCH_COMPONENT = "fetch_component", 14, 2, Named(&values::FETCH_COMPONENT);
    /// Ignore the level of detail's bias.
    LOD_BIAS_DISABLE = "lod_bias_disable", 13, 1, Flag;
    /// Ignore the level of detail's range.
    LOD_CLAMP_DISABLE = "lod_clamp_disable", 14, 1, Flag;
    /// Differences instead of derivatives.
    FORCE_DELTA_ENABLE = "force_delta_enable", 12, 1, Flag;
    /// Derivatives are given.
    DERIVATIVE_ENABLE = "derivative_enable", 15, 1, Flag;
    /// Second texel's bits in registers.
    SECOND_WIDTH = "secondary_register_width", 47, 1, Named(&values::REGISTER_WIDTH);
    /// Sample position and varying's update.
    SAMPLE_AND_UPDATE = "sample_and_update_mode", 33, 3, Named(&values::SAMPLE_AND_UPDATE_MODE);
    /// Varying's and texel's bits in registers.
    VARYING_WIDTH = "varying_texture_register_width", 24, 2, Named(&values::VARYING_TEXTURE_REGISTER_WIDTH);
    /// Subtract.
    NEG = "neg", 38, 1, Flag;
    /// A null pointer stays null.
    PRESERVE_NULL = "preserve_null", 39, 1, Flag;
    /// Words to skip after the branch.
    BRANCH_OFFSET = "offset", 8, 27, Signed;
    /// Resource table.
    TABLE = "table", 8, 4, Number;
    /// Place in the table.
    INDEX = "index", 12, 8, Number;
    /// Which special varying.
    SPECIAL_INDEX = "index", 12, 4, Number;
    /// Varying's offset.
    BUFFER_INDEX = "index", 16, 8, Number;
    /// Bytes, added to the address.
    OFFSET = "offset", 8, 16, Signed;
    /// Place in the table.
    RESOURCE_INDEX = "index", 20, 4, Number;
    /// Attribute's or texture's table.
    RESOURCE_TABLE = "table", 16, 4, Number;
    /// Bytes, added to the address.
    SHORT_OFFSET = "offset", 8, 8, Number;
    /// Blend target.
    TARGET = "target", 8, 8, Number;
    /// Second source.
    CONSTANT = "constant", 8, 32, Number;
    /// Places to shift by.
    SHIFT = "shift", 20, 3, Number;
}
