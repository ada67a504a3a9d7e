// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory after a replay against memory after the recorded launch.

use std::fmt;
use std::str::FromStr;

use gpureplay_tensors::f16_to_f32;

/// What memory holds, where bits may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// IEEE half precision.
    F16,
    /// The upper half of a single-precision number.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// 32-bit integers with a sign.
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
    const fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 => 8,
        }
    }

    fn read(self, bytes: &[u8]) -> f64 {
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
    /// Type and relative error that is allowed; without it, bits.
    pub tolerance: Option<(Element, f64)>,
}

/// What a replay showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Every bit is as recorded.
    Exact,
    /// Every element is within the tolerance.
    Within {
        /// The largest relative error.
        worst: f64,
    },
    /// Something differs.
    Differs(Difference),
    /// A replay that launches nothing would pass too, so this one shows nothing.
    Inconclusive,
}

/// How memory differs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    /// Elements (words of four bytes where no type is given) that differ.
    pub elements: u64,
    /// The largest relative error, where a type is given.
    pub worst: f64,
    /// Where the first difference is: an address of the recorded process.
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

/// The magnitude that half of the numbers in a piece of memory do not exceed, rounded down to a power of two; zeroes, infinities and
/// what is no number do not count. The largest one would not do: memory that holds something else beside, or words of another
/// type, has huge ones, beside which no error would be seen.
fn magnitude(element: Element, bytes: &[u8]) -> f64 {
    const EXPONENTS: usize = 1 << 11;
    let exponent = |value: f64| (value.abs().to_bits() >> 52) as usize;
    let mut counts = vec![0u64; EXPONENTS];
    let numbers = bytes
        .chunks_exact(element.size())
        .map(|bytes| element.read(bytes));
    for number in numbers.filter(|number| number.is_normal()) {
        counts[exponent(number)] += 1;
    }
    let half = counts.iter().sum::<u64>().div_ceil(2);
    let mut passed = 0;
    let middle = counts.iter().position(|count| {
        passed += count;
        half > 0 && passed >= half
    });
    middle.map_or(0.0, |exponent| f64::from_bits((exponent as u64) << 52))
}

/// Words that differ after a replay: where, as recorded, as found.
pub type Differing = (u64, u32, u32);

/// The first words that differ, as many as are wanted in all.
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

/// The sum of comparing several pieces of memory.
#[derive(Default)]
pub(crate) struct Sum {
    /// Some bit differs.
    bits: bool,
    /// Some element is beyond the tolerance.
    beyond: bool,
    difference: Difference,
}

impl Sum {
    /// Compares a piece; words (of four bytes) in `mask` are left out.
    pub(crate) fn add(
        &mut self,
        how: &Comparison,
        address: u64,
        got: &[u8],
        want: &[u8],
        mask: &[u32],
    ) {
        self.compare(how, address, got, want, mask, false);
    }

    /// Compares a piece only as far as it takes to know that it is not right.
    pub(crate) fn add_briefly(&mut self, how: &Comparison, got: &[u8], want: &[u8], mask: &[u32]) {
        if !self.beyond {
            self.compare(how, 0, got, want, mask, true);
        }
    }

    fn compare(
        &mut self,
        how: &Comparison,
        address: u64,
        got: &[u8],
        want: &[u8],
        mask: &[u32],
        is_brief: bool,
    ) {
        if mask.is_empty() && got == want {
            return;
        }
        let (element, limit) = how
            .tolerance
            .map_or((Element::I32, None), |(element, limit)| {
                (element, Some(limit))
            });
        let size = element.size();
        let scale = if limit.is_some() {
            magnitude(element, want)
        } else {
            0.0
        };
        let mut masked = mask.iter().copied().peekable();
        for (index, (got, want)) in got.chunks(size).zip(want.chunks(size)).enumerate() {
            let at = index * size;
            while masked
                .next_if(|word| *word as usize * 4 + 4 <= at)
                .is_some()
            {}
            let left_out = masked
                .peek()
                .is_some_and(|word| (*word as usize * 4) < at + size);
            if left_out || got == want {
                continue;
            }
            if !self.bits {
                self.difference.first = address + at as u64;
            }
            self.bits = true;
            self.difference.elements += 1;
            // A piece that is no whole number of elements has a tail that only bits can tell.
            let error = if limit.is_none() || want.len() < size {
                f64::INFINITY
            } else {
                let (got, want) = (element.read(got), element.read(want));
                let error = (got - want).abs() / want.abs().max(scale * 1e-6);
                if error.is_nan() { f64::INFINITY } else { error }
            };
            self.difference.worst = self.difference.worst.max(error);
            self.beyond |= limit.is_none_or(|limit| error > limit);
            if is_brief && self.beyond {
                return;
            }
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match (self.bits, self.beyond) {
            (false, _) => Verdict::Exact,
            (true, false) => Verdict::Within {
                worst: self.difference.worst,
            },
            (true, true) => Verdict::Differs(self.difference),
        }
    }
}

/// Words of four bytes that differ, added to those that are known.
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

#[cfg(test)]
mod tests {
    use super::{Comparison, Element, Sum, Verdict, noisy};

    fn verdict(how: Comparison, got: &[u8], want: &[u8], mask: &[u32]) -> Verdict {
        let mut sum = Sum::default();
        sum.add(&how, 0x1000, got, want, mask);
        sum.verdict()
    }

    fn singles(values: &[f32]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    #[test]
    fn bits_decide_without_a_tolerance() {
        let (a, b) = (singles(&[1.0, 2.0]), singles(&[1.0, 2.000_000_2]));
        assert_eq!(verdict(Comparison::default(), &a, &a, &[]), Verdict::Exact);
        let Verdict::Differs(difference) = verdict(Comparison::default(), &b, &a, &[]) else {
            panic!("they differ");
        };
        assert_eq!((difference.elements, difference.first), (1, 0x1004));
        assert_eq!(verdict(Comparison::default(), &b, &a, &[1]), Verdict::Exact);
    }

    #[test]
    fn a_tolerance_is_relative_and_no_number_is_within_it_of_another() {
        let how = |limit| Comparison {
            tolerance: Some((Element::F32, limit)),
        };
        let (a, b) = (singles(&[100.0, 2.0]), singles(&[101.0, 2.0]));
        assert!(
            matches!(verdict(how(0.02), &b, &a, &[]), Verdict::Within { worst } if (0.0099..0.0101).contains(&worst))
        );
        assert!(matches!(
            verdict(how(0.005), &b, &a, &[]),
            Verdict::Differs(_)
        ));
        let nan = singles(&[f32::NAN, 2.0]);
        assert!(matches!(
            verdict(how(1e9), &nan, &a, &[]),
            Verdict::Differs(_)
        ));
        assert_eq!(verdict(how(0.0), &nan, &nan, &[]), Verdict::Exact);
    }

    #[test]
    fn huge_numbers_beside_hide_no_error() {
        // Doubles that differ in their lower halves, read as singles: some of those are as large as singles get.
        let doubles = |change: u64| -> Vec<u8> {
            let bits = |index: u32| (f64::from(index) / 3.0).to_bits() ^ change;
            (1..1000)
                .flat_map(|index| bits(index).to_le_bytes())
                .collect()
        };
        let how = |element, limit| Comparison {
            tolerance: Some((element, limit)),
        };
        let (want, got) = (doubles(0), doubles(1 << 31));
        let singles = verdict(how(Element::F32, 1e-4), &got, &want, &[]);
        assert!(matches!(singles, Verdict::Differs(_)), "{singles}");
        let right = verdict(how(Element::F64, 1e-6), &got, &want, &[]);
        assert!(matches!(right, Verdict::Within { .. }), "{right}");
        // What is nearly zero beside ordinary numbers is within their error.
        let (near, zero) = (
            self::singles(&[1e-12, 1.0, 2.0]),
            self::singles(&[0.0, 1.0, 2.0]),
        );
        let near = verdict(how(Element::F32, 1e-4), &near, &zero, &[]);
        assert!(matches!(near, Verdict::Within { .. }), "{near}");
    }

    #[test]
    fn the_tail_of_a_piece_counts() {
        let how = Comparison {
            tolerance: Some((Element::F64, 1.0)),
        };
        assert!(matches!(
            verdict(how, &[0; 9], &[0, 0, 0, 0, 0, 0, 0, 0, 1], &[]),
            Verdict::Differs(_)
        ));
    }

    #[test]
    fn elements_are_the_known_numbers() {
        for (bits, value) in [(0x3c00u16, 1.0), (0xc000, -2.0), (0x0001, 2f64.powi(-24))] {
            assert_eq!(Element::F16.read(&bits.to_le_bytes()), value);
        }
        assert!(Element::F16.read(&0x7e00u16.to_le_bytes()).is_nan());
        assert_eq!(Element::Bf16.read(&0x3fc0u16.to_le_bytes()), 1.5);
        assert_eq!(Element::I32.read(&(-3i32).to_le_bytes()), -3.0);
    }

    #[test]
    fn noise_is_found_once() {
        let mut mask = vec![];
        noisy(&[0; 12], &[0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 2], &mut mask);
        noisy(&[0; 12], &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], &mut mask);
        assert_eq!(mask, [1, 2]);
    }
}
