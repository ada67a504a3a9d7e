// SPDX-License-Identifier: MIT OR Apache-2.0
//! How numbers and launches look.

use std::fmt;
use std::io::{self, Write};

use gpureplay_cuda_launch::recording::{Device, Launch};
use gpureplay_host::Lines;
use serde::Serialize;

use crate::command::failure::{Failure, json};

macro_rules! say {
    ($($part:tt)*) => {
        $crate::command::report::to_output(format_args!($($part)*))?
    };
}

macro_rules! note {
    ($($part:tt)*) => {
        $crate::command::report::to_errors(format_args!($($part)*))
    };
}

pub(crate) use {note, say};

pub(crate) fn to_output(line: fmt::Arguments<'_>) -> Result<(), Failure> {
    let mut out = Lines::new(gpureplay_host::output());
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(Failure::Output)
}

pub(crate) fn say_json(report: &impl Serialize) -> Result<(), Failure> {
    say!("{}", serde_json::to_string(report).map_err(json)?);
    Ok(())
}

pub(crate) fn to_errors(line: fmt::Arguments<'_>) {
    let _ = writeln!(Lines::new(io::stderr().lock()), "gpureplay: {line}");
}

/// 13000 is 13.0.
pub(crate) fn version(driver: i32) -> String {
    format!("{}.{}", driver / 1000, driver % 1000 / 10)
}

pub(crate) fn gpu(device: &Device) -> String {
    let [major, minor] = device.capability;
    format!(
        "{}, sm_{major}{minor}, driver for CUDA {}",
        device.name,
        version(device.driver)
    )
}

pub(crate) fn sizes([x, y, z]: [u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}

pub(crate) fn bytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.2} GB", value / 1e9),
    }
}

pub(crate) fn line(number: u32, launch: &Launch) -> String {
    format!(
        "{number:>5}  {:<18} {:<12} {:>5} regions {:>10}  {} changed  {}",
        sizes(launch.grid),
        sizes(launch.block),
        launch.pieces().count(),
        bytes(launch.bytes()),
        launch.changed(),
        launch.kernel
    )
}
