// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors in files and in GPU memory.
