// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings for other GPUs: what each rule refuses, and what becomes of the shipped ones.
#![allow(clippy::unwrap_used)]

mod mutants;
mod shipped;
