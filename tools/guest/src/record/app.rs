// SPDX-License-Identifier: MIT OR Apache-2.0
//! The example programs: their table, their files, and whether what they wrote is right.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use gpureplay_tensors::{Difference, compare, read_npy};
use serde::Deserialize;

use crate::{
    build::payload,
    error::{Error, Result},
    folder::Folder,
    run::machine,
};

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
    /// How pictures become inputs, as the manifest says it.
    #[serde(default)]
    pub(crate) images: toml::Table,
    /// What the reference also computes for the first set; the recording is cut where each is complete.
    #[serde(default)]
    pub(crate) layers: Vec<String>,
    /// Names of the elements of the only output.
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    /// A file in tools for `compile --tensors`: the program repeats a step, and its OpenCL calls name what a step takes, leaves and gives.
    /// Its files hold several steps; inputs and outputs are those of the first.
    #[serde(default)]
    pub(crate) tensors: Option<PathBuf>,
    /// A table of layers in tools/networks: every file in `weights` is a weight.
    #[serde(default)]
    pub(crate) network: bool,
    /// The recording is in the repository.
    #[serde(default)]
    pub(crate) ships: bool,
    /// Largest relative error of an output.
    #[serde(default = "default_tolerance")]
    pub(crate) tolerance: f64,
    /// The recorded stack's own outputs are what a replay must give, bit for bit; the reference rounds elsewhere.
    #[serde(default)]
    pub(crate) exact: bool,
    /// Memory in MiB of the guest that it needs.
    #[serde(default = "default_memory")]
    pub(crate) memory: u32,
}

fn default_memory() -> u32 {
    machine::MEMORY
}

fn default_tolerance() -> f64 {
    TOLERANCE
}

/// The two sets of files: that of the recording, and the other one.
pub(crate) const SETS: [&str; 2] = ["", "2"];

impl App {
    /// All programs by name.
    pub(crate) fn all(folder: &Folder) -> Result<BTreeMap<String, App>> {
        let path = folder.recipe().join("recordable.toml");
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        toml::from_str(&text)
            .map_err(|error| Error::Usage(format!("{}: {}", path.display(), error.message())))
    }

    /// The name in the table of a program that is written with or without hyphens: `resnet50` is `resnet-50`.
    pub(crate) fn named(folder: &Folder, name: &str) -> Result<String> {
        let table = App::all(folder)?;
        let found = table.keys().find(|known| plain(known) == plain(name));
        found.cloned().ok_or_else(|| {
            let known: Vec<&str> = table.keys().map(String::as_str).collect();
            Error::Usage(format!(
                "{name}: no such program; there are {}",
                known.join(", ")
            ))
        })
    }

    /// The program of that name, which [`App::named`] may have found.
    pub(crate) fn find(folder: &Folder, name: &str) -> Result<App> {
        let mut table = App::all(folder)?;
        let app = table.remove(name).ok_or_else(|| Error::Missing {
            what: format!("the program {name}"),
            remedy: "add it to tools/guest/recordable.toml".into(),
        })?;
        let single = app.inputs.len() == 1 && app.outputs.len() == 1;
        if single || app.samples.is_empty() && app.labels.is_empty() {
            Ok(app)
        } else {
            Err(Error::Usage(format!(
                "recordable.toml: {name}: samples and labels need exactly one input and one output"
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

    /// True if the program uses CLBlast, which the guest's image has not.
    pub(crate) fn uses_clblast(&self) -> bool {
        self.app.starts_with("train_clblast")
    }

    /// The command line for a set of files.
    pub(crate) fn command(&self, set: &str) -> String {
        self.app.replace("{s}", set)
    }
}

/// A name without what people leave out.
fn plain(name: &str) -> String {
    let kept = name.chars().filter(|letter| !"-_".contains(*letter));
    kept.flat_map(char::to_lowercase).collect()
}

/// Makes a program's inputs and expected outputs in a directory.
pub(crate) fn write_files(folder: &Folder, name: &str, dir: &Path) -> Result<()> {
    payload::python(
        folder,
        &folder.recipe().join("reference.py"),
        &[name.as_ref(), dir.as_os_str()],
    )
}

/// Compares a file with the expected one; the text says why that is not possible.
pub(crate) fn compare_files(
    found: &Path,
    expected: &Path,
    tolerance: f64,
) -> std::result::Result<Difference, String> {
    let have = read_npy(found).map_err(|error| format!("{}: {error}", found.display()))?;
    let want = read_npy(expected).map_err(|error| format!("{}: {error}", expected.display()))?;
    compare(&have, &want, tolerance).ok_or_else(|| {
        format!(
            "{}: shape {:?}, expected {:?}",
            found.display(),
            have.shape(),
            want.shape()
        )
    })
}

/// Compares a file with the expected one; the text says what is wrong.
pub(crate) fn check(
    found: &Path,
    expected: &Path,
    tolerance: f64,
) -> std::result::Result<f64, String> {
    let difference = compare_files(found, expected, tolerance)?;
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

/// Whether two files hold the same elements, bit for bit; the text says what is wrong with one of them.
pub(crate) fn identical(a: &Path, b: &Path) -> std::result::Result<bool, String> {
    let read = |path: &Path| read_npy(path).map_err(|error| format!("{}: {error}", path.display()));
    let (a, b) = (read(a)?, read(b)?);
    Ok(a.dtype() == b.dtype() && a.bytes() == b.bytes())
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn hyphens_and_capitals_may_be_left_out() {
        assert_eq!(plain("resnet50"), plain("resnet-50"));
        assert_eq!(plain("MobileNet_v1-f16"), plain("mobilenet-v1-f16"));
        assert_ne!(plain("squeezenet-1.0"), plain("squeezenet-1.1"));
    }
}
