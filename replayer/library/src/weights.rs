// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights that are kept outside of a recording, each in a file with a known hash.

use std::fs::File;
use std::path::{Path, PathBuf};

use gpureplay_io::{MAX_NPY_BYTES, Tensor, shown};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::Files;
use crate::tensors::TensorInfo;
use crate::values;

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Files that were read last; weights that lie in one file need it only once.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    file: PathBuf,
    bytes: Vec<u8>,
    sha256: String,
}

impl Reader {
    /// Reads a weight and checks the hash of its file.
    pub(crate) fn read(
        &mut self,
        files: &Files,
        path: &Path,
        name: &str,
        expected: &str,
        info: &TensorInfo,
    ) -> Result<Tensor> {
        let (file, part) = values::split(path);
        if file != self.file {
            let opened = files.open_file(file);
            let bytes = opened
                .map_err(|error| Error::file(file, error))
                .and_then(|opened| values::bytes(file, opened, MAX_NPY_BYTES));
            self.bytes = bytes.map_err(|error| missing(error, file, name))?;
            self.sha256 = sha256(&self.bytes);
            self.file = file.to_path_buf();
        }
        if !self.sha256.eq_ignore_ascii_case(expected) {
            return Err(Error::Hash {
                path: file.to_path_buf(),
                name: name.to_owned(),
                expected: expected.to_owned(),
                found: self.sha256.clone(),
            });
        }
        values::parse(file, part, info, &self.bytes)
    }
}

/// The values of all these tensors in a `.safetensors` file or in a directory, each with where it comes from.
pub(crate) fn all_of(path: &Path, weights: &[TensorInfo]) -> Result<Vec<(Tensor, String)>> {
    if path.is_dir() {
        let one = |info: &TensorInfo| {
            let file = PathBuf::from(format!("{}.npy", info.name));
            // A recording names its tensors; it does not choose directories.
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
    let bytes = values::bytes(path, file, MAX_NPY_BYTES)?;
    let one = |info: &TensorInfo| {
        let value = values::parse(path, Some(&info.name), info, &bytes)?;
        Ok((value, format!("{}#{}", shown(path), info.name)))
    };
    weights.iter().map(one).collect()
}

fn missing(error: Error, file: &Path, name: &str) -> Error {
    let Error::File { reason, .. } = error else {
        return error;
    };
    Error::file(
        file,
        format!(
            "{reason}; the manifest keeps weight {name} in it: restore the file, or bind another one with {name}=FILE"
        ),
    )
}
