// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest with another of Debian's kernels.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use super::{payload::in_root, step::logged};
use crate::{
    error::{Error, Result},
    folder::Folder,
};

/// The guest with the kernel of the release before (`old`) or of backports (`new`), made once for a work tree. Panfrost is loaded before a run begins:
/// the run is to load no driver.
pub(crate) fn other(folder: &Folder, which: &str) -> Result<Folder> {
    let _lock = Folder::lock(&folder.local)?;
    let guest = folder.local.join(format!("kernel-{which}"));
    let release = folder.kernel(which)?;
    let made = fs::read_to_string(guest.join("kernels")).unwrap_or_default();
    if format!("{}-arm64", made.trim().trim_start_matches("stock=")) != release {
        let mut make = in_root(folder);
        make.arg("bash")
            .arg(folder.recipe().join("other-kernel.sh"))
            .arg(which)
            .arg(&guest);
        let log = folder.local.join(format!("log/kernel-{which}.log"));
        logged(&mut make, &format!("guest with Linux {release}"), &log)?;
        for name in ["boot/root.ext4", "build-root"] {
            let to: PathBuf = guest.join(name);
            symlink(folder.guest.join(name), &to).map_err(Error::io("create", to))?;
        }
    }
    Ok(Folder {
        guest,
        ..folder.clone()
    })
}
