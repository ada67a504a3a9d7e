// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command's bill of materials: CycloneDX 1.5.

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;
use serde_json::json;

use super::Source;
use gpureplay_task::output;

use crate::{
    error::{Error, Result},
    files,
};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

pub(super) fn write(source: &Source, packages: &Path) -> Result<PathBuf> {
    let cargo = || {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&source.top);
        cargo
    };
    let tree = output(cargo().args([
        "tree",
        "--locked",
        "--package",
        "gpureplay",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--no-dedupe",
        "--format",
        "{p}",
    ]))?;
    let inside: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    let text = output(cargo().args(["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: Metadata = serde_json::from_str(&text)
        .map_err(|error| Error::Usage(format!("cargo metadata: {error}")))?;
    let mut components: Vec<_> = metadata
        .packages
        .iter()
        .filter(|package| inside.contains(&(package.name.as_str(), package.version.as_str())))
        .map(|package| {
            let mut component = json!({
                "type": "library",
                "name": package.name,
                "version": package.version,
                "licenses": [{ "expression": package.license.as_deref().unwrap_or("NOASSERTION") }],
            });
            if package.source.is_some() {
                component["purl"] =
                    format!("pkg:cargo/{}@{}", package.name, package.version).into();
            }
            component
        })
        .collect();
    components.sort_by_key(|component| component["name"].to_string());
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "name": "gpureplay",
            "version": format!("{} ({})", env!("CARGO_PKG_VERSION"), source.commit),
        }},
        "components": components,
    });
    let path = packages.join("gpureplay.cdx.json");
    let text = format!("{list:#}\n");
    files::write(&path, text)?;
    Ok(path)
}
