// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens only Mali recordings, without the feature `cuda`.

use std::path::Path;

use gpureplay_library::{Error, Recorded, Recording, Result, Trust};

/// Opens as `gpureplay_cuda_replay::embed::open`, but refuses CUDA.
pub(crate) fn open(path: &Path, trust: &Trust) -> Result<Box<dyn Recorded>> {
    let folder = path.to_str().and_then(|path| path.split_once("#run"));
    let folder = folder.map_or(path, |(folder, _)| Path::new(folder));
    if folder.join("runs").is_dir() && folder.join("objects").is_dir() {
        return Err(Error::NoDevice(format!(
            "{} is a recording of CUDA, and this library was built without (feature `cuda` of gpureplay-c)",
            folder.display()
        )));
    }
    Ok(Box::new(Recording::open_trusted(path, trust)?))
}

/// Loads as `gpureplay_cuda_replay::embed::from_bytes`, for Mali.
pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Box<dyn Recorded>> {
    Ok(Box::new(Recording::from_bytes(bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_cuda_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for part in ["runs", "objects"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        let one = folder.path().join("").display().to_string() + "#run0";
        for path in [folder.path(), Path::new(one.as_str())] {
            let error = open(path, &Trust::default())
                .err()
                .map(|error| error.to_string());
            assert!(error.is_some_and(|text| text.contains("built without")));
        }
    }
}
