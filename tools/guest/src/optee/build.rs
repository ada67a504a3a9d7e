// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds TF-A and OP-TEE with our parts.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use gpureplay_sign::PublicKey;

use crate::{
    build::{
        mirror, payload,
        step::{Step, logged},
    },
    error::{Error, Result},
    files,
    firmware::bare,
    folder::Folder,
};

pub(crate) struct Built {
    /// TF-A, OP-TEE and U-Boot for QEMU's `-bios`.
    pub(crate) firmware: PathBuf,
}

/// Fills the payload too. Only `key`'s packs will run.
pub(crate) fn build(folder: &Folder, key: &PublicKey) -> Result<Built> {
    sources(folder)?;
    let _local = Folder::lock(&folder.local)?;
    let _shared = Folder::lock(&folder.guest.join("optee"))?;
    let out = folder.local.join("optee");
    let header = out.join("key");
    files::create_dir(&header)?;
    files::write_if_changed(header.join("gpureplay_key.h"), &key_header(key))?;
    let replayer = bare::for_secure_core(folder)?;
    let trust = bare::for_trusted_application(folder)?;
    let mut command = payload::in_root(folder);
    command
        .args(["bash", "/guest/steps/optee-build.sh"])
        .arg(&folder.repository)
        .arg(&out)
        .arg(&replayer)
        .arg(trust.parent().unwrap_or(Path::new(".")))
        .arg(&header);
    logged(
        &mut command,
        "secure world",
        &folder.local.join("log/optee.log"),
    )?;
    let installed = folder.payload().join("optee");
    let _ = fs::remove_dir_all(&installed);
    files::create_dir(folder.payload())?;
    fs::rename(out.join("payload"), &installed).map_err(Error::io("install", &installed))?;
    files::copy(
        folder.recipe().join("optee/start.sh"),
        installed.join("start.sh"),
    )?;
    Ok(Built {
        firmware: out.join("firmware.bin"),
    })
}

fn sources(folder: &Folder) -> Result<()> {
    let guest = &folder.guest;
    let _lock = Folder::lock(guest)?;
    mirror::write_sources(guest)?;
    let recipe = folder.recipe().join("optee");
    files::copy(recipe.join("sources.sh"), guest.join("steps/optee.sh"))?;
    files::copy(recipe.join("build.sh"), guest.join("steps/optee-build.sh"))?;
    let step = Step {
        name: "optee",
        makes: "sources of the secure world",
        inputs: &["sources.list"],
        after: &["build-root", "kernels"],
        environment: vec![],
    };
    step.run(guest).map(drop)
}

fn key_header(key: &PublicKey) -> String {
    let mut text = String::from(
        "/* The public key (Ed25519) of who may sign what runs. Generated. */\n#include <stdint.h>\n\n\
         static const uint8_t gpureplay_key[32] = {",
    );
    for byte in key.bytes() {
        let _ = write!(text, " {byte:#04x},");
    }
    text + " };\n"
}
