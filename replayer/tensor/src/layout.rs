// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where each element of a tensor lies in GPU memory.
//!
//! A layout is a set of axes, each with an extent, a stride among the tensor's row-major elements
//! and a stride in GPU bytes. Padded rows, permuted dimensions and tiles (a dimension split into two
//! axes) are all of this form.

use crate::{DType, Tensor};

/// The most axes of a layout: a tensor's dimensions, some of them split for tiles.
pub const MAX_AXES: usize = 12;

/// One loop of the copy between a tensor and GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Number of steps, at least 1.
    pub extent: u64,
    /// Step among the tensor's row-major elements.
    pub source_stride: i64,
    /// Step in GPU memory, in bytes.
    pub gpu_stride: i64,
}

/// The mapping from a tensor's elements to GPU addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// GPU virtual address of element 0.
    pub base: u64,
    /// Element type in GPU memory; the same as the tensor's.
    pub dtype: DType,
    /// The axes, outermost first.
    pub axes: Vec<Axis>,
}

/// Why a layout does not describe a tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// More than [`MAX_AXES`] axes.
    #[error("{axes} axes, at most {MAX_AXES} are supported")]
    TooManyAxes {
        /// Number of axes.
        axes: usize,
    },
    /// An axis of extent zero.
    #[error("axis {axis} has no extent")]
    EmptyAxis {
        /// Index of the axis.
        axis: usize,
    },
    /// The axes do not visit each of the tensor's elements exactly once.
    #[error("the axes visit {visited} of {elements} elements, or an element twice")]
    NotACover {
        /// Product of the extents.
        visited: u64,
        /// Elements of the tensor.
        elements: u64,
    },
    /// An address would be below zero or above 2^64.
    #[error("the axes leave the address space")]
    AddressRange,
    /// The tensor's element type is not the layout's.
    #[error("the elements are {found}, the layout is of {expected}")]
    Type {
        /// The layout's type.
        expected: DType,
        /// The tensor's type.
        found: DType,
    },
}

/// Elements that are next to each other both in the tensor and in GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Row-major index of the first element.
    pub element: u64,
    /// GPU virtual address of the first element.
    pub address: u64,
    /// Number of elements.
    pub count: u64,
}

impl Layout {
    /// A row-major layout without padding.
    pub fn packed(base: u64, dtype: DType, shape: &[u64]) -> Layout {
        let mut axes = Vec::new();
        let mut stride = 1i64;
        for extent in shape.iter().rev() {
            axes.push(Axis {
                extent: *extent,
                source_stride: stride,
                gpu_stride: stride.saturating_mul(dtype.size() as i64),
            });
            stride = stride.saturating_mul(i64::try_from(*extent).unwrap_or(i64::MAX));
        }
        axes.reverse();
        Layout { base, dtype, axes }
    }

    /// Number of elements that the axes visit; `None` if it does not fit in 64 bits.
    pub fn elements(&self) -> Option<u64> {
        self.axes
            .iter()
            .try_fold(1u64, |n, a| n.checked_mul(a.extent))
    }

    /// Checks that the axes visit each of `elements` elements once and stay in the address space.
    pub fn check(&self, elements: u64) -> Result<(), LayoutError> {
        if self.axes.len() > MAX_AXES {
            return Err(LayoutError::TooManyAxes {
                axes: self.axes.len(),
            });
        }
        if let Some(axis) = self.axes.iter().position(|a| a.extent == 0) {
            return Err(LayoutError::EmptyAxis { axis });
        }
        let visited = self.elements().unwrap_or(u64::MAX);
        let cover = LayoutError::NotACover { visited, elements };
        if visited != elements {
            return Err(cover);
        }
        // Sorted by source stride, each axis must step over exactly what the smaller ones visit.
        let mut axes: Vec<&Axis> = self.axes.iter().filter(|a| a.extent > 1).collect();
        axes.sort_by_key(|a| a.source_stride);
        let mut expected = 1u64;
        for axis in axes {
            if u64::try_from(axis.source_stride) != Ok(expected) {
                return Err(cover);
            }
            expected *= axis.extent;
        }
        self.address_range().map(|_| ())
    }

    /// The lowest address and the one past the highest that the axes touch.
    pub fn address_range(&self) -> Result<(u64, u64), LayoutError> {
        let (mut low, mut high) = (i128::from(self.base), i128::from(self.base));
        for axis in &self.axes {
            let span = i128::from(axis.gpu_stride) * i128::from(axis.extent.saturating_sub(1));
            if span < 0 {
                low += span;
            } else {
                high += span;
            }
        }
        high += self.dtype.size() as i128;
        match (u64::try_from(low), u64::try_from(high)) {
            (Ok(low), Ok(high)) => Ok((low, high)),
            _ => Err(LayoutError::AddressRange),
        }
    }

    /// The contiguous runs, in the order of the axes. Call [`Layout::check`] first.
    pub fn runs(&self) -> Runs {
        let size = self.dtype.size() as i64;
        // Inner axes that are contiguous on both sides are one run.
        let (mut count, mut outer) = (1u64, self.axes.len());
        while let Some(axis) = outer.checked_sub(1).and_then(|i| self.axes.get(i)) {
            let contiguous = axis.source_stride == count as i64
                && axis.gpu_stride == (count as i64).wrapping_mul(size);
            if axis.extent != 1 && !contiguous {
                break;
            }
            count = count.saturating_mul(axis.extent);
            outer -= 1;
        }
        Runs {
            axes: self.axes[..outer].to_vec(),
            index: vec![0; outer],
            element: 0,
            address: self.base,
            count,
            done: self.axes.iter().any(|a| a.extent == 0),
        }
    }

    /// Copies a tensor's elements to GPU memory: `write(address, bytes)` for each contiguous run.
    pub fn scatter<E: From<LayoutError>>(
        &self,
        tensor: &Tensor,
        mut write: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_tensor(tensor)?;
        let size = self.dtype.size() as u64;
        for run in self.runs() {
            let (from, to) = (run.element * size, (run.element + run.count) * size);
            let bytes = tensor.bytes().get(from as usize..to as usize);
            write(run.address, bytes.ok_or(LayoutError::AddressRange)?)?;
        }
        Ok(())
    }

    /// Copies elements from GPU memory to a tensor: `read(address, bytes)` for each contiguous run.
    pub fn gather<E: From<LayoutError>>(
        &self,
        tensor: &mut Tensor,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_tensor(tensor)?;
        let size = self.dtype.size() as u64;
        for run in self.runs() {
            let (from, to) = (run.element * size, (run.element + run.count) * size);
            let bytes = tensor.bytes_mut().get_mut(from as usize..to as usize);
            read(run.address, bytes.ok_or(LayoutError::AddressRange)?)?;
        }
        Ok(())
    }

    fn check_tensor(&self, tensor: &Tensor) -> Result<(), LayoutError> {
        if tensor.dtype() != self.dtype {
            return Err(LayoutError::Type {
                expected: self.dtype,
                found: tensor.dtype(),
            });
        }
        self.check(tensor.len() as u64)
    }

    /// Merges neighbouring axes that step alike and drops those of extent 1; the mapping stays.
    pub fn simplified(&self) -> Layout {
        let mut axes: Vec<Axis> = Vec::new();
        for axis in self.axes.iter().filter(|a| a.extent != 1) {
            if let Some(last) = axes.last_mut() {
                let steps = i64::try_from(axis.extent).unwrap_or(i64::MAX);
                if axis.source_stride.checked_mul(steps) == Some(last.source_stride)
                    && axis.gpu_stride.checked_mul(steps) == Some(last.gpu_stride)
                {
                    *last = Axis {
                        extent: last.extent.saturating_mul(axis.extent),
                        ..*axis
                    };
                    continue;
                }
            }
            axes.push(*axis);
        }
        Layout {
            base: self.base,
            dtype: self.dtype,
            axes,
        }
    }
}

/// Iterator over a layout's contiguous runs.
#[derive(Clone, Debug)]
pub struct Runs {
    axes: Vec<Axis>,
    index: Vec<u64>,
    element: u64,
    address: u64,
    count: u64,
    done: bool,
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.done {
            return None;
        }
        let run = Run {
            element: self.element,
            address: self.address,
            count: self.count,
        };
        self.done = true;
        for (index, axis) in self.index.iter_mut().zip(&self.axes).rev() {
            *index += 1;
            self.element = self.element.wrapping_add_signed(axis.source_stride);
            self.address = self.address.wrapping_add_signed(axis.gpu_stride);
            if *index < axis.extent {
                self.done = false;
                break;
            }
            let back = axis.extent as i64;
            self.element = self
                .element
                .wrapping_sub(axis.source_stride.wrapping_mul(back) as u64);
            self.address = self
                .address
                .wrapping_sub(axis.gpu_stride.wrapping_mul(back) as u64);
            *index = 0;
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn scatter_to_map(layout: &Layout, t: &Tensor) -> BTreeMap<u64, u8> {
        let mut memory = BTreeMap::new();
        layout
            .scatter(t, |address, bytes| {
                for (i, b) in bytes.iter().enumerate() {
                    assert!(memory.insert(address + i as u64, *b).is_none());
                }
                Ok::<(), LayoutError>(())
            })
            .unwrap();
        memory
    }

    fn gather_from_map(layout: &Layout, like: &Tensor, memory: &BTreeMap<u64, u8>) -> Tensor {
        let mut out = Tensor::zeros(like.dtype(), like.shape()).unwrap();
        layout
            .gather(&mut out, |address, bytes| {
                for (i, b) in bytes.iter_mut().enumerate() {
                    *b = memory[&(address + i as u64)];
                }
                Ok::<(), LayoutError>(())
            })
            .unwrap();
        out
    }

    fn axis(extent: u64, source_stride: i64, gpu_stride: i64) -> Axis {
        Axis {
            extent,
            source_stride,
            gpu_stride,
        }
    }

    #[test]
    fn packed_is_one_run() {
        let layout = Layout::packed(0x1000, DType::F32, &[4, 5, 6]);
        let runs: Vec<Run> = layout.runs().collect();
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].count, 120);
        assert_eq!(layout.address_range(), Ok((0x1000, 0x1000 + 480)));
        assert_eq!(layout.simplified().axes, [axis(120, 1, 4)]);
    }

    #[test]
    fn padded_transposed_and_tiled_layouts_round_trip() {
        let t = Tensor::from_fn(DType::F32, &[4, 6], |i| i as f64).unwrap();
        let padded = vec![axis(4, 6, 32), axis(6, 1, 4)];
        let transposed = vec![axis(6, 1, 16), axis(4, 6, 4)];
        // 2 x 3 tiles of 2 x 2.
        let tiled = vec![
            axis(2, 12, 48),
            axis(3, 2, 16),
            axis(2, 6, 8),
            axis(2, 1, 4),
        ];
        let reversed = vec![axis(4, 6, -24), axis(6, 1, 4)];
        for axes in [padded, transposed, tiled, reversed] {
            let layout = Layout {
                base: 0x2000,
                dtype: DType::F32,
                axes,
            };
            layout.check(24).unwrap();
            let memory = scatter_to_map(&layout, &t);
            assert_eq!(memory.len(), 96);
            assert_eq!(gather_from_map(&layout, &t, &memory), t);
        }
    }

    #[test]
    fn wrong_axes_are_refused() {
        let layout = |axes| Layout {
            base: 0,
            dtype: DType::U8,
            axes,
        };
        assert!(layout(vec![axis(4, 1, 1)]).check(5).is_err());
        assert!(layout(vec![axis(2, 1, 1), axis(2, 1, 2)]).check(4).is_err());
        assert!(layout(vec![axis(0, 1, 1)]).check(0).is_err());
        assert!(layout(vec![axis(2, 1, -1)]).check(2).is_err());
        assert!(
            layout(vec![axis(u64::MAX, 1, i64::MAX)])
                .check(u64::MAX)
                .is_err()
        );
        assert!(layout(vec![axis(1, 1, 1); 13]).check(1).is_err());
        let t = Tensor::zeros(DType::F32, &[1]).unwrap();
        assert!(
            Layout::packed(0, DType::U8, &[1])
                .scatter(&t, |_, _| Ok::<(), LayoutError>(()))
                .is_err()
        );
    }
}
