// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which change is on, in `cargo xtask mutation`'s copy.
//!
//! The C library calls `begin` before `main`.
#![allow(missing_docs, clippy::all)]

static mut ACTIVE: u32 = 0;

#[inline(never)]
pub const fn on(number: u32) -> bool {
    // SAFETY: it is written once, before `main`.
    unsafe { ACTIVE == number }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn(i32, *const *const u8, *const *const u8) = begin;

extern "C" fn begin(_: i32, _: *const *const u8, environment: *const *const u8) {
    const NAME: &[u8] = b"GPUREPLAY_MUTATION=";
    let mut at = 0;
    loop {
        // SAFETY: the array ends with a null pointer, each text with a zero.
        unsafe {
            let text = *environment.add(at);
            if text.is_null() {
                return;
            }
            let mut length = 0;
            while length < NAME.len() && *text.add(length) == NAME[length] {
                length += 1;
            }
            if length == NAME.len() {
                let mut number = 0;
                while *text.add(length) != 0 {
                    number = number * 10 + (*text.add(length) - b'0') as u32;
                    length += 1;
                }
                ACTIVE = number;
            }
        }
        at += 1;
    }
}
