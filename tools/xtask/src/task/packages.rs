// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages of `cargo xtask dist`.

use std::path::{Path, PathBuf};

use super::{
    error::{Error, Result},
    files,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A machine's packages.
pub struct Made {
    /// In the requested order.
    pub debs: Vec<PathBuf>,
    /// The Python package.
    pub wheel: PathBuf,
    /// The command as one file.
    pub command: PathBuf,
}

impl Made {
    /// `machine`: `x86_64`, `aarch64`.
    ///
    /// # Errors
    ///
    /// One is missing, or there are two wheels.
    pub fn find(top: &Path, machine: &str, debs: &[&str]) -> Result<Self> {
        let folder = top.join("target/dist/packages");
        let debian = match machine {
            "x86_64" => "amd64",
            _ => "arm64",
        };
        let there = |names: &[String]| {
            let mut paths = names.iter().map(|name| folder.join(name));
            let path = paths.find(|path| path.is_file());
            path.ok_or_else(|| missing(&folder.join(names.join(" or ")), machine))
        };
        let of =
            |name: &&str| there(&[debian, "all"].map(|end| format!("{name}_{VERSION}_{end}.deb")));
        let debs = debs.iter().map(of).collect::<Result<_>>()?;
        let command = there(&[format!("gpureplay-{debian}")])?;
        let begin = format!("gpureplay-{VERSION}-");
        let end = format!("_{machine}.whl");
        let mut wheels = files::entries(&folder)?.into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&begin) && name.ends_with(&end)
        });
        let wheel = wheels
            .next()
            .ok_or_else(|| missing(&folder.join(format!("{begin}...{end}")), machine))?;
        if let Some(second) = wheels.next() {
            return Err(Error::Usage(format!(
                "there are two wheels, {} and {}: remove the old one",
                wheel.display(),
                second.display()
            )));
        }
        Ok(Self {
            debs,
            wheel,
            command,
        })
    }
}

fn missing(path: &Path, machine: &str) -> Error {
    Error::missing(
        path.display().to_string(),
        format!("run `cargo xtask dist --machine {machine}`"),
    )
}
