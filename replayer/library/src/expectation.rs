// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expected outputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpureplay_host::{beneath, escaped, shown};
use gpureplay_tensors::{Tensor, compare};
use serde::{Serialize, Serializer};

use crate::bindings::{Bindings, require};
use crate::error::{Error, Result};
use crate::files::Files;
use crate::json_path;
use crate::manifest::{self, Case, DEFAULT_TOLERANCE};
use crate::number::Number;
use crate::values;

/// How one output compares with what was expected.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Within the tolerance.
    pub matches: bool,
    /// The file that was compared with.
    #[serde(serialize_with = "json_path::one")]
    #[cfg_attr(feature = "schema", schemars(with = "PathBuf"))]
    pub expected: PathBuf,
    /// Who computed it, if the manifest says so.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub reference: Option<Arc<str>>,
    /// Relative tolerance.
    pub tolerance: f64,
    /// Elements whose bits differ.
    pub different: usize,
    /// Elements outside the tolerance.
    pub outside: usize,
    /// Elements in all.
    pub elements: usize,
    /// Largest relative difference.
    pub max_relative: Number,
    /// Coordinates, value and expected value of the worst element outside the tolerance.
    pub worst: Option<(Vec<u64>, Number, Number)>,
}

fn as_text<S: Serializer>(
    text: &Option<Arc<str>>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

impl Comparison {
    /// `matches the recorded stack bit for bit`.
    pub fn text(&self) -> String {
        let file = shown(&self.expected);
        let by = match &self.reference {
            Some(reference) => escaped(reference).into_owned(),
            None => file.clone(),
        };
        if self.different == 0 {
            return format!("matches {by} bit for bit");
        }
        let (worst, tolerance) = (self.max_relative.0, self.tolerance);
        if self.matches {
            return format!(
                "matches {by} (largest relative difference {worst:.1e}, allowed {tolerance:.1e})"
            );
        }
        let mut line = format!(
            "differs from {file} in {} of {} elements (largest relative difference {worst:.1e}, allowed {tolerance:.1e}",
            self.outside, self.elements
        );
        if let Some((at, found, expected)) = &self.worst {
            line += &format!("; at {at:?} {found} instead of {expected}");
        }
        line + ")"
    }
}

#[derive(Debug)]
struct Expected {
    path: PathBuf,
    reference: Option<Arc<str>>,
    value: Tensor,
    tolerance: f64,
}

/// Expected outputs of one run.
#[derive(Debug, Default)]
pub struct Expectations {
    outputs: BTreeMap<String, Expected>,
}

impl Expectations {
    /// Reads expected values from the command line, or else a manifest case.
    pub fn new(
        files: &Files,
        bindings: &Bindings,
        case: Option<&Case>,
        given: &BTreeMap<String, PathBuf>,
    ) -> Result<Self> {
        let mut paths = BTreeMap::new();
        for (name, path) in case.iter().flat_map(|case| &case.expected) {
            paths.insert(name.clone(), (files.directory.join(path), true));
        }
        paths.extend(
            given
                .iter()
                .map(|(name, path)| (name.clone(), (path.clone(), false))),
        );
        let reference = case.map(|case| case.reference.as_str());
        let reference: Option<Arc<str>> = reference.filter(|text| !text.is_empty()).map(Arc::from);
        let mut outputs = BTreeMap::new();
        for (name, (path, by_manifest)) in paths {
            let Ok((_, info)) = bindings.named(&name) else {
                return Err(Error::Manifest {
                    path: files.directory.join(manifest::FILE_NAME),
                    reason: format!("expects {name}, but the recording has no such tensor"),
                });
            };
            let (file, part) = files.split(&path);
            let opened = |file: &Path| match file.strip_prefix(&files.directory) {
                Ok(inside) if by_manifest => beneath::open(&files.directory, inside),
                _ => files.open_file(file),
            };
            let tensor = values::read_with(opened, (&file, part), info, None)?;
            require(info, &tensor, &shown(&path))?;
            let stated = files
                .manifest
                .as_ref()
                .map(|manifest| manifest.tolerance(&name));
            let tolerance = stated.unwrap_or(DEFAULT_TOLERANCE);
            let expected = Expected {
                path,
                reference: reference.clone().filter(|_| by_manifest),
                value: tensor,
                tolerance,
            };
            outputs.insert(name, expected);
        }
        Ok(Self { outputs })
    }

    /// `None` if nothing is expected.
    pub fn compare(
        &self,
        name: &str,
        found: &Tensor,
        tolerance: Option<f64>,
    ) -> Result<Option<Comparison>> {
        let Some(expected) = self.outputs.get(name) else {
            return Ok(None);
        };
        let tolerance = tolerance.unwrap_or(expected.tolerance);
        let Some(difference) = compare(found, &expected.value, tolerance) else {
            return Err(Error::file(&expected.path, "wrong shape"));
        };
        let worst = difference
            .worst
            .filter(|_| !difference.within())
            .and_then(|at| {
                let value = found.values().nth(at)?;
                let wanted = expected.value.values().nth(at)?;
                Some((found.coordinates(at), Number(value), Number(wanted)))
            });
        Ok(Some(Comparison {
            matches: difference.within(),
            expected: expected.path.clone(),
            reference: expected.reference.clone(),
            tolerance,
            different: difference.different,
            outside: difference.outside,
            elements: difference.elements,
            max_relative: Number(difference.max_relative),
            worst,
        }))
    }
}
