// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads what `gpureplay analyse --json` wrote.

use std::path::Path;

use gpureplay_jobs::analysis::report::{FORMAT, Report};
use gpureplay_library::weights::sha256;
use gpureplay_library::{Recording, read_named, shown};

use crate::Result;
use crate::common::failure::Failure;

/// Analyses of the largest networks are a tenth of it.
const MAX_BYTES: u64 = 256 << 20;

pub(crate) fn read(path: &Path, recording: &Recording) -> Result<Report> {
    let wrong = |why: &str| Failure::Input(format!("{}: {why}", shown(path)));
    let text = read_named(path, MAX_BYTES)?;
    let report: Report = serde_json::from_slice(&text).map_err(|error| {
        wrong(&format!(
            "is not what `gpureplay analyse --json` writes: {error}"
        ))
    })?;
    if report.format != FORMAT {
        let why = format!("has the format {}; expected {FORMAT}", report.format);
        return Err(wrong(&why));
    }
    if report.recording_sha256 != sha256(&recording.recorded().files().bytes) {
        let why = format!(
            "is about another recording, {}; `gpureplay analyse {} --json` makes one about this",
            report.recording,
            shown(&recording.files().path)
        );
        return Err(wrong(&why));
    }
    Ok(report)
}
