// SPDX-License-Identifier: MIT OR Apache-2.0
//! The replayer in Rust firmware, with `board.c`.
#![no_std]

use core::ffi::c_void;
use gpureplay_bare::{Callbacks, Device};
use mali_drive::verify;
use gpureplay_core::{Limits, Options, Session, Tensors, Workspace};
use gpureplay_format::Recording;

unsafe extern "C" {
    safe fn board_read32(context: *mut c_void, offset: u32) -> u32;
    safe fn board_write32(context: *mut c_void, offset: u32, value: u32);
    safe fn board_now_us(context: *mut c_void) -> u64;
}

static mut WORKSPACE: Workspace = Workspace::new();

struct Digit<'a>(&'a [u8], u32, [u8; 40]);

impl Tensors for Digit<'_> {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        (tensor == 0).then_some(self.0)
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        (tensor == self.1).then_some(&mut self.2)
    }
}

fn classify(recording: &[u8], image: &[u8]) -> Option<i32> {
    let recording = Recording::parse(recording).ok()?;
    let verified = verify(&recording, &Limits::DEFAULT).ok()?;
    let callbacks = Callbacks {
        read32: board_read32,
        write32: board_write32,
        now_us: board_now_us,
        ..Callbacks::arena(0x4800_0000, 64 << 20)
    };
    // SAFETY: the arena is RAM that this firmware keeps free; nobody else names the workspace.
    let (device, workspace) = unsafe { (Device::new(callbacks), &mut *(&raw mut WORKSPACE)) };
    let (probabilities, _) = recording.tensor_named("probabilities")?;
    let mut digit = Digit(image, probabilities, [0; 40]);
    let mut session = Session::new(device, verified, workspace, Options::default());
    session.run(&mut digit).ok()?;
    session.close().ok()?;
    let (words, _) = digit.2.as_chunks();
    let bits = words.iter().map(|&word| u32::from_le_bytes(word));
    (0..).zip(bits).max_by_key(|&(_, bits)| bits).map(|it| it.0)
}

/// # Safety
/// `recording` points at `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn digit_of(recording: *const u8, length: usize, image: &[u8; 256]) -> i32 {
    // SAFETY: the caller's promise.
    let recording = unsafe { core::slice::from_raw_parts(recording, length) };
    classify(recording, image).unwrap_or(-1)
}
