// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a document's guest blocks in one shell.

use std::{env, fs, process::Command};

use gpureplay_task::page::guest_blocks;

use crate::{
    build::{payload, step::logged},
    error::{Error, Result},
    files,
    folder::Folder,
};

const PAGE: &str = "docs/start.md";
const MADE: &str = "target/your-own-app";

pub(super) fn own_app(folder: &Folder) -> Result<()> {
    let page = folder.repository.join(PAGE);
    let text = files::text(&page)?;
    let made = folder.repository.join(MADE);
    if made.exists() {
        fs::remove_dir_all(&made).map_err(Error::io("remove", &made))?;
    }
    let command = payload::host_command(folder);
    let mut path = command
        .parent()
        .map(|beside| beside.as_os_str().to_owned())
        .unwrap_or_default();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let log = folder.local.join("log/your-own-app.log");
    let mut shell = Command::new("bash");
    shell
        .args(["-euxc", &guest_blocks(&text)])
        .current_dir(&folder.repository)
        .env("PATH", path)
        .env_remove("CARGO_MANIFEST_DIR");
    logged(&mut shell, "the page's commands", &log)?;
    let replayed = made.join("replayed.bin");
    let size = fs::metadata(&replayed)
        .map_err(Error::io("read", &replayed))?
        .len();
    match size {
        16384 => Ok(()),
        size => Err(format!("the replay wrote {size} bytes").into()),
    }
}
