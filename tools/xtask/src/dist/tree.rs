// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree of files for a Debian package.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use gpureplay_task::run;

use super::{
    Source,
    library::{Placed, write_file},
};
use crate::{
    error::{Error, Result},
    files,
};

pub(super) struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    pub(super) fn new() -> Result<Self> {
        let folder = files::temporary()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
            .map_err(Error::io("change", folder.path()))?;
        Ok(Self { folder })
    }

    pub(super) fn put(&self, path: &str, contents: impl AsRef<[u8]>, mode: u32) -> Result<()> {
        write_file(&self.path().join(path), contents.as_ref(), mode)
    }

    pub(super) fn place(&self, placed: &Placed) -> Result<()> {
        placed.write_below(self.path()).map(drop)
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// With the commit's time: builds are reproducible.
    pub(super) fn pack(self, source: &Source, to: PathBuf) -> Result<PathBuf> {
        // The user's mask set the modes of these directories.
        run(
            "changing modes",
            Command::new("find")
                .arg(self.folder.path())
                .args(["-type", "d", "-exec", "chmod", "755", "{}", "+"]),
        )?;
        let mut pack = Command::new("dpkg-deb");
        pack.args(["--root-owner-group", "-Zxz", "--build"]);
        pack.arg(self.folder.path()).arg(&to);
        pack.env("SOURCE_DATE_EPOCH", &source.time);
        pack.stdout(std::process::Stdio::null());
        run("packing with dpkg-deb", &mut pack)?;
        Ok(to)
    }
}
