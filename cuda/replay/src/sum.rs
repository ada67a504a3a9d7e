// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares memory on all cores, and adds up.

use crate::compare::Difference;
use crate::{Comparison, Element, Verdict};

/// Median, as a power of two, without zeroes, infinities and NaN. The largest would hide errors: other data looks
/// huge.
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

#[derive(Default)]
pub(crate) struct Sum {
    bits_differ: bool,
    beyond: bool,
    difference: Difference,
}

impl Sum {
    pub(crate) fn add(
        &mut self,
        how: &Comparison,
        address: u64,
        got: &[u8],
        want: &[u8],
        mask: &[u32],
    ) {
        self.join(&PieceSum::new(how, address, want, mask).compare(0, got));
    }

    pub(crate) fn add_briefly(&mut self, how: &Comparison, got: &[u8], want: &[u8], mask: &[u32]) {
        if !self.beyond {
            self.join(&PieceSum::new(how, 0, want, mask).one(0, got, true));
        }
    }

    /// `other` is of memory after this one's.
    pub(crate) fn join(&mut self, other: &Self) {
        if !self.bits_differ {
            self.difference.first = other.difference.first;
        }
        self.bits_differ |= other.bits_differ;
        self.beyond |= other.beyond;
        self.difference.elements += other.difference.elements;
        self.difference.worst = self.difference.worst.max(other.difference.worst);
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match (self.bits_differ, self.beyond) {
            (false, _) => Verdict::Exact,
            (true, false) => Verdict::Within {
                worst: self.difference.worst,
            },
            (true, true) => Verdict::Differs(self.difference),
        }
    }
}

pub(crate) struct PieceSum<'a> {
    address: u64,
    want: &'a [u8],
    mask: &'a [u32],
    element: Element,
    /// Relative; none where bits decide.
    limit: Option<f64>,
    scale: f64,
}

/// In bytes: whole elements of any type.
const SHARE: usize = 1 << 20;

impl<'a> PieceSum<'a> {
    /// `mask` has words of four bytes, ascending.
    pub(crate) fn new(how: &Comparison, address: u64, want: &'a [u8], mask: &'a [u32]) -> Self {
        let (element, limit) = match how.tolerance {
            Some((element, limit)) => (element, Some(limit)),
            None => (Element::I32, None),
        };
        let scale = limit.map_or(0.0, |_| magnitude(element, want));
        Self {
            address,
            want,
            mask,
            element,
            limit,
            scale,
        }
    }

    /// `start` is a multiple of 8.
    pub(crate) fn compare(&self, start: usize, got: &[u8]) -> Sum {
        let shares = got.len().div_ceil(SHARE);
        let cores = gpureplay_host::cores();
        if shares < 2 || cores < 2 {
            return self.one(start, got, false);
        }
        let of_a_core = shares.div_ceil(cores) * SHARE;
        let mut sum = Sum::default();
        std::thread::scope(|scope| {
            let parts = got.chunks(of_a_core).enumerate();
            let threads: Vec<_> = parts
                .map(|(number, got)| {
                    let work = move || self.one(start + number * of_a_core, got, false);
                    let other = std::thread::Builder::new().spawn_scoped(scope, work);
                    other.map_err(|_| work())
                })
                .collect();
            for thread in threads {
                sum.join(&match thread {
                    Ok(thread) => thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    Err(done) => done,
                });
            }
        });
        sum
    }

    fn one(&self, start: usize, got: &[u8], stops_at_first_error: bool) -> Sum {
        let mut sum = Sum::default();
        let end = self.want.len().min(start + got.len());
        let want = self.want.get(start..end).unwrap_or_default();
        let from = self
            .mask
            .partition_point(|word| (*word as usize) * 4 + 4 <= start);
        let until = self.mask.partition_point(|word| (*word as usize) * 4 < end);
        let mut masked = self.mask[from..until.max(from)].iter().copied().peekable();
        if masked.peek().is_none() && got == want {
            return sum;
        }
        let size = self.element.size();
        for (index, (got, want)) in got.chunks(size).zip(want.chunks(size)).enumerate() {
            let at = start + index * size;
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
            if !sum.bits_differ {
                sum.difference.first = self.address + at as u64;
            }
            sum.bits_differ = true;
            sum.difference.elements += 1;
            // A partial element is compared by its bits only.
            let error = if self.limit.is_none() || want.len() < size {
                f64::INFINITY
            } else {
                let (got, want) = (self.element.read(got), self.element.read(want));
                let error = (got - want).abs() / want.abs().max(self.scale * 1e-6);
                if error.is_nan() { f64::INFINITY } else { error }
            };
            sum.difference.worst = sum.difference.worst.max(error);
            sum.beyond |= self.limit.is_none_or(|limit| error > limit);
            if stops_at_first_error && sum.beyond {
                break;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::{PieceSum, SHARE, Sum};
    use crate::compare::noisy;
    use crate::{Comparison, Element, Verdict};

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
        // Doubles' lower halves can be singles of any size.
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
        // Near zero is within ordinary numbers' error.
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

    #[test]
    fn parts_and_cores_add_up_to_the_whole() {
        let words = SHARE / 4 * 5 + 3;
        let number = |index: usize| (index as u32).wrapping_mul(2_654_435_761);
        let bytes = |change: &dyn Fn(usize) -> u32| -> Vec<u8> {
            (0..words)
                .flat_map(|index| change(index).to_le_bytes())
                .collect()
        };
        let want = bytes(&number);
        let border = SHARE / 4;
        let wrong = [border - 1, border, 2 * border, 3 * border - 1, words - 1];
        let left_out = [border - 2, 4 * border];
        let got = bytes(&|index| {
            number(index) ^ u32::from(wrong.contains(&index) || left_out.contains(&index))
        });
        let mask = left_out.map(|word| word as u32);
        let piece = PieceSum::new(&Comparison::default(), 0x1000, &want, &mask);
        for part in [SHARE, 3 * SHARE, got.len()] {
            let mut sum = Sum::default();
            for start in (0..got.len()).step_by(part) {
                let end = got.len().min(start + part);
                sum.join(&piece.compare(start, &got[start..end]));
            }
            let Verdict::Differs(difference) = sum.verdict() else {
                panic!("they differ");
            };
            assert_eq!(difference.elements, wrong.len() as u64, "{part}");
            assert_eq!(difference.first, 0x1000 + wrong[0] as u64 * 4, "{part}");
        }
        let mut brief = Sum::default();
        brief.add_briefly(&Comparison::default(), &got, &want, &mask);
        assert!(!brief.verdict().is_right());
    }
}
