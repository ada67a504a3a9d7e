// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors as the encoder takes them.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use zerocopy::little_endian::{U32, U64};

use super::{Builder, EncodeError, TensorId};
use crate::codes::{ElementType, TensorKind};
use crate::layout::{AxisEntry, PieceEntry, TENSOR_EXTERNAL, TensorEntry};
use crate::view::Recording;
use crate::{MAX_AXES, MAX_RANK};

/// A named array and its places in GPU memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Unique; printable ASCII without spaces.
    pub name: String,
    /// Role.
    pub kind: TensorKind,
    /// Type of the elements.
    pub element: ElementType,
    /// Slowest dimension first (C order).
    pub shape: Vec<u32>,
    /// May overlap: a tensor that the app copies is written to all its places.
    pub pieces: Vec<Piece>,
    /// Without recorded value: bind it before the first run.
    pub external: bool,
}

/// Loop nest, see [`crate::layout::PieceEntry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Address of the first element.
    pub va: u64,
    /// First element's index in C order.
    pub element: u32,
    /// Loops, slowest first.
    pub axes: Vec<Axis>,
}

/// A piece's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Steps.
    pub extent: u32,
    /// Elements per step.
    pub element_stride: u32,
    /// Bytes of GPU memory per step.
    pub byte_stride: u32,
}

impl Piece {
    /// Piece of a recording.
    pub fn of(view: &Recording<'_>, entry: &PieceEntry) -> Self {
        let axes = view.axes(entry).unwrap_or_default().iter();
        let axes = axes.map(|axis| Axis {
            extent: axis.extent.get(),
            element_stride: axis.element_stride.get(),
            byte_stride: axis.byte_stride.get(),
        });
        Self {
            va: entry.va.get(),
            element: entry.element.get(),
            axes: axes.collect(),
        }
    }

    /// Dense array in C order.
    pub fn dense(elements: u32, element: ElementType, va: u64) -> Self {
        let axis = Axis {
            extent: elements,
            element_stride: 1,
            byte_stride: element.size(),
        };
        Self {
            va,
            element: 0,
            axes: vec![axis],
        }
    }

    /// Strides in bytes (padded rows, permuted dimensions).
    pub fn strided(shape: &[u32], byte_strides: &[u32], va: u64) -> Self {
        let mut element_stride = 1u32;
        let mut axes: Vec<Axis> = shape
            .iter()
            .zip(byte_strides)
            .rev()
            .map(|(&extent, &byte_stride)| {
                let axis = Axis {
                    extent,
                    element_stride,
                    byte_stride,
                };
                element_stride = element_stride.saturating_mul(extent);
                axis
            })
            .collect();
        axes.reverse();
        Self {
            va,
            element: 0,
            axes,
        }
    }
}

impl Tensor {
    /// Dense tensor in C order.
    pub fn dense(
        name: &str,
        kind: TensorKind,
        element: ElementType,
        shape: &[u32],
        va: u64,
    ) -> Self {
        let elements = shape
            .iter()
            .fold(1u32, |product, &extent| product.saturating_mul(extent));
        Self {
            name: name.into(),
            kind,
            element,
            shape: shape.to_vec(),
            pieces: vec![Piece::dense(elements, element, va)],
            external: false,
        }
    }
}

impl Builder {
    /// Adds a tensor for [`Builder::bind_input`] and [`Builder::bind_output`].
    pub fn tensor(&mut self, tensor: Tensor) -> TensorId {
        let id = TensorId(self.tensors.len() as u32);
        let sound = tensor.shape.len() <= MAX_RANK
            && !tensor.pieces.is_empty()
            && tensor
                .pieces
                .iter()
                .all(|piece| piece.axes.len() <= MAX_AXES);
        if !sound {
            self.fail(EncodeError::Shape(tensor.name));
            return id;
        }
        if !self.names.insert(tensor.name.clone()) {
            self.fail(EncodeError::NameTwice(tensor.name.clone()));
        }
        let mut shape = [U32::ZERO; MAX_RANK];
        for (entry, &extent) in shape.iter_mut().zip(&tensor.shape) {
            *entry = U32::new(extent);
        }
        let flags = if tensor.external { TENSOR_EXTERNAL } else { 0 };
        let entry = TensorEntry {
            name: U32::new(self.intern(&tensor.name)),
            kind: tensor.kind.code(),
            element: tensor.element.code(),
            rank: tensor.shape.len() as u8,
            flags,
            shape,
            first_piece: U32::new(self.pieces.len() as u32),
            pieces: U32::new(tensor.pieces.len() as u32),
        };
        self.tensors.push(entry);
        for piece in tensor.pieces {
            self.pieces.push(PieceEntry {
                va: U64::new(piece.va),
                element: U32::new(piece.element),
                first_axis: U32::new(self.axes.len() as u32),
                axes: U32::new(piece.axes.len() as u32),
            });
            self.axes.extend(piece.axes.iter().map(|axis| AxisEntry {
                extent: U32::new(axis.extent),
                element_stride: U32::new(axis.element_stride),
                byte_stride: U32::new(axis.byte_stride),
            }));
        }
        id
    }
}
