// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors with distinct elements, to find each in GPU memory.

use crate::{ElementType, Tensor, TensorError};

/// How well bits tell elements apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distinctiveness {
    /// All elements.
    pub elements: usize,
    /// Different bit patterns.
    pub distinct: usize,
    /// With all bits zero, which memory is full of.
    pub zeros: usize,
    /// How often the most frequent pattern occurs.
    pub most_frequent: usize,
}

/// Counts a tensor's bit patterns.
pub fn distinctiveness(tensor: &Tensor) -> Distinctiveness {
    // A table would take several times the memory, and most of a large network's compile time.
    let mut bits: Vec<u64> = (0..tensor.len()).map(|i| tensor.bits(i)).collect();
    bits.sort_unstable();
    let groups = || bits.chunk_by(|a, b| a == b);
    Distinctiveness {
        elements: tensor.len(),
        distinct: groups().count(),
        zeros: bits.partition_point(|pattern| *pattern == 0),
        most_frequent: groups().map(<[u64]>::len).max().unwrap_or(0),
    }
}

/// Makes elements as different as the type allows.
///
/// Floats lie in [1/4, 1) with either sign, so that a network computes ordinary numbers; integers use their whole
/// range. The same arguments give the same tensor; another `seed` changes nearly every element.
pub fn tag_tensor(dtype: ElementType, shape: &[u64], seed: u64) -> Result<Tensor, TensorError> {
    let mut tensor = Tensor::zeros(dtype, shape)?;
    for i in 0..tensor.len() {
        let n = i as u64;
        // Each pattern comes once a turn; turns have other orders, so that groups do not repeat.
        let pattern = |width: u32| {
            let turn = if width < 64 { n >> width } else { 0 };
            permute(
                n,
                seed.wrapping_add(turn.wrapping_mul(0x6a09_e667_f3bc_c909)),
                width,
            )
        };
        let bits = match dtype {
            // Two binades of either sign.
            ElementType::F32 => {
                let p = pattern(25);
                0x3e80_0000 + (p & 0x00ff_ffff) + ((p >> 24) << 31)
            }
            ElementType::F64 => {
                let p = pattern(54);
                0x3fd0_0000_0000_0000 + (p & ((1 << 53) - 1)) + ((p >> 53) << 63)
            }
            ElementType::F16 => {
                let p = pattern(12);
                0x3400 + (p & 0x7ff) + ((p >> 11) << 15)
            }
            ElementType::Bool => pattern(16) & 1,
            // Zero is no tag.
            _ => pattern(dtype.size() * 8).max(1),
        };
        tensor.set_bits(i, bits);
    }
    Ok(tensor)
}

fn permute(value: u64, seed: u64, width: u32) -> u64 {
    let mask = if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    };
    let half = width.div_ceil(2).max(1);
    let key = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut v = value & mask;
    for round in 0..3u32 {
        // Odd factors and half-width xor-shifts are invertible modulo 2^width.
        v = v.wrapping_mul(key.rotate_left(round * 21) | 1) & mask;
        v = v.wrapping_add(seed >> round) & mask;
        v ^= v >> half;
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_distinct() {
        for (d, n) in [
            (ElementType::F32, 20000),
            (ElementType::F16, 4096),
            (ElementType::F64, 5000),
            (ElementType::I32, 5000),
            (ElementType::I16, 5000),
            (ElementType::I64, 5000),
            (ElementType::U8, 255),
        ] {
            let found = distinctiveness(&tag_tensor(d, &[n], 1).unwrap());
            assert!(found.distinct as u64 + 1 >= n, "{d:?}: {found:?}");
            assert_eq!(found.zeros, 0, "{d:?}");
        }
        let f = tag_tensor(ElementType::F32, &[4096], 1).unwrap();
        let found = distinctiveness(&f);
        assert_eq!((found.distinct, found.zeros), (found.elements, 0));
        assert!(f.values().all(|v| (0.25..1.0).contains(&v.abs())));
    }

    #[test]
    fn seeds_differ() {
        let a = tag_tensor(ElementType::F32, &[1000], 1).unwrap();
        let b = tag_tensor(ElementType::F32, &[1000], 2).unwrap();
        let same = (0..1000).filter(|i| a.bits(*i) == b.bits(*i)).count();
        assert!(same < 5, "{same}");
        assert_eq!(a, tag_tensor(ElementType::F32, &[1000], 1).unwrap());
    }

    #[test]
    fn plain_inputs_are_recognised_as_bad() {
        let ones = Tensor::from_fn(ElementType::F32, &[10], |_| 1.0).unwrap();
        let d = distinctiveness(&ones);
        assert_ne!(d.distinct, d.elements);
        assert_eq!(d.most_frequent, 10);
    }

    #[test]
    fn equal_elements_and_zeros_are_counted() {
        let values = [2.0, 0.0, 1.0, 2.0, 0.0, -0.0, 2.0];
        let tensor = Tensor::from_fn(ElementType::F32, &[7], |i| values[i]).unwrap();
        let expected = Distinctiveness {
            elements: 7,
            distinct: 4,
            zeros: 2,
            most_frequent: 3,
        };
        assert_eq!(distinctiveness(&tensor), expected);
        let none = Distinctiveness {
            elements: 0,
            distinct: 0,
            zeros: 0,
            most_frequent: 0,
        };
        let empty = Tensor::zeros(ElementType::F32, &[0]).unwrap();
        assert_eq!(distinctiveness(&empty), none);
    }
}
