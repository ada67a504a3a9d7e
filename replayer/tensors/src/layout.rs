// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors in GPU memory.
//!
//! Pieces are loop nests from elements to addresses: padded rows, permuted dimensions, tiles (a dimension split
//! into two axes).

use gpureplay_format::{Axis, MAX_AXES, Piece};

use crate::{Element, ElementType, Tensor};

/// Maps a tensor's elements to GPU addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The same as the tensor's.
    pub dtype: ElementType,
    /// Together they visit each element at least once.
    pub pieces: Vec<Piece>,
}

/// Why a layout does not describe a tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// In a piece.
    #[error("piece {piece} has {axes} axes, at most {MAX_AXES} are supported")]
    TooManyAxes {
        /// Index.
        piece: usize,
        /// Found.
        axes: usize,
    },
    /// Axis of extent zero.
    #[error("piece {piece} has an axis without extent")]
    EmptyAxis {
        /// Index.
        piece: usize,
    },
    /// The tensor lacks a visited element.
    #[error("piece {piece} visits element {element} of a tensor of {elements}")]
    Element {
        /// Index.
        piece: usize,
        /// Highest visited.
        element: u64,
        /// Elements of the tensor.
        elements: u64,
    },
    /// An element is in no piece.
    #[error("no piece visits element {element}")]
    NotCovered {
        /// Row-major index.
        element: u64,
    },
    /// Address above 2^64.
    #[error("piece {piece} leaves the address space")]
    AddressRange {
        /// Index.
        piece: usize,
    },
    /// Tensor and layout differ.
    #[error("the elements are {}, the layout is of {}", found.name(), expected.name())]
    Type {
        /// Of the layout.
        expected: ElementType,
        /// Of the tensor.
        found: ElementType,
    },
}

/// Elements adjacent in tensor and GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Row-major index of the first element.
    pub element: u64,
    /// GPU address of the first element.
    pub address: u64,
    /// How many.
    pub count: u64,
}

impl Layout {
    /// Row-major, without padding.
    pub fn packed(va: u64, dtype: ElementType, elements: u32) -> Layout {
        Layout {
            dtype,
            pieces: vec![Piece::dense(elements, dtype, va)],
        }
    }

    /// Pieces visit each element and stay in the address space.
    pub fn check(&self, elements: u64) -> Result<(), LayoutError> {
        let mut covered = vec![false; usize::try_from(elements).unwrap_or(0)];
        for (index, piece) in self.pieces.iter().enumerate() {
            if piece.axes.len() > MAX_AXES {
                return Err(LayoutError::TooManyAxes {
                    piece: index,
                    axes: piece.axes.len(),
                });
            }
            if piece.axes.iter().any(|a| a.extent == 0) {
                return Err(LayoutError::EmptyAxis { piece: index });
            }
            let (highest, _) =
                reach(piece, self.dtype).ok_or(LayoutError::AddressRange { piece: index })?;
            if highest >= elements {
                return Err(LayoutError::Element {
                    piece: index,
                    element: highest,
                    elements,
                });
            }
            for run in runs(piece, self.dtype) {
                let first = run.element as usize;
                covered[first..first + run.count as usize].fill(true);
            }
        }
        match covered.iter().position(|c| !c) {
            Some(element) => Err(LayoutError::NotCovered {
                element: element as u64,
            }),
            None => Ok(()),
        }
    }

    /// Lowest address and the one past the highest; `None` if too large.
    pub fn address_range(&self) -> Option<(u64, u64)> {
        let mut range: Option<(u64, u64)> = None;
        for piece in &self.pieces {
            let (_, end) = reach(piece, self.dtype)?;
            let (low, high) = range.unwrap_or((piece.va, end));
            range = Some((low.min(piece.va), high.max(end)));
        }
        range
    }

    /// Of all pieces. Call [`Layout::check`] first.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.pieces.iter().flat_map(|piece| runs(piece, self.dtype))
    }

    /// Calls `write(address, bytes)` for each [`Run`].
    pub fn scatter<E: From<LayoutError>>(
        &self,
        tensor: &Tensor,
        mut write: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_tensor(tensor)?;
        let size = self.dtype.bytes();
        for run in self.runs() {
            let from = run.element as usize * size;
            write(
                run.address,
                &tensor.bytes()[from..from + run.count as usize * size],
            )?;
        }
        Ok(())
    }

    /// Calls `read(address, bytes)` for each [`Run`].
    pub fn gather<E: From<LayoutError>>(
        &self,
        tensor: &mut Tensor,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_tensor(tensor)?;
        let size = self.dtype.bytes();
        for run in self.runs() {
            let from = run.element as usize * size;
            read(
                run.address,
                &mut tensor.bytes_mut()[from..from + run.count as usize * size],
            )?;
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
}

/// Highest element, and address after the highest byte.
fn reach(piece: &Piece, dtype: ElementType) -> Option<(u64, u64)> {
    let (mut element, mut address) = (u64::from(piece.element), piece.va);
    for axis in &piece.axes {
        let steps = u64::from(axis.extent.saturating_sub(1));
        element = element.checked_add(steps * u64::from(axis.element_stride))?;
        address = address.checked_add(steps * u64::from(axis.byte_stride))?;
    }
    Some((element, address.checked_add(u64::from(dtype.size()))?))
}

/// Merges axes that step alike, drops those of extent 1.
pub fn simplify(axes: &[Axis]) -> Vec<Axis> {
    let mut out: Vec<Axis> = Vec::new();
    for axis in axes.iter().filter(|a| a.extent != 1) {
        if let Some(last) = out.last_mut() {
            let joins = axis.element_stride.checked_mul(axis.extent) == Some(last.element_stride)
                && axis.byte_stride.checked_mul(axis.extent) == Some(last.byte_stride);
            if let (true, Some(extent)) = (joins, last.extent.checked_mul(axis.extent)) {
                *last = Axis { extent, ..*axis };
                continue;
            }
        }
        out.push(*axis);
    }
    out
}

fn runs(piece: &Piece, dtype: ElementType) -> Runs {
    let mut axes = simplify(&piece.axes);
    let inner = axes.last().copied();
    let count = match inner {
        Some(axis) if axis.element_stride == 1 && axis.byte_stride == dtype.size() => {
            axes.pop();
            axis.extent
        }
        _ => 1,
    };
    Runs {
        index: vec![0; axes.len()],
        done: piece.axes.iter().any(|a| a.extent == 0),
        axes,
        element: piece.element.into(),
        address: piece.va,
        count: count.into(),
    }
}

#[derive(Clone, Debug)]
struct Runs {
    axes: Vec<Axis>,
    index: Vec<u32>,
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
            let (element, byte) = (u64::from(axis.element_stride), u64::from(axis.byte_stride));
            *index += 1;
            if *index < axis.extent {
                self.element = self.element.wrapping_add(element);
                self.address = self.address.wrapping_add(byte);
                self.done = false;
                break;
            }
            *index = 0;
            let back = u64::from(axis.extent - 1);
            self.element = self.element.wrapping_sub(element.wrapping_mul(back));
            self.address = self.address.wrapping_sub(byte.wrapping_mul(back));
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

    fn axis(extent: u32, element_stride: u32, byte_stride: u32) -> Axis {
        Axis {
            extent,
            element_stride,
            byte_stride,
        }
    }

    fn piece(axes: &[Axis]) -> Piece {
        Piece {
            va: 0x2000,
            element: 0,
            axes: axes.to_vec(),
        }
    }

    #[test]
    fn packed_is_one_run() {
        let layout = Layout::packed(0x1000, ElementType::F32, 120);
        let runs: Vec<Run> = layout.runs().collect();
        assert_eq!(
            runs,
            [Run {
                element: 0,
                address: 0x1000,
                count: 120
            }]
        );
        assert_eq!(layout.address_range(), Some((0x1000, 0x1000 + 480)));
        let dims = [axis(4, 30, 120), axis(5, 6, 24), axis(6, 1, 4)];
        assert_eq!(simplify(&dims), [axis(120, 1, 4)]);
    }

    #[test]
    fn padded_transposed_and_tiled_layouts_round_trip() {
        let t = Tensor::from_fn(ElementType::F32, &[4, 6], |i| i as f64).unwrap();
        let padded = vec![axis(4, 6, 32), axis(6, 1, 4)];
        let transposed = vec![axis(6, 1, 16), axis(4, 6, 4)];
        let tiled = vec![
            axis(2, 12, 48),
            axis(3, 2, 16),
            axis(2, 6, 8),
            axis(2, 1, 4),
        ];
        for axes in [padded, transposed, tiled] {
            let layout = Layout {
                dtype: ElementType::F32,
                pieces: vec![piece(&axes)],
            };
            let memory = scatter_to_map(&layout, &t);
            assert_eq!(memory.len(), 96);
            assert_eq!(gather_from_map(&layout, &t, &memory), t);
        }
    }

    #[test]
    fn pieces_may_split_and_repeat_elements() {
        let t = Tensor::from_fn(ElementType::U8, &[5], |i| i as f64).unwrap();
        let half = |element, extent, va| Piece {
            va,
            element,
            axes: vec![axis(extent, 1, 1)],
        };
        let layout = Layout {
            dtype: ElementType::U8,
            pieces: vec![half(0, 3, 0x10), half(3, 2, 0x20), half(0, 5, 0x30)],
        };
        let memory = scatter_to_map(&layout, &t);
        assert_eq!((memory[&0x21], memory[&0x34], memory.len()), (4, 4, 10));
    }

    #[test]
    fn wrong_axes_are_refused() {
        let layout = |axes: &[Axis]| Layout {
            dtype: ElementType::U8,
            pieces: vec![piece(axes)],
        };
        assert!(matches!(
            layout(&[axis(4, 1, 1)]).check(5),
            Err(LayoutError::NotCovered { element: 4 })
        ));
        assert!(matches!(
            layout(&[axis(6, 1, 1)]).check(5),
            Err(LayoutError::Element { element: 5, .. })
        ));
        assert!(layout(&[axis(2, 1, 1), axis(2, 1, 2)]).check(4).is_err());
        assert!(layout(&[axis(0, 1, 1)]).check(0).is_err());
        let high = Piece {
            va: u64::MAX - 2,
            element: 0,
            axes: vec![axis(4, 1, 1)],
        };
        assert!(
            Layout {
                dtype: ElementType::U8,
                pieces: vec![high]
            }
            .check(4)
            .is_err()
        );
        assert!(layout(&[axis(1, 1, 1); 9]).check(1).is_err());
        let t = Tensor::zeros(ElementType::F32, &[1]).unwrap();
        assert!(
            Layout::packed(0, ElementType::U8, 1)
                .scatter(&t, |_, _| Ok::<(), LayoutError>(()))
                .is_err()
        );
    }
}
