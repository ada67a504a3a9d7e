// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors in files and in GPU memory.
//!
//! A [`Tensor`] is a shape, an element type and the elements' bytes in row-major order. It comes from
//! and goes to `.npy` files ([`read_npy`], [`write_npy`]), and moves between row-major order and the
//! layout a GPU runtime chose (padded rows, permuted axes, tiles) by a [`Layout`]. Tables go to
//! spreadsheets by [`csv`]; [`statistics`] says what repeated measurements say; [`beneath`] keeps to
//! a recording's directory.

#![forbid(unsafe_code)]

pub mod beneath;
mod compare;
pub mod csv;
mod dtype;
mod escape;
mod file;
mod layout;
mod npy;
mod output;
mod stated;
pub mod statistics;
mod tag;
mod tensor;

pub use compare::{Difference, compare};
pub use dtype::{Element, ElementType, f16_to_f32, f32_to_f16};
pub use escape::{Lines, escaped, escaped_lines, shown};
pub use file::{Existing, write_atomic, write_here, write_secret, write_unless, write_whole};
pub use layout::{Layout, LayoutError, Run, simplify};
pub use npy::{
    MAX_NPY_BYTES, MAX_NPY_PREFIX, NpyError, encode_npy, parse_npy, read_npy, read_npy_if,
    write_npy,
};
pub use output::{Output, output, output_was_closed};
pub use stated::{Form, Names, Stated, StatedError};
pub use tag::{Distinctiveness, distinctiveness, tag_tensor};
pub use tensor::{MAX_RANK, Tensor, TensorError};
