// SPDX-License-Identifier: MIT OR Apache-2.0
//! OpenCL's compiled shaders, per GPU: a cold start takes 10 s.

use std::{fs, time::Duration};

use crate::{
    error::{Error, Result},
    files,
    folder::Folder,
    run::session::{self, End, Options},
    run::shader_cache::dir,
};

const FILL: &str = "clinfo > clinfo.txt && grep -q 'Device Type.*GPU' clinfo.txt && cp -a /tmp/cache/. /share/cache/";

pub(crate) fn fill(folder: &Folder, gpu: &str) -> Result<()> {
    let dir = dir(folder, gpu);
    let stamp = dir.join("made-for");
    let image = fs::read(folder.guest.join("stamps/userland")).unwrap_or_default();
    if fs::read(&stamp).is_ok_and(|made| made == image) {
        return Ok(());
    }
    let temporary = tempfile::tempdir_in(&folder.guest)
        .map_err(Error::io("create a directory in", &folder.guest))?;
    files::create_dir(temporary.path().join("cache"))?;
    let options = Options {
        gpu: gpu.to_owned(),
        share: Some(temporary.path().to_path_buf()),
        timeout: Duration::from_secs(180),
        warm: false,
        ..Options::default()
    };
    let outcome = session::run(
        folder,
        &options,
        Some(&["sh", "-c", FILL].map(String::from)),
    )?;
    if outcome.end != End::Exit(0) {
        eprintln!(
            "warning: the shader cache for {gpu} could not be filled ({:?}); logs: {}",
            outcome.end,
            outcome.logs.display()
        );
        return Ok(());
    }
    let made = temporary.path().join("cache");
    fs::write(made.join("made-for"), image).map_err(Error::io("write", &stamp))?;
    files::create_dir(folder.guest.join("cache"))?;
    let _ = fs::remove_dir_all(&dir);
    match fs::rename(&made, &dir) {
        // Another work tree may have been quicker.
        Err(_) if dir.is_dir() => Ok(()),
        result => result.map_err(Error::io("create", &dir)),
    }
}
