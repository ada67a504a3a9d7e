// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why to trust the replayer with a stranger's recording.

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

use std::path::PathBuf;

use serde::de::DeserializeOwned;

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

/// `None` before the trial.
fn read<T: DeserializeOwned>(name: &str) -> Result<Option<T>> {
    let path = results()?.join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", &path)(error)),
    }
}
