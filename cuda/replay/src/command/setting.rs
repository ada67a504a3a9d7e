// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the library; without a value, none is inherited.

use std::ffi::OsStr;
use std::process::Command;

pub(crate) fn set(command: &mut Command, name: &str, value: Option<impl AsRef<OsStr>>) {
    let name = format!("GPUREPLAY_CUDA_{name}");
    match value {
        Some(value) => command.env(name, value),
        None => command.env_remove(name),
    };
}
