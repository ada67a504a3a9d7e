// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host needs to build the guest.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::error::{Error, Result};

const PROGRAMS: [(&str, &str); 3] = [
    ("mmdebstrap", "mmdebstrap"),
    ("cpio", "cpio"),
    ("setpriv", "util-linux"),
];

const KEYS: (&str, &str) = ("/usr/share/keyrings", "debian-archive-keyring");

pub(super) fn require() -> Result<()> {
    let packages = missing(&env::var_os("PATH").unwrap_or_default(), Path::new(KEYS.0));
    if packages.is_empty() {
        return Ok(());
    }
    Err(Error::missing(
        "what builds the guest",
        format!("run `apt-get install {}` as root", packages.join(" ")),
    ))
}

fn missing(path: &OsStr, keyrings: &Path) -> Vec<&'static str> {
    let folders: Vec<PathBuf> = env::split_paths(path).collect();
    let there = |program: &str| folders.iter().any(|folder| folder.join(program).is_file());
    let mut packages: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| !there(program))
        .map(|(_, package)| *package)
        .collect();
    let keys = ["gpg", "pgp"].map(|ending| keyrings.join(format!("{}.{ending}", KEYS.1)));
    if !keys.iter().any(|file| file.is_file()) {
        packages.push(KEYS.1);
    }
    packages
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn finding_22_all_that_is_missing_is_named_at_once() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = env::join_paths([Path::new("/nonexistent"), folder.path()]).expect("path");
        assert_eq!(
            missing(&path, folder.path()),
            ["mmdebstrap", "cpio", "util-linux", "debian-archive-keyring"]
        );
        for name in ["mmdebstrap", "setpriv", "debian-archive-keyring.gpg"] {
            fs::write(folder.path().join(name), "").expect("file");
        }
        assert_eq!(missing(&path, folder.path()), ["cpio"]);
    }
}
