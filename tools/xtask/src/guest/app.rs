// SPDX-License-Identifier: MIT OR Apache-2.0
//! The example programs: their table, their files, and whether what they wrote is right.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use gpureplay_tensor::{compare, read_npy};
use serde::Deserialize;

use super::{folder::Folder, payload};
use crate::error::{Error, Result};

/// Largest relative error of a float32 result.
pub(crate) const TOLERANCE: f64 = 1e-5;

/// A program of `recordable.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct App {
    /// One line for the manifest.
    pub(crate) description: String,
    /// Command line; `{s}` stands for the set of files.
    app: String,
    /// Tensors that change from run to run.
    pub(crate) inputs: Vec<String>,
    /// Tensors that do not.
    pub(crate) weights: Vec<String>,
    /// Tensors that it writes.
    pub(crate) outputs: Vec<String>,
    /// Further files for the only input; the program's answers to them become cases of the recording.
    #[serde(default)]
    pub(crate) samples: Vec<String>,
    /// Names of the elements of the only output.
    #[serde(default)]
    pub(crate) labels: Vec<String>,
}

/// The two sets of files: that of the recording, and the other one.
pub(crate) const SETS: [&str; 2] = ["", "2"];

impl App {
    /// The program of that name.
    pub(crate) fn find(folder: &Folder, name: &str) -> Result<App> {
        let path = folder.recipe().join("recordable.toml");
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let mut table: BTreeMap<String, App> = toml::from_str(&text)
            .map_err(|error| Error::Usage(format!("{}: {}", path.display(), error.message())))?;
        let known: Vec<String> = table.keys().cloned().collect();
        let app = table.remove(name).ok_or_else(|| {
            Error::Usage(format!(
                "{name}: no such program; there are {}",
                known.join(", ")
            ))
        })?;
        let single = app.inputs.len() == 1 && app.outputs.len() == 1;
        if single || app.samples.is_empty() && app.labels.is_empty() {
            Ok(app)
        } else {
            Err(Error::Usage(format!(
                "{}: {name}: samples and labels need exactly one input and one output",
                path.display()
            )))
        }
    }

    /// Shell commands that run the program on each sample and put its answers into `expected`.
    pub(crate) fn sample_script(&self) -> String {
        const SET: &str = "-sample";
        let mut script = String::new();
        let (Some(input), Some(output)) = (self.inputs.first(), self.outputs.first()) else {
            return script;
        };
        for name in &self.samples {
            script += &format!("cp inputs/{name}.npy inputs/{input}{SET}.npy\n");
            script += &format!("{}\n", self.command(SET));
            script += &format!("mv {output}{SET}.npy expected/{name}.npy\n");
        }
        script
    }

    /// True if the program uses Arm Compute Library.
    pub(crate) fn uses_compute_library(&self) -> bool {
        self.app.starts_with("acl_")
    }

    /// The command line for a set of files.
    pub(crate) fn command(&self, set: &str) -> String {
        self.app.replace("{s}", set)
    }
}

/// Makes a program's inputs and expected outputs in a directory.
pub(crate) fn write_files(folder: &Folder, name: &str, dir: &Path) -> Result<()> {
    payload::python(
        folder,
        &folder.recipe().join("reference.py"),
        &[name.as_ref(), dir.as_os_str()],
    )
}

/// Compares a file with the expected one; the text says what is wrong.
pub(crate) fn check(found: &Path, expected: &Path) -> std::result::Result<f64, String> {
    let have = read_npy(found).map_err(|error| format!("{}: {error}", found.display()))?;
    let want = read_npy(expected).map_err(|error| format!("{}: {error}", expected.display()))?;
    let difference = compare(&have, &want, TOLERANCE).ok_or_else(|| {
        format!(
            "{}: shape {:?}, expected {:?}",
            found.display(),
            have.shape(),
            want.shape()
        )
    })?;
    if difference.within() {
        Ok(difference.max_relative)
    } else {
        Err(format!(
            "{}: {} of {} elements are wrong, worst relative error {:.3e}",
            found.display(),
            difference.outside,
            difference.elements,
            difference.max_relative
        ))
    }
}

/// Path of a tensor's file in a set.
pub(crate) fn file(dir: &Path, kind: &str, name: &str, set: &str) -> PathBuf {
    dir.join(kind).join(format!("{name}{set}.npy"))
}
