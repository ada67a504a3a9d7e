// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory after a replay against the recorded one.

use std::fmt;
use std::str::FromStr;

use gpureplay_tensors::f16_to_f32;

/// Element type of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// IEEE half.
    F16,
    /// Upper half of a single.
    Bf16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// Signed 32-bit integer.
    I32,
}

impl FromStr for Element {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "f16" => Ok(Self::F16),
            "bf16" => Ok(Self::Bf16),
            "f32" => Ok(Self::F32),
            "f64" => Ok(Self::F64),
            "i32" => Ok(Self::I32),
            _ => Err("is none of f16, bf16, f32, f64, i32"),
        }
    }
}

impl Element {
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 => 8,
        }
    }

    pub(crate) fn read(self, bytes: &[u8]) -> f64 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let low = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        match self {
            Self::F16 => f64::from(f16_to_f32(u16::from_le_bytes([word[0], word[1]]))),
            Self::Bf16 => f64::from(f32::from_bits(low << 16)),
            Self::F32 => f64::from(f32::from_bits(low)),
            Self::F64 => f64::from_le_bytes(word),
            Self::I32 => f64::from(low.cast_signed()),
        }
    }
}

/// How memory is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Allowed relative error; without, bits decide.
    pub tolerance: Option<(Element, f64)>,
}

/// What a replay showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Every bit is as recorded.
    Exact,
    /// All elements are within tolerance.
    Within {
        /// Largest relative error.
        worst: f64,
    },
    /// Something differs.
    Differs(Difference),
    /// Launching nothing would pass too.
    Inconclusive,
}

/// How memory differs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    /// Differing elements (of four bytes without a type).
    pub elements: u64,
    /// Largest relative error, with a type.
    pub worst: f64,
    /// First differing recorded address.
    pub first: u64,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("right, bit for bit"),
            Self::Within { worst } => write!(f, "right, largest relative error {worst:.2e}"),
            Self::Differs(difference) => write!(
                f,
                "differs in {} elements, the first at {:#x}, largest relative error {:.2e}",
                difference.elements, difference.first, difference.worst
            ),
            Self::Inconclusive => {
                f.write_str("inconclusive: a replay that launches nothing would pass too")
            }
        }
    }
}

impl Verdict {
    /// Whether the replay is right.
    #[must_use]
    pub fn is_right(&self) -> bool {
        matches!(self, Self::Exact | Self::Within { .. })
    }

    /// One word, for tables.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Within { .. } => "within",
            Self::Differs(_) => "differs",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// Address, as recorded, as found.
pub type Differing = (u64, u32, u32);

pub(crate) fn differing(
    found: &mut Vec<Differing>,
    most: usize,
    address: u64,
    got: &[u8],
    want: &[u8],
) {
    let words = want.as_chunks::<4>().0.iter().zip(got.as_chunks::<4>().0);
    let different = words.enumerate().filter(|(_, (want, got))| want != got);
    let room = most.saturating_sub(found.len());
    found.extend(different.take(room).map(|(word, (want, got))| {
        (
            address + word as u64 * 4,
            u32::from_le_bytes(*want),
            u32::from_le_bytes(*got),
        )
    }));
}

/// Adds numbers of differing words of four bytes.
pub(crate) fn noisy(first: &[u8], second: &[u8], mask: &mut Vec<u32>) {
    if first == second {
        return;
    }
    for (index, (first, second)) in first.chunks(4).zip(second.chunks(4)).enumerate() {
        if first != second
            && let Ok(index) = u32::try_from(index)
        {
            mask.push(index);
        }
    }
    mask.sort_unstable();
    mask.dedup();
}
