// SPDX-License-Identifier: MIT OR Apache-2.0
//! C field offsets; `examples/layout.c` prints the header's.

use core::mem::offset_of;

use crate::c::{Error, Tensor};
use crate::callbacks::Callbacks;

const W: usize = size_of::<usize>();
const BUS: usize = (9 * W).next_multiple_of(8);

const _: () = assert!(
    offset_of!(Callbacks, context) == 0
        && offset_of!(Callbacks, read32) == W
        && offset_of!(Callbacks, write32) == 2 * W
        && offset_of!(Callbacks, now_us) == 3 * W
        && offset_of!(Callbacks, wait_interrupt) == 4 * W
        && offset_of!(Callbacks, clean) == 5 * W
        && offset_of!(Callbacks, invalidate) == 6 * W
        && offset_of!(Callbacks, arena) == 7 * W
        && offset_of!(Callbacks, arena_bytes) == 8 * W
        && offset_of!(Callbacks, arena_bus) == BUS
        && offset_of!(Callbacks, aarch64_tables) == BUS + 8
        && offset_of!(Callbacks, cancelled) == BUS + 8 + W
);
const _: () = assert!(
    offset_of!(Tensor, index) == 0
        && offset_of!(Tensor, bytes) == W
        && offset_of!(Tensor, length) == 2 * W
);
const _: () = assert!(
    offset_of!(Error, status) == 0
        && offset_of!(Error, code) == 4
        && offset_of!(Error, index) == 8
        && offset_of!(Error, found) == 12
        && offset_of!(Error, value) == 16
);
