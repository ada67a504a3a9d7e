// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with other kernels.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    payload::in_root,
    step::{Fingerprint, logged},
};
use crate::{
    error::{Error, Result},
    files,
    folder::{Folder, GUEST_VARIABLE},
};

/// `old` is the previous release's, `new` that of backports. The initramfs loads panfrost first: the run loads only
/// panthor.
pub(crate) fn other(folder: &Folder, which: &str) -> Result<Folder> {
    let _lock = Folder::lock(&folder.local)?;
    let guest = folder.local.join(format!("kernel-{which}"));
    let release = folder.kernel(which)?;
    let made = fs::read_to_string(guest.join("kernels")).unwrap_or_default();
    let same = format!("{}-arm64", made.trim().trim_start_matches("stock=")) == release;
    if !same || !guest.join("streams").is_dir() {
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

pub(crate) fn sanitized(folder: &Folder) -> Result<Folder> {
    own(folder, "sanitized", None)
}

pub(crate) fn of_source(folder: &Folder, tree: &Path) -> Result<Folder> {
    let text = files::text(tree.join("Makefile"))?;
    let version = version(&text).ok_or_else(|| {
        Error::Usage(format!("--linux {}: no source of a kernel", tree.display()))
    })?;
    own(folder, &format!("linux-{version}"), Some(tree))
}

fn version(makefile: &str) -> Option<String> {
    let value = |name: &str| {
        let mut lines = makefile.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='));
        value.map(str::trim)
    };
    let numbers = [value("VERSION")?, value("PATCHLEVEL")?, value("SUBLEVEL")?];
    Some(numbers.join(".") + value("EXTRAVERSION")?)
}

fn own(folder: &Folder, name: &str, tree: Option<&Path>) -> Result<Folder> {
    let guest = folder.guest.join(name);
    let _lock = Folder::lock(&guest)?;
    let recipe = folder.recipe().join("own-kernel");
    let mut hash = Fingerprint::default();
    for input in ["build", "config", "checks"] {
        hash.file(&recipe.join(input))?;
    }
    for input in ["kernels", "gpu.dtso", "guest-files/initramfs-init"] {
        hash.file(&folder.guest.join(input))?;
    }
    let (stamp, wanted) = (guest.join("stamp"), hash.text());
    if fs::read_to_string(&stamp).unwrap_or_default() != wanted {
        let _ = fs::remove_file(&stamp);
        let mut build = Command::new("bash");
        build
            .arg(recipe.join("build"))
            .arg(name)
            .args(tree)
            .env(GUEST_VARIABLE, &folder.guest)
            .current_dir(&folder.repository);
        let log = guest.join("build.log");
        logged(&mut build, &format!("kernel {name}"), &log)?;
        files::write(&stamp, wanted)?;
    }
    let local = folder.local.join(name);
    files::create_dir(&local)?;
    for name in ["cargo", "cargo-shared"] {
        files::create_dir(folder.local.join(name))?;
        let link = local.join(name);
        if !link.exists() {
            symlink(folder.local.join(name), &link).map_err(Error::io("create", link))?;
        }
    }
    Ok(Folder {
        guest,
        local,
        ..folder.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn a_makefile_tells_its_version() {
        let text = "# SPDX\nVERSION = 6\nPATCHLEVEL = 6\nSUBLEVEL = 30\nEXTRAVERSION = -rc1\n";
        assert_eq!(version(text).as_deref(), Some("6.6.30-rc1"));
        assert_eq!(version("all:\n"), None);
    }
}
