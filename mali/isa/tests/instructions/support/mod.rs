// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the reference data is.

use std::path::{Path, PathBuf};

/// In `shared` beside the repository, or `GPUREPLAY_SHARED`.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let given = std::env::var_os("GPUREPLAY_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared"));
    let found = given
        .into_iter()
        .chain(beside)
        .map(|folder| folder.join(path))
        .find(|p| p.exists());
    if found.is_none() {
        eprintln!(
            "SKIPPED: no shared/{path} beside the repository and GPUREPLAY_SHARED does not name it"
        );
    }
    found
}

#[allow(dead_code, reason = "not every test reads samples")]
pub(crate) fn binaries(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "bin"))
        .collect();
    files.sort();
    files
}
