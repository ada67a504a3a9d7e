// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engine and verifier over an external device, for `cargo xtask size`.
#![no_std]
#![expect(improper_ctypes, reason = "nothing on the other side: this is measured, not called")]

use gpureplay_core::{DeviceError, Gpu, Limits, Lines, Options, ReplayError, Session, Tensors, Violation, Workspace};
use mali_drive::verify;
use gpureplay_format::{Access, ParseError, Recording};

unsafe extern "C" {
    safe fn device_read(register: u32) -> u32;
    safe fn device_write(register: u32, value: u32);
    safe fn device_wait(lines: u8, timeout_us: u32) -> u8;
    safe fn device_now() -> u64;
    safe fn device_map(va: u64, pages: u32, access: u8) -> i32;
    safe fn device_activate() -> i32;
    safe fn device_release();
    safe fn device_store(va: u64, bytes: *const u8, length: usize) -> i32;
    safe fn device_load(va: u64, bytes: *mut u8, length: usize) -> i32;
    safe fn device_fill(va: u64, length: u64, byte: u8) -> i32;
    /// Keeps everything that a parser finds.
    safe fn device_has(recording: &Recording<'_>);
    safe fn size_must_not_panic() -> !;
}

/// Defined nowhere: a panic does not link.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    size_must_not_panic()
}

struct Device;

fn result(code: i32) -> Result<(), DeviceError> {
    if code == 0 { Ok(()) } else { Err(DeviceError::Refused(code)) }
}

impl Gpu for Device {
    fn read32(&mut self, register: u32) -> u32 {
        device_read(register)
    }
    fn write32(&mut self, register: u32, value: u32) {
        device_write(register, value);
    }
    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        Lines(device_wait(lines.0, timeout_us))
    }
    fn now_us(&mut self) -> u64 {
        device_now()
    }
    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        result(device_map(va, pages, access.0))
    }
    fn activate(&mut self) -> Result<u8, DeviceError> {
        result(device_activate()).map(|()| 0)
    }
    fn reset(&mut self) -> Result<(), DeviceError> {
        mali_drive::reset(self)
    }
    fn release(&mut self) {
        device_release();
    }
    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        result(device_store(va, bytes.as_ptr(), bytes.len()))
    }
    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        result(device_load(va, bytes.as_mut_ptr(), bytes.len()))
    }
    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        result(device_fill(va, length, byte))
    }
}

struct Outside;

unsafe extern "C" {
    fn tensor_input(tensor: u32, length: &mut usize) -> *const u8;
    fn tensor_output(tensor: u32, length: &mut usize) -> *mut u8;
}

impl Tensors for Outside {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        let mut length = 0;
        // SAFETY: the outside returns null or `length` bytes that live as long as the program.
        unsafe {
            let bytes = tensor_input(tensor, &mut length);
            (!bytes.is_null()).then(|| core::slice::from_raw_parts(bytes, length))
        }
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        let mut length = 0;
        // SAFETY: the outside returns null or `length` bytes that nobody else uses during the call.
        unsafe {
            let bytes = tensor_output(tensor, &mut length);
            (!bytes.is_null()).then(|| core::slice::from_raw_parts_mut(bytes, length))
        }
    }
}

/// What a caller learns.
pub struct Report {
    /// Why the file is damaged.
    pub damaged: Option<ParseError>,
    /// The broken rule.
    pub refused: Option<Violation>,
    /// Of the last step.
    pub replay: Result<(), ReplayError>,
}

/// Checks, opens, runs, finishes. Feature `parser` ends after the first step, `verifier` after the second.
///
/// # Safety
/// `bytes` points at `length` bytes, `workspace` at exclusive memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn measured(
    bytes: *const u8,
    length: usize,
    workspace: &mut Workspace,
    runs: u32,
    report: &mut Report,
) {
    // SAFETY: as the caller promises.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, length) };
    let recording = match Recording::parse(bytes) {
        Ok(recording) => recording,
        Err(error) => return report.damaged = Some(error),
    };
    if cfg!(feature = "parser") {
        return device_has(&recording);
    }
    let verified = match verify(&recording, &Limits::DEFAULT) {
        Ok(verified) => verified,
        Err(violation) => return report.refused = Some(violation),
    };
    if cfg!(feature = "verifier") {
        return device_has(verified.recording());
    }
    let mut session = Session::new(Device, verified, workspace, Options::default());
    for _ in 0..runs {
        report.replay = session.run(&mut Outside);
        if report.replay.is_err() {
            return;
        }
    }
    report.replay = session.close();
}
