// SPDX-License-Identifier: MIT OR Apache-2.0
//! How these tests start the command.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use gpureplay_kit::command::{Ended, Folder, Says};
use gpureplay_kit::command::{Words, run_in};
pub(crate) use gpureplay_kit::{repository, shipped};
use serde_json::Value;

pub(crate) const GPUREPLAY: &str = env!("CARGO_BIN_EXE_gpureplay");

pub(crate) fn command() -> Command {
    Command::new(GPUREPLAY)
}

/// In this directory a recording's name is a word for the command line.
pub(crate) fn recordings() -> PathBuf {
    repository().join("recordings")
}

pub(crate) fn ran_in(folder: &Path, words: &(impl Words + ?Sized)) -> (i32, String, String) {
    run_in(folder, GPUREPLAY, words)
}

pub(crate) fn ran(words: &(impl Words + ?Sized)) -> (i32, String, String) {
    ran_in(&repository(), words)
}

pub(crate) fn said(words: &(impl Words + ?Sized)) -> (i32, String) {
    let (code, out, err) = ran_in(&recordings(), words);
    (code, out + &err)
}

#[track_caller]
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn well(words: &(impl Words + ?Sized)) -> String {
    said(words).gave(0)
}
