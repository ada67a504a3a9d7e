// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains in a recording of a Mali GPU: [`walk`] follows them without running them and checks what they point at; [`link`] makes
//! one chain of several, and several of one; [`moved`] moves code, [`patch`] finds what uploads a word; [`reach`] says which buffers can hold something of which others;
//! [`streams`] is the family of GPUs that take command streams instead of chains.
#![forbid(unsafe_code)]

pub mod link;
pub mod moved;
pub mod patch;
pub mod reach;
pub mod streams;
pub mod walk;
