// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files and buffers for the tensors of one recording.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use gpureplay_core::Tensors;
use gpureplay_format::layout::{TENSOR_EXTERNAL, TensorEntry};
use gpureplay_format::{Recording, TensorKind};
use gpureplay_tensor::{NpyError, Tensor, read_npy};

use crate::failure::Failure;
use crate::recording::Files;
use crate::{Result, text};

/// `[NAME=]FILE` on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    name: Option<String>,
    /// The file.
    pub(crate) path: PathBuf,
}

impl FromStr for Given {
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

impl Given {
    /// The tensor's name: the one that was given, or the only one of its kind.
    pub(crate) fn resolve(
        &self,
        recording: &Recording<'_>,
        kind: TensorKind,
        option: &str,
    ) -> Result<String> {
        if let Some(name) = &self.name {
            return match recording.tensor_named(name) {
                Some(_) => Ok(name.clone()),
                None => Err(Failure::Input(format!(
                    "{option} {name}: the recording has no such tensor; {}",
                    list(recording, kind)
                ))),
            };
        }
        match names(recording, kind).as_slice() {
            [name] => Ok((*name).to_owned()),
            _ => Err(Failure::Usage(format!(
                "{option} {}: say which tensor, as NAME=FILE; {}",
                self.path.display(),
                list(recording, kind)
            ))),
        }
    }
}

fn names<'a>(recording: &Recording<'a>, kind: TensorKind) -> Vec<&'a str> {
    let tensors = recording
        .tensors()
        .iter()
        .filter(|tensor| text::kind_of(tensor) == kind);
    tensors
        .map(|tensor| recording.name(tensor.name.get()))
        .collect()
}

/// `its inputs are: a f32[64,64], b f32[64]`.
fn list(recording: &Recording<'_>, kind: TensorKind) -> String {
    let tensors = recording
        .tensors()
        .iter()
        .filter(|tensor| text::kind_of(tensor) == kind);
    let described: Vec<String> = tensors
        .map(|tensor| {
            let name = recording.name(tensor.name.get());
            format!("{name} {}", text::tensor_type(recording, tensor))
        })
        .collect();
    match described.len() {
        0 => format!("it has no {}", kind.name()),
        1 => format!("its only {} is {}", kind.name(), described[0]),
        _ => format!("its {}s are {}", kind.name(), described.join(", ")),
    }
}

/// The values of a recording's tensors on this side.
pub(crate) struct Bindings<'a> {
    recording: Recording<'a>,
    /// By tensor index: what goes in.
    values: Vec<Option<Tensor>>,
    /// By tensor index: room for what comes out.
    buffers: Vec<Option<Vec<u8>>>,
}

impl<'a> Bindings<'a> {
    /// Room for all outputs, and nothing bound.
    pub(crate) fn new(recording: &Recording<'a>) -> Self {
        let buffer = |tensor: &TensorEntry| {
            let size = recording.tensor_bytes(tensor).unwrap_or(0) as usize;
            (text::kind_of(tensor) == TensorKind::Output).then(|| vec![0; size])
        };
        let tensors = recording.tensors();
        Self {
            recording: *recording,
            values: tensors.iter().map(|_| None).collect(),
            buffers: tensors.iter().map(buffer).collect(),
        }
    }

    /// `f32[64,64]`, for a tensor that exists.
    pub(crate) fn type_of(&self, name: &str) -> String {
        let tensor = self.recording.tensor_named(name);
        tensor.map_or_else(String::new, |(_, tensor)| {
            text::tensor_type(&self.recording, tensor)
        })
    }

    /// Reads a file and binds it to a tensor.
    pub(crate) fn bind(&mut self, name: &str, path: &Path) -> Result<()> {
        let Some((index, entry)) = self.recording.tensor_named(name) else {
            return Err(Failure::Recording(format!(
                "the recording has no tensor {name}"
            )));
        };
        if text::kind_of(entry) == TensorKind::Output {
            return Err(Failure::Input(format!(
                "{name} is an output; {}",
                list(&self.recording, TensorKind::Input)
            )));
        }
        let value = read_tensor(path)?;
        require_shape(&self.recording, name, entry, path, &value)?;
        if let Some(slot) = self.values.get_mut(index as usize) {
            *slot = Some(value);
        }
        Ok(())
    }

    /// Binds the weights that the manifest keeps in files.
    pub(crate) fn bind_weights(&mut self, files: &Files) -> Result<()> {
        let weights = files.manifest.as_ref().map(|manifest| &manifest.weights);
        for (name, path) in weights.into_iter().flatten() {
            self.bind(name, &files.directory.join(path))?;
        }
        Ok(())
    }

    /// Every input and every weight without a value must be bound.
    pub(crate) fn require_all(&self, path: &Path) -> Result<()> {
        for (entry, value) in self.recording.tensors().iter().zip(&self.values) {
            let kind = text::kind_of(entry);
            let needed = kind == TensorKind::Input || entry.flags & TENSOR_EXTERNAL != 0;
            if needed && value.is_none() {
                let name = self.recording.name(entry.name.get());
                let shape = text::tensor_type(&self.recording, entry);
                return Err(Failure::Input(format!(
                    "{}: {} {name} {shape} is not given; add --input {name}=FILE.npy",
                    path.display(),
                    kind.name()
                )));
            }
        }
        Ok(())
    }

    /// All outputs, by name.
    pub(crate) fn outputs(&self) -> Result<Vec<(String, Tensor)>> {
        let tensors = self.recording.tensors().iter().zip(&self.buffers);
        tensors
            .filter_map(|(entry, buffer)| buffer.as_ref().map(|buffer| (entry, buffer)))
            .map(|(entry, buffer)| {
                let name = self.recording.name(entry.name.get()).to_owned();
                let shape = text::shape_of(&self.recording, entry);
                let tensor = Tensor::new(text::element_of(entry), &shape, buffer.clone())
                    .map_err(|error| Failure::Recording(format!("output {name}: {error}")))?;
                Ok((name, tensor))
            })
            .collect()
    }
}

impl Tensors for Bindings<'_> {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        self.values
            .get(tensor as usize)?
            .as_ref()
            .map(Tensor::bytes)
    }

    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        self.buffers.get_mut(tensor as usize)?.as_deref_mut()
    }
}

/// Reads an .npy file.
pub(crate) fn read_tensor(path: &Path) -> Result<Tensor> {
    read_npy(path).map_err(|error| {
        let error = match error {
            NpyError::Io { .. } => error.to_string(),
            error => format!("{}: {error}", path.display()),
        };
        Failure::Input(error)
    })
}

/// Requires a file's contents to have the type and the shape of a tensor.
pub(crate) fn require_shape(
    recording: &Recording<'_>,
    name: &str,
    entry: &TensorEntry,
    path: &Path,
    value: &Tensor,
) -> Result<()> {
    let expected = text::tensor_type(recording, entry);
    let found = text::typed_shape(value.dtype(), value.shape());
    if expected == found {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "{}: {found}, but {} {name} is {expected}",
        path.display(),
        text::kind_of(entry).name()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_optional() {
        let given = |text: &str| text.parse::<Given>().map(|given| (given.name, given.path));
        assert_eq!(given("a=x.npy"), Ok((Some("a".into()), "x.npy".into())));
        assert_eq!(given("x.npy"), Ok((None, "x.npy".into())));
        assert_eq!(
            given("dir=1/x.npy"),
            Ok((Some("dir".into()), "1/x.npy".into()))
        );
        assert_eq!(given("./dir=1/x.npy"), Ok((None, "./dir=1/x.npy".into())));
        assert!(given("a=").is_err() && given("=x.npy").is_err() && given("").is_err());
    }
}
