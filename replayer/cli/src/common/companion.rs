// SPDX-License-Identifier: MIT OR Apache-2.0
//! Libraries that a recorded app loads.

use std::path::{Path, PathBuf};

use gpureplay_library::shown;

use crate::Result;
use crate::common::failure::Failure;

pub(crate) const LAYER: Companion = Companion {
    file: "libgpureplay_opencl.so",
    package: "gpureplay-opencl",
    option: Some("--layer"),
};
pub(crate) const RECORDER: Companion = Companion {
    file: "libgpureplay_recorder.so",
    package: "gpureplay-recorder",
    option: None,
};
pub(crate) const NODE: Companion = Companion {
    file: "libgpureplay_node.so",
    package: "gpureplay-node",
    option: Some("--node-library"),
};

/// From the command's directory: a build, a copy, Debian's package.
const PLACES: [&str; 3] = ["", "../lib", "../lib/gpureplay"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Companion {
    pub(crate) file: &'static str,
    package: &'static str,
    option: Option<&'static str>,
}

impl Companion {
    pub(crate) fn find(self, named: Option<&Path>) -> Result<PathBuf> {
        self.among(named, &beside())
    }

    pub(crate) fn among(self, named: Option<&Path>, beside: &Path) -> Result<PathBuf> {
        if let Some(named) = named {
            let found = named.canonicalize();
            return found.map_err(|error| Failure::Input(format!("{}: {error}", shown(named))));
        }
        let found = PLACES
            .iter()
            .find_map(|place| beside.join(place).join(self.file).canonicalize().ok());
        found.ok_or_else(|| {
            let or = self.option.map(|option| format!(", or name it with {option}"));
            Failure::Input(format!(
                "{}: not found in {}, ../lib and ../lib/gpureplay; build it (cargo build --release -p {}){}",
                self.file,
                shown(beside),
                self.package,
                or.unwrap_or_default()
            ))
        })
    }
}

fn beside() -> PathBuf {
    let command = std::env::current_exe().unwrap_or_default();
    command.parent().unwrap_or(Path::new("")).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn is_found_in_each_place_of_an_installation() {
        for place in PLACES {
            let folder = tempfile::tempdir().unwrap();
            let beside = folder.path().join("bin");
            let to = beside.join(place);
            fs::create_dir_all(&beside).unwrap();
            fs::create_dir_all(&to).unwrap();
            fs::write(to.join(NODE.file), "").unwrap();
            let found = NODE.among(None, &beside).unwrap();
            assert_eq!(found, to.join(NODE.file).canonicalize().unwrap());
            let text = LAYER.among(None, &beside).unwrap_err().to_string();
            assert!(text.contains("gpureplay-opencl") && text.contains("--layer"));
        }
    }

    #[test]
    fn a_named_one_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("other.so");
        let text = NODE
            .among(Some(&file), folder.path())
            .unwrap_err()
            .to_string();
        assert!(text.contains("other.so"), "{text}");
        fs::write(&file, "").unwrap();
        assert!(NODE.among(Some(&file), folder.path()).is_ok());
    }
}
