// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[NAME=]FILE[:TYPE[SHAPE]]` on the command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use gpureplay_library::{Session, TensorInfo, TensorKind, list, shown};
use gpureplay_tensors::Form;

use crate::Result;
use crate::common::failure::Failure;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorFile {
    name: Option<String>,
    pub(crate) path: PathBuf,
    /// As in `x.bin:f32[8,8]`.
    form: Option<Form>,
}

impl FromStr for TensorFile {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            // A directory may have an equals sign in its name.
            Some((name, path)) if !name.contains('/') => (Some(name.to_owned()), path),
            _ => (None, text),
        };
        if path.is_empty() || name.as_deref() == Some("") {
            return Err("expected FILE or NAME=FILE".into());
        }
        let stated = match path.rsplit_once(':') {
            Some((file, form)) if !file.is_empty() && !Path::new(path).exists() => {
                form.parse().ok().map(|form| (file, form))
            }
            _ => None,
        };
        let (path, form) = match stated {
            Some((file, form)) => (file, Some(form)),
            None => (path, None),
        };
        Ok(Self {
            name,
            path: path.into(),
            form,
        })
    }
}

impl TensorFile {
    pub(crate) fn written(text: &str) -> std::result::Result<Self, String> {
        let file: Self = text.parse()?;
        match file.form {
            None => Ok(file),
            Some(form) => Err(format!(
                "type and shape are the tensor's; leave :{form} out"
            )),
        }
    }

    pub(crate) fn resolve(
        &self,
        tensors: &[TensorInfo],
        kind: TensorKind,
        option: &str,
    ) -> Result<String> {
        let name = self.name_among(tensors, kind, option)?;
        let tensor = tensors.iter().find(|tensor| tensor.name == name);
        if let (Some(form), Some(tensor)) = (&self.form, tensor) {
            let shape = form.shape.iter().copied().map(u64::from);
            if form.dtype != tensor.dtype || !shape.eq(tensor.shape.iter().copied()) {
                let extents: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
                return Err(Failure::Input(format!(
                    "{option} {}: {form} is stated, {name} is {}[{}]",
                    shown(&self.path),
                    tensor.dtype.name(),
                    extents.join(",")
                )));
            }
        }
        Ok(name)
    }

    fn name_among(&self, tensors: &[TensorInfo], kind: TensorKind, option: &str) -> Result<String> {
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
        let stated = "a=x.bin:f32[8,8]".parse::<TensorFile>().unwrap();
        assert_eq!(stated.path, Path::new("x.bin"));
        assert_eq!(stated.form.unwrap().to_string(), "f32[8,8]");
        assert_eq!(given("x:y.bin"), Ok((None, "x:y.bin".into())));
        assert!(TensorFile::written("x:y.bin").is_ok());
        let error = TensorFile::written("x.bin:f32[3]").unwrap_err();
        assert!(error.contains("leave :f32[3] out"), "{error}");
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
