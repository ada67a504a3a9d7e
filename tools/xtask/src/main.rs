// SPDX-License-Identifier: MIT OR Apache-2.0
//! Project tasks: the guest, checks, figures.

fn main() {}
