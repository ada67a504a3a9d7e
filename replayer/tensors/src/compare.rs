// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far two tensors are apart.

use crate::Tensor;

/// Of two tensors of the same shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Elements compared.
    pub elements: usize,
    /// Elements whose bits differ.
    pub different: usize,
    /// A NaN against a number is outside.
    pub outside: usize,
    /// Infinite if a NaN or an infinity stands against a number.
    pub max_absolute: f64,
    /// Relative to the *expected* magnitude, at least to the mean one, so that elements near zero do not dominate.
    pub max_relative: f64,
    /// Row-major index of `max_relative`.
    pub worst: Option<usize>,
}

impl Difference {
    /// Every element is within the tolerance.
    pub fn within(&self) -> bool {
        self.outside == 0
    }
}

/// `None` if shapes differ.
///
/// `relative` is a tolerance for [`Difference::max_relative`]. With 0 values must be equal; a negative one or NaN
/// allows nothing.
pub fn compare(found: &Tensor, expected: &Tensor, relative: f64) -> Option<Difference> {
    if found.shape() != expected.shape() {
        return None;
    }
    let elements = expected.len();
    let finite = || expected.values().map(f64::abs).filter(|v| v.is_finite());
    let count = finite().count().max(1);
    let mean = finite().sum::<f64>() / count as f64;
    let mut out = Difference {
        elements,
        different: 0,
        outside: 0,
        max_absolute: 0.0,
        max_relative: 0.0,
        worst: None,
    };
    let same_type = found.dtype() == expected.dtype();
    for (i, (f, e)) in found.values().zip(expected.values()).enumerate() {
        let same_bits = same_type && found.bits(i) == expected.bits(i);
        if same_bits {
            continue;
        }
        out.different += 1;
        if f == e || (f.is_nan() && e.is_nan()) {
            continue;
        }
        let mut absolute = (f - e).abs();
        if absolute.is_nan() {
            absolute = f64::INFINITY;
        }
        let scale = if e.is_finite() {
            e.abs().max(mean)
        } else {
            mean
        };
        let ratio = if scale > 0.0 {
            absolute / scale
        } else {
            f64::INFINITY
        };
        let inside = ratio <= relative && ratio.is_finite();
        if !inside {
            out.outside += 1;
        }
        out.max_absolute = out.max_absolute.max(absolute);
        if out.worst.is_none() || ratio > out.max_relative {
            out.max_relative = ratio;
            out.worst = Some(i);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found_and_scaled() {
        let a = Tensor::from_f32(&[3], &[1.0, 2.0, 3.0]).unwrap();
        let b = Tensor::from_f32(&[3], &[1.0, 2.0, 3.3]).unwrap();
        let d = compare(&b, &a, 1e-5).unwrap();
        assert_eq!((d.different, d.outside, d.worst), (1, 1, Some(2)));
        assert!((d.max_relative - 0.1).abs() < 1e-6);
        assert!(compare(&a, &a, 0.0).unwrap().within());
        let nan = Tensor::from_f32(&[3], &[1.0, f32::NAN, 3.0]).unwrap();
        assert_eq!(compare(&nan, &a, 1.0).unwrap().outside, 1);
        assert!(compare(&nan, &nan, 0.0).unwrap().within());
        for nothing_allowed in [f64::NAN, -1.0] {
            assert_eq!(compare(&b, &a, nothing_allowed).unwrap().outside, 1);
        }
        assert_eq!(compare(&nan, &a, f64::INFINITY).unwrap().outside, 1);
        let short = Tensor::from_f32(&[2], &[1.0, 2.0]).unwrap();
        assert!(compare(&short, &a, 1.0).is_none());
    }

    #[test]
    fn infinities_do_not_hide() {
        let a = Tensor::from_f32(&[2], &[f32::INFINITY, 1.0]).unwrap();
        let b = Tensor::from_f32(&[2], &[5.0, 1.0]).unwrap();
        assert!(!compare(&b, &a, 1e-3).unwrap().within());
        assert!(!compare(&a, &b, 1e-3).unwrap().within());
    }
}
