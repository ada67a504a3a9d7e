// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[NAME=]FILE` on the command line.

use std::path::PathBuf;
use std::str::FromStr;

use gpureplay_library::{Session, TensorInfo, TensorKind, list, shown};

use crate::Result;
use crate::common::failure::Failure;

/// A file for a tensor, with or without the tensor's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorFile {
    name: Option<String>,
    /// The file.
    pub(crate) path: PathBuf,
}

impl FromStr for TensorFile {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            // A path with an equals sign in a directory name is still a path.
            Some((name, path)) if !name.contains('/') => (Some(name.to_owned()), path),
            _ => (None, text),
        };
        if path.is_empty() || name.as_deref() == Some("") {
            return Err("expected FILE or NAME=FILE".into());
        }
        Ok(Self {
            name,
            path: path.into(),
        })
    }
}

impl TensorFile {
    /// The tensor's name: the one that was given, or the only one of its kind.
    pub(crate) fn resolve(
        &self,
        tensors: &[TensorInfo],
        kind: TensorKind,
        option: &str,
    ) -> Result<String> {
        if let Some(name) = &self.name {
            return match tensors.iter().any(|tensor| tensor.name == *name) {
                true => Ok(name.clone()),
                false => Err(Failure::Input(format!(
                    "{option} {name}: the recording has no such tensor; {}; `gpureplay info` lists all of its tensors",
                    list(tensors, kind)
                ))),
            };
        }
        let mut only = tensors.iter().filter(|tensor| tensor.kind == kind);
        match (only.next(), only.next()) {
            (Some(tensor), None) => Ok(tensor.name.clone()),
            _ => Err(Failure::Usage(format!(
                "{option} {}: say which tensor, as NAME=FILE; {}",
                shown(&self.path),
                list(tensors, kind)
            ))),
        }
    }
}

/// Binds these inputs; those of the manifest's first case if there are none.
pub(crate) fn bind_or_take_case(inputs: &[TensorFile], session: &mut Session) -> Result<()> {
    for given in inputs {
        let tensors = session.recording().tensors();
        let name = given.resolve(tensors, TensorKind::Input, "--input")?;
        session.bind_file(&name, &given.path)?;
    }
    if inputs.is_empty() {
        session.bind_case()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_optional() {
        let given = |text: &str| {
            text.parse::<TensorFile>()
                .map(|given| (given.name, given.path))
        };
        assert_eq!(given("a=x.npy"), Ok((Some("a".into()), "x.npy".into())));
        assert_eq!(given("x.npy"), Ok((None, "x.npy".into())));
        assert_eq!(
            given("dir=1/x.npy"),
            Ok((Some("dir".into()), "1/x.npy".into()))
        );
        assert_eq!(given("./dir=1/x.npy"), Ok((None, "./dir=1/x.npy".into())));
        assert!(given("a=").is_err() && given("=x.npy").is_err() && given("").is_err());
        assert_eq!(given("a=-"), Ok((Some("a".into()), "-".into())));
    }
}
