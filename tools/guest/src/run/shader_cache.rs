// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiled shaders that runs start with.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use gpureplay_task::run;

use crate::{error::Result, folder::Folder};

pub(crate) fn provide(folder: &Folder, gpu: &str, host: &Path) -> Result<()> {
    let dir = dir(folder, gpu);
    if !dir.is_dir() {
        return Ok(());
    }
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(&dir).arg(host.join("cache"));
    run(&format!("copying {}", dir.display()), &mut copy)
}

pub(crate) fn dir(folder: &Folder, gpu: &str) -> PathBuf {
    folder.guest.join("cache").join(gpu)
}
