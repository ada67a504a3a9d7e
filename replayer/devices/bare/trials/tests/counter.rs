// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flash counter survives power loss.

use std::cell::RefCell;

#[path = "../../../firmware/src/counter.rs"]
mod counter;

mod machine {
    pub const FLASH: usize = 0x400_0000;
    /// Small, to fill soon.
    pub const FLASH_BLOCK: usize = 0x400;

    pub fn read32(address: usize) -> u32 {
        super::FLASHES.with_borrow(|flash| flash.read(address))
    }

    pub fn write32(address: usize, value: u32) {
        super::FLASHES.with_borrow_mut(|flash| flash.write(address, value));
    }
}

use machine::{FLASH, FLASH_BLOCK};

/// A word of two chips; programming only clears bits.
#[derive(Clone)]
struct Flash {
    words: Vec<u32>,
    programming: bool,
    /// Reads give the chips' state.
    status: bool,
    /// Words before power is lost.
    power: usize,
    /// Bits of the last word that are still cleared.
    partly: u32,
}

thread_local! {
    static FLASHES: RefCell<Flash> = RefCell::new(Flash::erased());
}

impl Flash {
    fn erased() -> Self {
        Self {
            words: vec![u32::MAX; FLASH_BLOCK / 4],
            programming: false,
            status: false,
            power: usize::MAX,
            partly: 0,
        }
    }

    fn read(&self, address: usize) -> u32 {
        match self.status {
            true => 0x0080_0080,
            false => self.words[(address - FLASH) / 4],
        }
    }

    fn write(&mut self, address: usize, value: u32) {
        if self.programming {
            (self.programming, self.status) = (false, true);
            let word = &mut self.words[(address - FLASH) / 4];
            if self.power == 0 {
                *word &= value | !self.partly;
                std::panic::resume_unwind(Box::new("the power is gone"));
            }
            *word &= value;
            self.power -= 1;
            return;
        }
        match value {
            0x00ff_00ff => self.status = false,
            0x0040_0040 => self.programming = true,
            other => panic!("no command: {other:#x}"),
        }
    }
}

fn value() -> Option<u64> {
    counter::read().map(|counter| counter.value)
}

fn raise(to: u64) -> bool {
    counter::read().is_some_and(|counter| counter.raise(to))
}

fn with(flash: &Flash) {
    FLASHES.set(flash.clone());
}

fn now() -> Flash {
    let mut flash = FLASHES.with_borrow(Flash::clone);
    (flash.power, flash.partly) = (usize::MAX, 0);
    (flash.programming, flash.status) = (false, false);
    flash
}

const VALUES: [u64; 8] = [
    1,
    2,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_ffff_ffff,
    0xffff_ffff_0000_0000,
    u64::MAX - 1,
    u64::MAX,
];

#[test]
fn the_counter_only_grows() {
    with(&Flash::erased());
    assert_eq!(value(), Some(0));
    for new in VALUES {
        assert!(raise(new));
        assert_eq!(value(), Some(new));
        assert!(raise(new) && raise(new - 1) && raise(0));
        assert_eq!(value(), Some(new));
    }
}

#[test]
fn power_may_go_at_any_write() {
    for pair in VALUES.windows(2) {
        let &[old, new] = pair else { continue };
        with(&Flash::erased());
        assert!(raise(old));
        let before = now();
        for power in 0..4 {
            for partly in [
                0,
                1,
                0x8000_0000,
                0xffff,
                0xffff_0000,
                0x0f0f_0f0f,
                u32::MAX,
            ] {
                with(&Flash {
                    power,
                    partly,
                    ..before.clone()
                });
                assert!(std::panic::catch_unwind(|| raise(new)).is_err());
                with(&now());
                let after = value();
                let whole = after == Some(old) || after == Some(new);
                assert!(whole, "{old} {new} {power} {partly:#x}: {after:?}");
                assert!(raise(new), "{old} {new} {power} {partly:#x}");
                assert_eq!(value(), Some(new));
            }
        }
    }
}

#[test]
fn a_full_flash_takes_nothing_newer() {
    with(&Flash::erased());
    let records = FLASH_BLOCK as u64 / 16;
    let stored = (1..=records).take_while(|value| raise(*value)).count() as u64;
    assert!(stored >= records - 1, "{stored}");
    assert!(!raise(1 << 40));
    assert_eq!(
        value(),
        None,
        "refused from now on, whatever the counter of a recording is"
    );
}
