// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directories of repository, guest and work tree.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use nix::fcntl::{Flock, FlockArg};

use crate::{
    error::{Error, Result},
    files,
};

pub(crate) const GUEST_VARIABLE: &str = "GPUREPLAY_GUEST";

#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) repository: PathBuf,
    pub(crate) guest: PathBuf,
    pub(crate) local: PathBuf,
}

impl Folder {
    pub(crate) fn find() -> Result<Folder> {
        let repository = match env::var_os("CARGO_MANIFEST_DIR") {
            Some(manifest) => Path::new(&manifest)
                .ancestors()
                .nth(2)
                .map(Path::to_path_buf),
            None => env::current_dir().ok().and_then(|dir| {
                dir.ancestors()
                    .find(|top| top.join("tools/guest/steps").is_dir())
                    .map(Path::to_path_buf)
            }),
        };
        let repository = repository
            .filter(|top| top.join("tools/guest/steps").is_dir())
            .ok_or_else(|| Error::missing("the repository", "run `cargo xtask` inside of it"))?;
        let guest = match env::var_os(GUEST_VARIABLE) {
            Some(path) => PathBuf::from(path),
            None => repository.join(".guest"),
        };
        if !guest.is_absolute() {
            return Err(Error::Usage(format!(
                "{GUEST_VARIABLE}={} must be an absolute path",
                guest.display()
            )));
        }
        let local = repository.join("target/guest");
        Ok(Folder {
            repository,
            guest,
            local,
        })
    }

    pub(crate) fn recipe(&self) -> PathBuf {
        self.repository.join("tools/guest")
    }

    pub(crate) fn payload(&self) -> PathBuf {
        self.local.join("opt")
    }

    pub(crate) fn boot(&self, name: &str) -> PathBuf {
        self.guest.join("boot").join(name)
    }

    pub(crate) fn require_built(&self) -> Result<()> {
        for name in ["Image", "initramfs.gz", "root.ext4"] {
            if !self.boot(name).is_file() {
                return Err(Error::missing(
                    format!("the guest ({})", self.boot(name).display()),
                    "run `cargo xtask guest build` first",
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn stock_kernel(&self) -> Result<String> {
        self.kernel("stock")
    }

    pub(crate) fn stock_source(&self) -> Result<String> {
        let release = self.stock_kernel()?;
        let version: Vec<&str> = release.splitn(3, '.').take(2).collect();
        Ok(format!("/guest/src/linux-source-{}", version.join(".")))
    }

    /// `which`: `old`, `stock` or `new`.
    pub(crate) fn kernel(&self, which: &str) -> Result<String> {
        let path = self.guest.join("kernels");
        let text = files::text(&path)?;
        text.lines()
            .find_map(|line| line.strip_prefix(which)?.strip_prefix('='))
            .map(|version| format!("{version}-arm64"))
            .ok_or_else(|| {
                Error::missing(
                    format!("the line `{which}=` in {}", path.display()),
                    "run `cargo xtask guest build`",
                )
            })
    }

    pub(crate) fn lock(dir: &Path) -> Result<Flock<fs::File>> {
        files::create_dir(dir)?;
        let path = dir.join("lock");
        let file = fs::File::create(&path).map_err(Error::io("create", &path))?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, _)) => file,
        };
        eprintln!("waiting for another build in {}", dir.display());
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| Error::io("lock", &path)(errno.into()))
    }
}

/// Replaces a file whole: a guest may run it.
pub(crate) fn place(from: &Path, to: &Path) -> Result<()> {
    let directory = to.parent().unwrap_or(Path::new("."));
    let copy = tempfile::NamedTempFile::new_in(directory).map_err(Error::io("write", to))?;
    files::copy(from, copy.path())?;
    copy.persist(to)
        .map(drop)
        .map_err(|error| Error::io("write", to)(error.error))
}

pub(crate) fn copy_dir(from: &Path, to: &Path) -> Result<()> {
    files::create_dir(to)?;
    for path in files::entries(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_dir(&path, &target)?;
        } else {
            files::copy(&path, &target)?;
        }
    }
    Ok(())
}
