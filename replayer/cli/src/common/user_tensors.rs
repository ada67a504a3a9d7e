// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's names, types and shapes of found tensors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use gpureplay_library::{read_named, shown};
use gpureplay_tensors::{Form, Stated};
use serde::Deserialize;

use crate::Result;
use crate::common::failure::Failure;

const MAX_BYTES: u64 = 1 << 20;

/// Options about tensors that no file names.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct StatedOptions {
    /// Another name for a tensor that was found without a file of the app's
    #[arg(long, value_name = "OLD=NEW")]
    name: Vec<Equation<String>>,
    /// Type and shape of such a tensor, such as f32[1,224,224,3]
    #[arg(long, value_name = "NAME=TYPE[N,…]")]
    tensor: Vec<Equation<Form>>,
    /// Names, types and shapes in a file, as --suggest prints them
    #[arg(long, value_name = "FILE")]
    tensors: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Equation<T> {
    left: String,
    right: T,
}

impl<T: FromStr<Err: std::fmt::Display>> FromStr for Equation<T> {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once('=') {
            Some((left, right)) if !left.is_empty() && !right.is_empty() => Ok(Self {
                left: left.to_owned(),
                right: right.parse().map_err(|error: T::Err| error.to_string())?,
            }),
            _ => Err("expected two words with a '=' between".into()),
        }
    }
}

/// File of descriptions, by the name under which a tensor was found.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Descriptions {
    tensors: BTreeMap<String, Description>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    form: Option<String>,
}

impl StatedOptions {
    /// Options take precedence.
    pub(crate) fn read(&self) -> Result<Stated> {
        let mut stated = match &self.tensors {
            Some(path) => read_descriptions(path)?,
            None => Stated::default(),
        };
        let named = self.name.iter().cloned();
        stated.rename.extend(named.map(|e| (e.left, e.right)));
        let formed = self.tensor.iter().cloned();
        stated.forms.extend(formed.map(|e| (e.left, e.right)));
        Ok(stated)
    }
}

fn read_descriptions(path: &Path) -> Result<Stated> {
    let wrong = |reason: String| Failure::Input(format!("{}: {reason}", shown(path)));
    let found = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !found.is_file() {
        return Err(wrong(format!("is not a file of at most {MAX_BYTES} bytes")));
    }
    let text = String::from_utf8(read_named(path, MAX_BYTES)?);
    let text = text.map_err(|error| wrong(error.to_string()))?;
    let read: Descriptions = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut stated = Stated::default();
    for (name, description) in read.tensors {
        if let Some(form) = description.form {
            let form = form.parse().map_err(wrong)?;
            stated.forms.insert(name.clone(), form);
        }
        if let Some(new) = description.name.filter(|new| *new != name) {
            stated.rename.insert(name, new);
        }
    }
    Ok(stated)
}

pub(crate) fn suggestion<'a>(tensors: impl Iterator<Item = (&'a str, &'a str, Form)>) -> String {
    let mut out = String::from(
        "# Tensors as they were found. Change names, types and shapes; the number of bytes stays.\n",
    );
    for (role, name, form) in tensors {
        let _ = write!(
            out,
            "\n# {role}\n[tensors.\"{name}\"]\nname = \"{name}\"\nform = \"{form}\"\n"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_have_two_sides() {
        let parsed: Equation<String> = "a.b=c".parse().unwrap();
        assert_eq!((parsed.left.as_str(), parsed.right.as_str()), ("a.b", "c"));
        assert!("a".parse::<Equation<String>>().is_err());
        assert!("=a".parse::<Equation<String>>().is_err());
        let form: Equation<Form> = "x=f32[1,28,28]".parse().unwrap();
        assert_eq!(form.right.to_string(), "f32[1,28,28]");
        for bad in ["x=f32", "x=f32[]", "x=f32[0]", "x=f99[1]", "x=f32[1"] {
            assert!(bad.parse::<Equation<Form>>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_suggestion_says_what_it_is_read_as() {
        let form: Form = "f32[4,2]".parse().unwrap();
        let text = suggestion([("input", "x", form.clone())].into_iter());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tensors.toml");
        std::fs::write(&path, text.replace("name = \"x\"", "name = \"y\"")).unwrap();
        let stated = read_descriptions(&path).unwrap();
        assert_eq!((stated.name("x"), stated.form("x")), ("y", Some(&form)));
    }
}
