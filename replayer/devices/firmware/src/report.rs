// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages on the serial port.

use gpureplay_core::{DeviceError, ErrorKind, NO_ACTION, ReplayError, Rule, Violation};
use gpureplay_format::{ParseError, Section};

use crate::uart::{byte, hex, number, text};

pub fn field(name: &str, value: u64) {
    text(" ");
    text(name);
    text(" ");
    hex(value);
}

/// Names end with zero bytes.
fn listed(names: &str, index: usize) {
    let mut before = index;
    for &character in names.as_bytes() {
        if character == 0 {
            before = before.wrapping_sub(1);
        } else if before == 0 {
            byte(character);
        }
    }
}

pub fn damaged(error: &ParseError) {
    text("REFUSED damaged section ");
    listed(Section::NAMES, error.section as usize);
    text("\n");
}

pub fn refused(violation: &Violation) {
    text("REFUSED rule ");
    listed(Rule::NAMES, violation.rule as usize);
    text(" at ");
    number(violation.index.into());
    text("\n");
}

/// A replay failed; the GPU has been reset.
pub fn failed(error: &ReplayError) {
    text("FAILED ");
    match error.kind {
        ErrorKind::Device(DeviceError::OutOfMemory) => text("not enough memory"),
        ErrorKind::Device(DeviceError::ResetFailed) => text("GPU does not reset"),
        ErrorKind::Device(DeviceError::NotMapped(va)) => field("not mapped", va),
        ErrorKind::Device(_) => text("GPU does not answer"),
        ErrorKind::Identity {
            register,
            expected,
            found,
            ..
        } => {
            text("another GPU:");
            field("register", register.into());
            field("expected", expected.into());
            field("found", found.into());
        }
        ErrorKind::JobFault {
            status,
            tail,
            fault_address,
            ..
        } => {
            text("job fault:");
            field("status", status.into());
            field("job", tail);
            field("address", fault_address);
        }
        ErrorKind::JobTimeout { status, tail, .. } => {
            text("job does not end:");
            field("status", status.into());
            field("job", tail);
        }
        ErrorKind::JobNotDone { header, status } => {
            text("job not done:");
            field("job", header);
            field("status", status.into());
        }
        ErrorKind::MmuFault { status, address } => {
            text("page fault:");
            field("status", status.into());
            field("address", address);
        }
        ErrorKind::GpuFault { status, address } => {
            text("GPU fault:");
            field("status", status.into());
            field("address", address);
        }
        ErrorKind::NoPower {
            register,
            expected,
            found,
        } => {
            text("no power:");
            field("register", register.into());
            field("expected", expected.into());
            field("found", found.into());
        }
        _ => text("tensor or segment"),
    }
    if error.action != NO_ACTION {
        text(", action ");
        number(error.action.into());
    }
    text(", after ");
    number(error.submits.into());
    text(" chains; GPU reset\n");
}
