// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors that OpenCL calls show, against those that an app's files show in the same traces.

use std::{collections::BTreeSet, path::Path, process::Command};

use super::{Recording, tensors::tensors};
use crate::{build::step::logged, error::Result};

/// Everything but the name and the shape, which calls do not tell.
type Place = (String, String, u64, u64);

impl Recording<'_> {
    /// Compiles the traces without a file of the app's. Returns how many tensors that finds, or which ones differ from those of the
    /// recording that was compiled with files.
    pub(crate) fn compare_noted(
        &self,
        program: &Path,
        recording: &Path,
    ) -> Result<std::result::Result<usize, String>> {
        let noted = self.work.join("noted");
        let mut compile = Command::new(program);
        compile
            .current_dir(self.work)
            .args(["compile", "trace", "--second", "trace2", "--force", "-o"])
            .arg(&noted);
        let log = self.folder.local.join("log/noted.log");
        logged(&mut compile, "compiling without files", &log)?;
        let (noted, tagged) = (places(program, &noted)?, places(program, recording)?);
        let differing: Vec<String> = noted
            .symmetric_difference(&tagged)
            .map(|place| {
                let (kind, element, elements, address) = place;
                let who = if noted.contains(place) {
                    "calls"
                } else {
                    "files"
                };
                format!("{kind} {element}[{elements}] at {address:#x} by {who} only")
            })
            .collect();
        Ok(match differing.is_empty() {
            true => Ok(noted.len()),
            false => Err(differing.join(", ")),
        })
    }
}

fn places(program: &Path, recording: &Path) -> Result<BTreeSet<Place>> {
    let places = tensors(program, recording)?.into_iter();
    let places = places.filter_map(|tensor| {
        let elements = tensor.shape.iter().product();
        let is_part = tensor.kind == "intermediate";
        (!is_part).then_some((tensor.kind, tensor.element, elements, tensor.address))
    });
    Ok(places.collect())
}
