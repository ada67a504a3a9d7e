// SPDX-License-Identifier: MIT OR Apache-2.0
//! Example programs, their files, and checks.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gpureplay_tensors::{Difference, compare, read_npy};
use serde::Deserialize;

use crate::{
    build::payload,
    error::{Error, Result},
    files,
    folder::Folder,
    run::machine,
};

/// Relative error of a float32 result.
pub(crate) const TOLERANCE: f64 = 1e-5;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct App {
    pub(crate) description: String,
    /// `{s}`: the set of files.
    app: String,
    /// They differ between runs.
    pub(crate) inputs: Vec<String>,
    pub(crate) weights: Vec<String>,
    pub(crate) outputs: Vec<String>,
    /// More files for the only input; the live stack's answers become cases.
    #[serde(default)]
    pub(crate) samples: Vec<String>,
    #[serde(default)]
    pub(crate) images: toml::Table,
    /// Intermediate tensors from the reference, for the first set; the recording is cut where each is complete.
    #[serde(default)]
    pub(crate) layers: Vec<String>,
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    /// For `compile --tensors`: a step repeats, and its calls name what it takes, leaves and gives. Inputs and outputs
    /// are the first step's.
    #[serde(default)]
    pub(crate) tensors: Option<PathBuf>,
    /// From tools/networks: every file in `weights` is a weight.
    #[serde(default)]
    pub(crate) network: bool,
    #[serde(default)]
    pub(crate) ships: bool,
    #[serde(default = "default_tolerance")]
    pub(crate) tolerance: f64,
    /// Replays must equal the recorded stack bit for bit; the reference rounds elsewhere.
    #[serde(default)]
    pub(crate) exact: bool,
    /// MiB of the guest.
    #[serde(default = "default_memory")]
    pub(crate) memory: u32,
}

fn default_memory() -> u32 {
    machine::MEMORY
}

fn default_tolerance() -> f64 {
    TOLERANCE
}

/// File suffixes of the recorded inputs, and of a second set.
pub(crate) const SETS: [&str; 2] = ["", "2"];

impl App {
    pub(crate) fn all(folder: &Folder) -> Result<BTreeMap<String, App>> {
        files::from_toml(folder.recipe().join("recordable.toml"))
    }

    /// Hyphens may be missing: `resnet50` is `resnet-50`.
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

    pub(crate) fn find(folder: &Folder, name: &str) -> Result<App> {
        let mut table = App::all(folder)?;
        let app = table.remove(name).ok_or_else(|| {
            Error::missing(
                format!("the program {name}"),
                "add it to tools/guest/recordable.toml",
            )
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

    pub(crate) fn uses_compute_library(&self) -> bool {
        self.app.starts_with("acl_")
    }

    /// The guest's image lacks CLBlast.
    pub(crate) fn uses_clblast(&self) -> bool {
        self.app.starts_with("train_clblast")
    }

    pub(crate) fn command(&self, set: &str) -> String {
        self.app.replace("{s}", set)
    }
}

fn plain(name: &str) -> String {
    let kept = name.chars().filter(|letter| !"-_".contains(*letter));
    kept.flat_map(char::to_lowercase).collect()
}

pub(crate) fn write_files(folder: &Folder, name: &str, dir: &Path) -> Result<()> {
    payload::python(
        folder,
        &folder.recipe().join("reference.py"),
        &[name.as_ref(), dir.as_os_str()],
    )
}

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

pub(crate) fn file(dir: &Path, kind: &str, name: &str, set: &str) -> PathBuf {
    dir.join(kind).join(format!("{name}{set}.npy"))
}

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
