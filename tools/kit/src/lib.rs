// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by tests.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "in a test a panic says what is wrong"
)]

pub mod command;
pub mod jobs;
pub mod network;
mod values;

use std::fs;
use std::path::{Path, PathBuf};

use gpureplay_core::{Gpu, Limits, Options, Tensors, Workspace};
use gpureplay_format::Recording;
use gpureplay_on_model::OnModel;
use mali_drive::{Session, Verified, verify};
use mali_model::Profile;
pub use values::{Values, floats};

/// The source tree's top.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A recording's directory.
pub fn shipped(name: &str) -> PathBuf {
    repository().join("recordings").join(name)
}

/// All of them, by name.
pub fn all_shipped() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join("recordings")).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = folders
        .filter(|it| it.join("recording.gpr").exists())
        .collect();
    found.sort();
    found
}

/// Uncommitted data: `shared` above the tree, or `GPUREPLAY_SHARED`. `None`, said aloud, without `path`.
pub fn shared(path: &str) -> Option<PathBuf> {
    let given = std::env::var_os("GPUREPLAY_SHARED").map(PathBuf::from);
    let here = repository();
    let above = here.ancestors().map(|folder| folder.join("shared"));
    let found = given
        .into_iter()
        .chain(above)
        .map(|it| it.join(path))
        .find(|it| it.exists());
    if found.is_none() {
        eprintln!(
            "SKIPPED: no shared/{path} beside the repository, and GPUREPLAY_SHARED does not name it"
        );
    }
    found
}

/// Copies a directory.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(fs::copy(from, to).unwrap()),
        }
    }
}

/// A well-formed recording.
pub fn view(file: &[u8]) -> Recording<'_> {
    Recording::parse(file).unwrap()
}

/// Of a recording that keeps all rules.
pub fn verified<'r>(view: &'r Recording<'r>) -> Verified<'r> {
    verify(view, &Limits::DEFAULT).unwrap()
}

/// A GPU's model.
pub fn model(name: &str) -> OnModel {
    let profile = Profile::by_name(name).unwrap();
    OnModel::new(profile, mali_model::Options::default()).unwrap()
}

/// A sound recording's session.
pub fn open<'r, 'w, G: Gpu>(
    gpu: G,
    view: &'r Recording<'r>,
    workspace: &'w mut Workspace,
    values: &mut impl Tensors,
) -> Session<'r, 'w, G> {
    Session::open(gpu, verified(view), workspace, Options::default(), values).unwrap()
}
