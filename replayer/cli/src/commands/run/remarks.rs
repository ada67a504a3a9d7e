// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may make an answer worthless.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gpureplay_library::device::Choice;
use gpureplay_library::values::picture_remark;
use gpureplay_library::{Bindings, ElementType, Files, Recording, escaped, shown};

use super::Run;
use crate::Result;
use crate::common::constant;
use crate::common::terminal;

impl Run {
    /// Only if the model runs the whole recording anyway.
    pub(super) fn constant_outputs(&self, recording: &Recording) -> Vec<String> {
        if !matches!(self.on.device(), Choice::Model(_)) || self.layers.chosen() {
            return Vec::new();
        }
        let found = constant::remarks(recording).into_iter();
        let said = found.map(|(name, remark)| {
            terminal::note(format!("{}: {remark}", shown(&self.recording)));
            name
        });
        said.collect()
    }

    pub(super) fn remarks(
        &self,
        files: &Files,
        bindings: &Bindings,
        inputs: &BTreeMap<String, PathBuf>,
    ) -> Result<Vec<String>> {
        let mut remarks = Vec::new();
        let manifest = files.manifest.as_ref();
        let weights = manifest.and_then(|manifest| manifest.provenance.get("weights"));
        let untrained = weights.filter(|text| text.contains("not trained"));
        if let (Some(text), None) = (untrained, &self.weights) {
            remarks.push(format!(
                "{}: weights {}: the answer says nothing about the input (--weights FILE puts others)",
                shown(&self.recording),
                escaped(text)
            ));
        }
        for (name, path) in inputs {
            let (index, info) = bindings.named(name)?;
            let format = manifest.and_then(|manifest| manifest.images.get(name));
            let remark = format.map(|format| picture_remark(path, info, format));
            if let Some(remark) = remark.transpose()?.flatten() {
                remarks.push(format!(
                    "input `{}`: {} is {remark}, as the manifest says",
                    escaped(name),
                    shown(path)
                ));
            }
            let float = matches!(
                info.dtype,
                ElementType::F16 | ElementType::F32 | ElementType::F64
            );
            let value = bindings.value(index).filter(|_| float);
            let count = value.map_or(0, |value| value.values().filter(|it| it.is_nan()).count());
            let name = escaped(name);
            match count {
                0 => {}
                1 => remarks.push(format!("input `{name}`: 1 element is NaN")),
                _ => remarks.push(format!("input `{name}`: {count} elements are NaN")),
            }
        }
        Ok(remarks)
    }
}
