// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page tables: no panic, no hang, no access to unreachable pages.
#![no_main]

#[path = "support/machine.rs"]
mod support;

use gpureplay_memory::{Bus, Ram};
use support::{Format, Watched};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [how, tables @ ..] = bytes else {
        return;
    };
    let format = if how & 1 == 0 {
        Format::Lpae
    } else {
        Format::AArch64
    };
    let mut watched = Watched::new(how >> 2, format);
    if how & 2 == 0 {
        // Bits flipped in table entries, on the first pages: which page, which entry, what.
        for change in tables.chunks_exact(8) {
            let Some(page) = watched.ram.page(Ram::BASE + 4096 * u64::from(change[0] % 8)) else {
                continue;
            };
            let at = 8 * usize::from(change[1]);
            let mut turn = [0; 8];
            turn[..6].copy_from_slice(&change[2..]);
            page.store_u64(at, page.load_u64(at) ^ u64::from_le_bytes(turn));
        }
    } else if let Some(page) = watched.ram.page(Ram::BASE) {
        page.copy_from_slice(0, tables);
    }
    watched.submit_and_run();
});
