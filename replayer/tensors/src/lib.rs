// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors in files and in GPU memory.
//!
//! A [`Tensor`] is a shape, an element type and row-major bytes, in `.npy` files ([`read_npy`], [`write_npy`]). A
//! [`Layout`] maps it to the runtime's.

#![forbid(unsafe_code)]

mod compare;
mod dtype;
mod layout;
mod npy;
mod stated;
mod tag;
mod tensor;

pub use compare::{Difference, compare};
pub use dtype::{Element, ElementType, f16_to_f32, f32_to_f16};
pub use layout::{Layout, LayoutError, Run, simplify};
pub use npy::{
    MAX_NPY_BYTES, MAX_NPY_PREFIX, NpyError, encode_npy, parse_npy, read_npy, read_npy_if,
    write_npy,
};
pub use stated::{Form, Names, Stated, StatedError};
pub use tag::{Distinctiveness, distinctiveness, tag_tensor};
pub use tensor::{MAX_RANK, Tensor, TensorError};
