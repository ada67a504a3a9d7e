// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree: figures, patches, tables of numbers, names in pages.
#![allow(clippy::unwrap_used)]

mod c_files;
mod driver_patch;
mod figures;
mod kselftest;
mod numbers;
mod troubleshooting;
