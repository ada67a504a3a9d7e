// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user's names, types and shapes for found tensors.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use crate::{Element as _, ElementType};

/// Type and shape, such as `f32[1,224,224,3]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Element type.
    pub dtype: ElementType,
    /// Slowest first; none is 0.
    pub shape: Vec<u32>,
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a type and shape such as f32[1,224,224,3]");
        let (dtype, shape) = text.split_once('[').ok_or_else(wrong)?;
        let shape = shape.strip_suffix(']').ok_or_else(wrong)?;
        let extents = shape.split(',').map(|extent| extent.trim().parse());
        let shape: Vec<u32> = extents.collect::<Result<_, _>>().map_err(|_| wrong())?;
        match shape.contains(&0) {
            false => Ok(Form {
                dtype: ElementType::from_name(dtype.trim())?,
                shape,
            }),
            true => Err(wrong()),
        }
    }
}

impl Form {
    /// `None` if that exceeds 64 bits.
    pub fn bytes(&self) -> Option<u64> {
        let size = u64::from(self.dtype.size());
        self.shape
            .iter()
            .try_fold(size, |bytes, extent| bytes.checked_mul((*extent).into()))
    }
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let extents: Vec<String> = self.shape.iter().map(u32::to_string).collect();
        write!(f, "{}[{}]", self.dtype.name(), extents.join(","))
    }
}

/// Statements by the names of found tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// New names by the found ones.
    pub rename: BTreeMap<String, String>,
    /// By either name.
    pub forms: BTreeMap<String, Form>,
}

/// Why it does not fit what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatedError {
    /// No tensor has it.
    #[error("no tensor is called '{name}'; there are {}", known.join(", "))]
    Name {
        /// Name.
        name: String,
        /// Names of the tensors.
        known: Vec<String>,
    },
    /// Two tensors would have one name.
    #[error("two tensors would be called '{name}'")]
    Twice {
        /// Name.
        name: String,
    },
    /// Type and shape of another size.
    #[error("'{name}' has {bytes} bytes; {form} has another size")]
    Form {
        /// Tensor.
        name: String,
        /// The tensor's.
        bytes: u64,
        /// Stated type and shape.
        form: Form,
    },
}

impl Stated {
    /// Checks against the names `known`.
    ///
    /// # Errors
    /// A name that no tensor has, or that two would have.
    pub fn check(&self, known: &[String]) -> Result<(), StatedError> {
        let unknown = |name: &String| StatedError::Name {
            name: name.clone(),
            known: known.to_vec(),
        };
        let mut olds = self.rename.keys();
        if let Some(old) = olds.find(|old| !known.contains(old)) {
            return Err(unknown(old));
        }
        let is_new = |name: &String| self.rename.values().any(|new| new == name);
        let mut named = self.forms.keys();
        if let Some(name) = named.find(|name| !known.contains(name) && !is_new(name)) {
            return Err(unknown(name));
        }
        let mut names = BTreeSet::new();
        for old in known {
            let name = self.name(old);
            if !names.insert(name) {
                return Err(StatedError::Twice { name: name.into() });
            }
        }
        Ok(())
    }

    /// Name of a tensor by its found name.
    pub fn name<'a>(&'a self, found: &'a str) -> &'a str {
        self.rename.get(found).map_or(found, String::as_str)
    }

    /// Type and shape of a tensor by its found name, if stated.
    pub fn form(&self, found: &str) -> Option<&Form> {
        let form = self.forms.get(found);
        form.or_else(|| self.forms.get(self.rename.get(found)?))
    }

    /// Checks the bytes as well.
    ///
    /// # Errors
    /// What is stated has another size.
    pub fn form_of(&self, found: &str, bytes: u64) -> Result<Option<&Form>, StatedError> {
        match self.form(found) {
            Some(form) if form.bytes() != Some(bytes) => Err(StatedError::Form {
                name: found.to_owned(),
                bytes,
                form: form.clone(),
            }),
            form => Ok(form),
        }
    }
}

/// A name's second tensor gets `-2`.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<String, usize>);

impl Names {
    /// The name, or one not given yet.
    pub fn unique(&mut self, name: String) -> String {
        let count = self.0.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            count => format!("{name}-{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(rename: &[(&str, &str)], forms: &[(&str, &str)]) -> Stated {
        let text = |(old, new): &(&str, &str)| ((*old).to_owned(), (*new).to_owned());
        let form = |(name, form): &(&str, &str)| ((*name).to_owned(), form.parse().unwrap());
        Stated {
            rename: rename.iter().map(text).collect(),
            forms: forms.iter().map(form).collect(),
        }
    }

    #[test]
    fn what_is_stated_must_fit() {
        let known = ["input".to_owned(), "output".to_owned()];
        let good = stated(&[("input", "x")], &[("x", "f32[2,3]"), ("output", "u8[4]")]);
        assert_eq!(good.check(&known), Ok(()));
        assert_eq!((good.name("input"), good.name("output")), ("x", "output"));
        let form = good.form_of("input", 24).unwrap().unwrap();
        assert_eq!(
            (form.to_string(), form.bytes()),
            ("f32[2,3]".into(), Some(24))
        );
        assert_eq!(good.form_of("other", 1), Ok(None));
        assert!(matches!(
            good.form_of("input", 20),
            Err(StatedError::Form { bytes: 20, .. })
        ));
        for (wrong, unknown) in [
            (stated(&[("z", "x")], &[]), true),
            (stated(&[], &[("z", "u8[1]")]), true),
            (stated(&[("input", "output")], &[]), false),
        ] {
            let error = wrong.check(&known).unwrap_err();
            assert_eq!(
                matches!(error, StatedError::Name { .. }),
                unknown,
                "{error}"
            );
        }
    }

    #[test]
    fn a_second_tensor_of_a_name_gets_a_number() {
        let mut names = Names::default();
        let given: Vec<String> = (0..3).map(|_| names.unique("k.x".into())).collect();
        assert_eq!(given, ["k.x", "k.x-2", "k.x-3"]);
    }
}
