// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights in files with known hashes.

use std::fs::File;
use std::path::{Path, PathBuf};

use gpureplay_host::{beneath, shown};
use gpureplay_tensors::Tensor;

pub use crate::digest::sha256;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::tensors::TensorInfo;
use crate::values::{self, Archive, Contents, most_bytes};

/// The file read last: several weights of one file read it once.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    file: PathBuf,
    contents: Option<Contents>,
    sha256: String,
}

impl Reader {
    pub(crate) fn read(
        &mut self,
        files: &Files,
        path: &Path,
        name: &str,
        expected: &str,
        info: &TensorInfo,
    ) -> Result<Tensor> {
        let (file, part) = files.split(path);
        let file = file.as_path();
        if file != self.file {
            let opened = files.open_file(file);
            let bytes = opened
                .and_then(|opened| beneath::contents(opened, most_bytes(file, info)))
                .map_err(|error| missing(&error, file, name))?;
            self.sha256 = sha256(&bytes);
            // A file with another hash is not looked into.
            self.contents = match self.sha256.eq_ignore_ascii_case(expected) {
                true => Some(Contents::new(file, bytes)?),
                false => None,
            };
            self.file = file.to_path_buf();
        }
        let known = self.sha256.eq_ignore_ascii_case(expected);
        match self.contents.as_mut().filter(|_| known) {
            Some(contents) => contents.value(file, part, info),
            None => Err(Error::Hash {
                path: file.to_path_buf(),
                name: name.to_owned(),
                expected: expected.to_owned(),
                found: self.sha256.clone(),
            }),
        }
    }
}

/// Each with its origin.
pub(crate) fn all_of(path: &Path, weights: &[TensorInfo]) -> Result<Vec<(Tensor, String)>> {
    if path.is_dir() {
        let one = |info: &TensorInfo| {
            let file = PathBuf::from(format!("{}.npy", info.name));
            // A recording does not choose directories.
            if file.components().count() != 1 || file.is_absolute() {
                let reason = format!("no file can have the name of {}", info.name);
                return Err(Error::file(path, reason));
            }
            let file = path.join(file);
            let opened = File::open(&file).map_err(|error| Error::file(&file, error))?;
            Ok((values::npy(&file, opened, info)?, shown(&file)))
        };
        return weights.iter().map(one).collect();
    }
    if !values::is_safetensors(path) {
        return Err(Error::file(
            path,
            "many values come from a directory with NAME.npy files, or from a .safetensors file",
        ));
    }
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    let mut archive = Archive::open(path, file)?;
    let one = |info: &TensorInfo| {
        let from = format!("{}#{}", shown(path), info.name);
        Ok((archive.read(Some(&info.name), info, &from)?, from))
    };
    weights.iter().map(one).collect()
}

fn missing(error: &std::io::Error, file: &Path, name: &str) -> Error {
    Error::file(
        file,
        format!(
            "{error}; the manifest keeps weight {name} in it: restore the file, or bind another one with {name}=FILE"
        ),
    )
}
