// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest record`'s additions to `manifest.toml`.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    files,
};

/// All keys, in the order of docs/reference/format.md.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    version: u32,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    provenance: toml::Table,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) outputs: BTreeMap<String, Output>,
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub(crate) images: toml::Table,
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    external: toml::Table,
    #[serde(default, rename = "case", skip_serializing_if = "Vec::is_empty")]
    pub(crate) cases: Vec<Case>,
    #[serde(default, rename = "job", skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<toml::Table>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Output {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tolerance: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) inputs: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) expected: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) reference: String,
}

pub(crate) fn change(path: &Path, change: impl FnOnce(&mut Manifest)) -> Result<()> {
    let mut manifest: Manifest = files::from_toml(path)?;
    change(&mut manifest);
    let text = toml::to_string_pretty(&manifest)
        .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))?;
    files::write(path, text)
}

#[cfg(test)]
mod tests {
    use super::Manifest;

    const WRITTEN: &str = r#"version = 1
name = "add-g52"
description = "out = x + y"
command = "gpureplay compile"

[provenance]
app = "add"
gpu = "Mali-G52 r0p0"

[outputs.out]
tolerance = 0.0001
labels = [
    "one",
    "two",
]

[images.x]
layout = "HWC"

[external.y]
file = "weights/y.npy"
sha256 = "00"

[[case]]
reference = "NumPy"

[case.inputs]
x = "inputs/x.npy"

[case.expected]
out = "expected/out.npy"
"#;

    #[test]
    fn keys_keep_the_order_of_the_command_that_wrote_them() {
        let manifest: Manifest = toml::from_str(WRITTEN).unwrap();
        assert_eq!(toml::to_string_pretty(&manifest).unwrap(), WRITTEN);
    }
}
