// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns of the same work, as regions.

use std::ffi::c_void;

use gpureplay_cuda_launch::abi::Status;

use super::{PTX, Program, floats};

const COUNT: usize = 256;
const LARGE: usize = 64 << 10;
pub(crate) const TURNS: usize = 5;

pub(crate) fn input(turn: usize) -> Vec<u8> {
    floats((0..COUNT).map(|index| (turn * 1000 + index + 1) as f32))
}

/// Incompressible.
pub(crate) fn weights(number: usize) -> Vec<u8> {
    let mut state = number as u32 + 1;
    floats((0..COUNT).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 1000.0
    }))
}

impl Program {
    fn scaled(&self, p: u64, factor: f32) {
        self.scale(p, factor, COUNT as u32);
    }

    fn copied(&self, to: u64, from: u64) {
        call!(self.driver, cuMemcpyDtoDAsync_v2(to => u64, from => u64, COUNT * 4 => usize, 0 => u64));
    }

    pub(crate) fn turns(&self, what: &str) {
        let (what, profiled) = match what.split_once(' ') {
            Some((what, _)) => (what, false),
            None => (what, true),
        };
        let size = COUNT * 4;
        let input_memory = self.numbers(COUNT);
        let cache = self.memory(&vec![0; size * TURNS]);
        let state = self.numbers(COUNT);
        let scratch = match what {
            "large" | "large-same" => {
                let words = (0..LARGE as u32 / 2).map(|index| index.wrapping_mul(2_654_435_761));
                self.memory(&words.flat_map(u32::to_le_bytes).collect::<Vec<_>>())
            }
            _ => 0,
        };
        let held = [vec![0x5a; 512], weights(0), vec![0; 256], weights(1)].concat();
        let held = self.memory(&held);
        let module = self.loaded(&format!(
            "{PTX}.visible .entry more(.param .u64 p) {{ ret; }}\n"
        ));
        let pinned = match what {
            "pinned" => self.pinned(size),
            _ => 0,
        };
        for turn in 0..TURNS {
            if what == "outside" || (what == "late" && turn == 1) {
                self.write(state, &input(turn * turn));
            }
            let x = input(if what.ends_with("same") { 0 } else { turn });
            let size = match what {
                "sizes" if turn % 2 == 1 => size / 2,
                _ => size,
            };
            if profiled {
                call!(self.driver, cuProfilerStart());
            }
            if what != "alone" {
                self.write(input_memory, &x[..size]);
            }
            let slot = cache + (turn * size) as u64;
            let result = match what {
                "alone" => {
                    self.scaled(state, 2.0);
                    self.bytes(state, size)
                }
                // The number is used twice; another one is never read.
                "number" => {
                    self.scaled(input_memory, turn as f32 + 2.0);
                    self.one("idle", turn as u64 * 77 + 5);
                    self.scaled(state, turn as f32 + 2.0);
                    self.copied(cache, state);
                    self.bytes(input_memory, size)
                }
                "padding" => {
                    self.scaled(input_memory, 2.0);
                    self.one("idle", turn as u64 * 77 + 5);
                    self.bytes(input_memory, size)
                }
                // Each turn appends; all of it is the result.
                "slot" => {
                    self.copied(slot, input_memory);
                    self.scaled(slot, 2.0);
                    self.bytes(cache, size * TURNS)
                }
                "swap" => {
                    let scratch = cache + (turn % 2 * size) as u64;
                    self.copied(scratch, input_memory);
                    self.scaled(scratch, 3.0);
                    self.bytes(scratch, size)
                }
                "state" | "outside" | "late" => {
                    self.scaled(state, 2.0);
                    self.scaled(input_memory, 3.0);
                    self.bytes(state, size)
                }
                "image" => {
                    let module = if turn == 0 { self.module } else { module };
                    Self::with(module).scaled(input_memory, 2.0);
                    self.bytes(input_memory, size)
                }
                // Copies to pinned memory do not wait; the fourth turn differs.
                "pinned" => {
                    for _ in 0..=turn / 3 % 2 {
                        self.scaled(input_memory, 2.0);
                    }
                    call!(self.driver, cuMemcpyDtoHAsync_v2(pinned as *mut c_void => *mut c_void, input_memory => u64, size => usize, 0 => u64));
                    call!(self.driver, cuStreamSynchronize(0 => u64));
                    Vec::new()
                }
                "constant" => {
                    self.write(state, &input(9));
                    self.scaled(input_memory, 2.0);
                    self.copied(cache, state);
                    self.bytes(input_memory, size)
                }
                "large" | "large-same" => {
                    let step = if what == "large" { 7919 } else { 0 };
                    let large = (0..LARGE / 4).map(|index| (turn * step + index) as u32);
                    let large: Vec<u8> = large.flat_map(u32::to_le_bytes).collect();
                    self.write(scratch, &large);
                    call!(self.driver, cuMemcpyDtoDAsync_v2(scratch + LARGE as u64 => u64, scratch => u64, LARGE => usize, 0 => u64));
                    self.scaled(state, 2.0);
                    self.scaled(input_memory, 3.0);
                    self.bytes(scratch + LARGE as u64, size);
                    self.bytes(state, size)
                }
                "weights" => {
                    self.copied(cache, held + 512 + size as u64 + 256);
                    self.scaled(cache, 3.0);
                    self.copied(cache + size as u64, held + 512);
                    self.scaled(input_memory, 2.0);
                    let first = self.bytes(input_memory, size);
                    self.bytes(cache, size);
                    first
                }
                _ => {
                    self.scaled(input_memory, 2.0);
                    self.bytes(input_memory, size)
                }
            };
            if profiled {
                call!(self.driver, cuProfilerStop());
            }
            if let Ok(folder) = std::env::var("PLUMBING_ANSWERS") {
                std::fs::write(format!("{folder}/{turn}"), &result).expect("written");
            }
        }
        println!("answer {TURNS}");
    }
}
