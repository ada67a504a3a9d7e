// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Python wheel, packed by `replayer/c/python/wheel.py`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{Machine, Source, VERSION, library::Library};
use gpureplay_task::{Result, output};

/// Its name states the C library that it needs.
pub(super) fn write(
    source: &Source,
    machine: Machine,
    library: &Library,
    packages: &Path,
) -> Result<PathBuf> {
    let (major, minor) = library.needs.glibc;
    let platform = format!("manylinux_{major}_{minor}_{}", machine.name());
    let mut python = Command::new("python3");
    python
        .arg(source.top.join("replayer/c/python/wheel.py"))
        .args([VERSION, &platform])
        .arg(&library.shared)
        .arg(packages)
        .env("SOURCE_DATE_EPOCH", &source.time);
    Ok(PathBuf::from(output(&mut python)?.trim_end()))
}
