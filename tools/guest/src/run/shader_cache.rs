// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiled shaders that runs start with.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    error::{Error, Result},
    folder::Folder,
};

pub(crate) fn provide(folder: &Folder, gpu: &str, host: &Path) -> Result<()> {
    let dir = dir(folder, gpu);
    if !dir.is_dir() {
        return Ok(());
    }
    let status = Command::new("cp")
        .arg("-r")
        .arg(&dir)
        .arg(host.join("cache"))
        .status()
        .map_err(Error::start("cp"))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Failed {
            what: format!("copying {}", dir.display()),
            status,
            log: String::new(),
        })
    }
}

pub(crate) fn dir(folder: &Folder, gpu: &str) -> PathBuf {
    folder.guest.join("cache").join(gpu)
}
