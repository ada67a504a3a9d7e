// SPDX-License-Identifier: MIT OR Apache-2.0
//! Record a GPU app once, replay it without the GPU stack.

fn main() {}
