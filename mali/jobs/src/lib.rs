// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains in a recording of a Mali GPU: [`walk`] checks what they point at; [`link`] joins and splits them;
//! [`moved`] moves code; [`patch`] finds what uploads a word; [`reach`] says which buffers depend on which;
//! [`streams`] is the family with command streams.
#![forbid(unsafe_code)]

pub mod link;
pub mod moved;
pub mod patch;
pub mod reach;
pub mod streams;
pub mod walk;
