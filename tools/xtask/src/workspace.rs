// SPDX-License-Identifier: MIT OR Apache-2.0
//! All workspaces' crates.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use gpureplay_task::output;

use crate::{
    error::{Error, Result},
    files,
    repository::{git, root},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unsafe {
    Forbidden,
    /// `#![deny(unsafe_code)]`: modules may make an exception.
    Exceptions,
    Allowed,
}

#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) folder: String,
    /// In the source tree; empty for the top one.
    pub(crate) workspace: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// The loosest of library and programs.
    pub(crate) unsafe_code: Unsafe,
    /// Library and all programs.
    pub(crate) no_std: bool,
}

#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) ours: bool,
    pub(crate) tests_only: bool,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    manifest_path: PathBuf,
    dependencies: Vec<Required>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Required {
    name: String,
    kind: Option<String>,
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

pub(crate) fn crates() -> Result<Vec<Crate>> {
    let top = root();
    let mut crates = Vec::new();
    for manifest in manifests()? {
        let path = top.join(&manifest);
        let text = files::text(&path)?;
        if !text.lines().any(|line| line.trim() == "[workspace]") {
            continue;
        }
        let workspace = folder_of(&top, &path);
        let mut command = Command::new("cargo");
        command
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .arg("--manifest-path")
            .arg(&path);
        let metadata: Metadata =
            serde_json::from_str(&output(&mut command)?).map_err(|error| Error::Output {
                program: "cargo metadata",
                line: error.to_string(),
            })?;
        for package in metadata.packages {
            crates.push(read(&top, &workspace, package)?);
        }
    }
    crates.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(crates)
}

fn manifests() -> Result<BTreeSet<String>> {
    let names = git(&[
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        "Cargo.toml",
        "*/Cargo.toml",
    ])?;
    let top = root();
    Ok(names
        .into_iter()
        .filter(|name| top.join(name).is_file())
        .collect())
}

fn read(top: &Path, workspace: &str, package: Package) -> Result<Crate> {
    let mut unsafe_code = Unsafe::Forbidden;
    let mut no_std = true;
    for target in package.targets.iter().filter(|target| target.is_product()) {
        let path = &target.src_path;
        let text = files::text(path)?;
        unsafe_code = unsafe_code.max(rule(&text));
        no_std &= has_attribute(&text, "no_std");
    }
    let mut dependencies: Vec<Dependency> = Vec::new();
    for required in package.dependencies {
        let tests_only = required.kind.as_deref() == Some("dev");
        if required.name == package.name {
            continue;
        }
        match dependencies
            .iter_mut()
            .find(|known| known.name == required.name)
        {
            Some(known) => known.tests_only &= tests_only,
            None => dependencies.push(Dependency {
                name: required.name,
                ours: required.path.is_some(),
                tests_only,
            }),
        }
    }
    dependencies.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Crate {
        folder: folder_of(top, &package.manifest_path),
        workspace: workspace.to_string(),
        description: package.description.unwrap_or_default(),
        name: package.name,
        dependencies,
        unsafe_code,
        no_std,
    })
}

impl Target {
    fn is_product(&self) -> bool {
        let others = ["test", "example", "bench", "custom-build"];
        !self.kind.iter().any(|kind| others.contains(&kind.as_str()))
    }
}

fn folder_of(top: &Path, manifest: &Path) -> String {
    let folder = manifest.parent().unwrap_or(top);
    let folder = folder.strip_prefix(top).unwrap_or(folder);
    folder.to_string_lossy().into_owned()
}

fn rule(text: &str) -> Unsafe {
    if has_attribute(text, "forbid(unsafe_code)") {
        Unsafe::Forbidden
    } else if has_attribute(text, "deny(unsafe_code)") {
        Unsafe::Exceptions
    } else {
        Unsafe::Allowed
    }
}

fn has_attribute(text: &str, attribute: &str) -> bool {
    let whole = format!("#![{attribute}]");
    text.lines().any(|line| line.trim() == whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_crate_says_what_it_may_do() {
        assert_eq!(rule("//! x\n#![forbid(unsafe_code)]\n"), Unsafe::Forbidden);
        assert_eq!(rule("#![deny(unsafe_code)]\n"), Unsafe::Exceptions);
        assert_eq!(rule("// #![forbid(unsafe_code)]\n"), Unsafe::Allowed);
        assert!(has_attribute("#![no_std]\n", "no_std"));
    }

    #[test]
    fn all_workspaces_are_found() {
        let crates = crates().expect("metadata");
        let folder = |name: &str| {
            let found = crates.iter().find(|known| known.name == name);
            found.map(|known| (known.folder.as_str(), known.workspace.as_str()))
        };
        assert_eq!(folder("gpureplay-core"), Some(("replayer/core", "")));
        assert_eq!(folder("gpureplay-fuzz"), Some(("fuzz", "fuzz")));
        let bare = "replayer/devices/bare";
        assert_eq!(folder("gpureplay-bare"), Some((bare, bare)));
    }
}
