// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trust in the replayer.

mod cost;
mod costs;
mod fuzz;
mod mutation;
mod reliability;
mod sanitize;
mod target;
mod totals;
mod trial;

pub(crate) use cost::Cost;
pub(crate) use fuzz::Fuzz;
pub(crate) use mutation::Mutation;
pub(crate) use reliability::Reliability;
pub(crate) use sanitize::Sanitize;
pub(crate) use trial::{Faults, Mutants};

use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

fn results() -> Result<PathBuf> {
    let directory = root().join("target/trials");
    files::create_dir(&directory)?;
    Ok(directory)
}

fn kept<T: DeserializeOwned + Default>(path: &Path) -> Result<T> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| Error::io("read", path)(std::io::Error::other(error))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

fn keep(path: &Path, all: &impl Serialize) -> Result<()> {
    let temporary = path.with_extension("tmp");
    let text = serde_json::to_string_pretty(all).unwrap_or_default() + "\n";
    files::write(&temporary, text)?;
    std::fs::rename(&temporary, path).map_err(Error::io("write", path))
}

fn read<T: DeserializeOwned>(name: &str) -> Result<Option<T>> {
    let path = results()?.join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", &path)(error)),
    }
}
