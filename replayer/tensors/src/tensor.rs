// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tensor in memory.

use crate::{Element, ElementType};

/// Dimensions of a tensor.
pub const MAX_RANK: usize = gpureplay_format::MAX_RANK;

/// Row-major (C) order, little-endian, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    dtype: ElementType,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

/// Why a tensor cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// More dimensions than [`MAX_RANK`].
    #[error("{rank} dimensions, at most {MAX_RANK} are supported")]
    Rank {
        /// Given dimensions.
        rank: usize,
    },
    /// The shape's bytes do not fit in memory.
    #[error("shape {shape:?} of {} is too large", dtype.name())]
    TooLarge {
        /// Element type.
        dtype: ElementType,
        /// Given shape.
        shape: Vec<u64>,
    },
    /// Bytes do not fit shape and type.
    #[error("shape {shape:?} of {} needs {expected} bytes, got {found}", dtype.name())]
    Length {
        /// Element type.
        dtype: ElementType,
        /// Given shape.
        shape: Vec<u64>,
        /// Expected bytes.
        expected: usize,
        /// Given bytes.
        found: usize,
    },
}

pub(crate) fn byte_length(dtype: ElementType, shape: &[u64]) -> Result<usize, TensorError> {
    if shape.len() > MAX_RANK {
        return Err(TensorError::Rank { rank: shape.len() });
    }
    // A zero must not hide an overflow.
    let product = |s: &[u64]| {
        s.iter().try_fold(dtype.bytes() as u64, |n, d| {
            n.checked_mul((*d).max(1)).filter(|n| *n <= i64::MAX as u64)
        })
    };
    let Some(bytes) = product(shape) else {
        return Err(TensorError::TooLarge {
            dtype,
            shape: shape.to_vec(),
        });
    };
    if shape.contains(&0) {
        return Ok(0);
    }
    usize::try_from(bytes).map_err(|_| TensorError::TooLarge {
        dtype,
        shape: shape.to_vec(),
    })
}

impl Tensor {
    /// Tensor from row-major bytes.
    pub fn new(dtype: ElementType, shape: &[u64], bytes: Vec<u8>) -> Result<Tensor, TensorError> {
        let expected = byte_length(dtype, shape)?;
        if bytes.len() != expected {
            return Err(TensorError::Length {
                dtype,
                shape: shape.to_vec(),
                expected,
                found: bytes.len(),
            });
        }
        Ok(Tensor {
            dtype,
            shape: shape.to_vec(),
            bytes,
        })
    }

    /// Tensor of zeros.
    pub fn zeros(dtype: ElementType, shape: &[u64]) -> Result<Tensor, TensorError> {
        let length = byte_length(dtype, shape)?;
        Tensor::new(dtype, shape, vec![0; length])
    }

    /// Tensor of `float32` elements.
    pub fn from_f32(shape: &[u64], values: &[f32]) -> Result<Tensor, TensorError> {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::new(ElementType::F32, shape, bytes)
    }

    /// Element `i` is `value(i)`, converted to `dtype`.
    pub fn from_fn(
        dtype: ElementType,
        shape: &[u64],
        mut value: impl FnMut(usize) -> f64,
    ) -> Result<Tensor, TensorError> {
        let mut tensor = Tensor::zeros(dtype, shape)?;
        for i in 0..tensor.len() {
            tensor.set_bits(i, dtype.bits(value(i)));
        }
        Ok(tensor)
    }

    /// Element type.
    pub fn dtype(&self) -> ElementType {
        self.dtype
    }

    /// Outermost first; empty for a scalar.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.bytes()
    }

    /// It has no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Row-major, little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Row-major, little-endian bytes to change in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Bytes, without the shape.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Zero-extended; 0 if there is no element `index` (row-major).
    pub fn bits(&self, index: usize) -> u64 {
        let size = self.dtype.bytes();
        let mut word = [0u8; 8];
        if let Some(element) = self.bytes.chunks_exact(size).nth(index) {
            word[..size].copy_from_slice(element);
        }
        u64::from_le_bytes(word)
    }

    /// Does nothing if there is no element `index` (row-major).
    pub fn set_bits(&mut self, index: usize, bits: u64) {
        let size = self.dtype.bytes();
        if let Some(element) = self.bytes.chunks_exact_mut(size).nth(index) {
            element.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
    }

    /// Value of element `index` (row-major).
    pub fn value(&self, index: usize) -> f64 {
        self.dtype.value(self.bits(index))
    }

    /// All values, row-major.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        (0..self.len()).map(|i| self.value(i))
    }

    /// Of the element at row-major `index`.
    pub fn coordinates(&self, mut index: usize) -> Vec<u64> {
        let mut out = vec![0; self.shape.len()];
        for (slot, extent) in out.iter_mut().zip(&self.shape).rev() {
            let extent = (*extent).max(1) as usize;
            *slot = (index % extent) as u64;
            index /= extent;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked() {
        assert!(Tensor::new(ElementType::F32, &[2, 3], vec![0; 24]).is_ok());
        assert!(matches!(
            Tensor::new(ElementType::F32, &[2, 3], vec![0; 23]),
            Err(TensorError::Length { expected: 24, .. })
        ));
        assert!(Tensor::zeros(ElementType::F32, &[u64::MAX, 2]).is_err());
        assert!(Tensor::zeros(ElementType::F32, &[u64::MAX, 0, 3]).is_err());
        assert!(Tensor::zeros(ElementType::F32, &[1; 7]).is_err());
        assert_eq!(Tensor::zeros(ElementType::U8, &[]).map(|t| t.len()), Ok(1));
        assert_eq!(
            Tensor::zeros(ElementType::U8, &[0, 4]).map(|t| t.len()),
            Ok(0)
        );
    }

    #[test]
    fn elements_and_coordinates() {
        let t = Tensor::from_fn(ElementType::I16, &[2, 3], |i| i as f64 - 2.0).unwrap();
        assert_eq!(
            t.values().collect::<Vec<_>>(),
            [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0]
        );
        assert_eq!(t.coordinates(4), [1, 1]);
        assert_eq!(t.bits(0), 0xfffe);
    }
}
