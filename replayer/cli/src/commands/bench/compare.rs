// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times beside those of a saved report.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use gpureplay_host::statistics::Summary;
use gpureplay_library::{Phase, json_path, read_named, shown, text};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::common::failure::Failure;

const MAX_BYTES: u64 = 1 << 28;

pub(super) struct Saved {
    path: PathBuf,
    summaries: BTreeMap<String, Summary>,
}

#[derive(Deserialize)]
struct SavedReport {
    summaries: BTreeMap<String, Summary>,
}

/// How the runs differ from saved ones.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(super) struct Comparison {
    /// The saved report.
    #[serde(serialize_with = "json_path::one")]
    #[cfg_attr(test, schemars(with = "PathBuf"))]
    with: PathBuf,
    /// The run as a whole, and its phases.
    times: BTreeMap<&'static str, Difference>,
}

/// How the times of one thing differ.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct Difference {
    saved: Summary,
    /// The change of the mean, as a part of the saved one; `None` if that is 0.
    change: Option<f64>,
    /// Whether chance hardly explains it.
    significant: bool,
}

impl Saved {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let wrong = |reason: String| Failure::Input(format!("{}: {reason}", shown(path)));
        let bytes = read_named(path, MAX_BYTES)?;
        let saved: SavedReport = serde_json::from_slice(&bytes).map_err(|error| {
            wrong(format!(
                "not a report of `gpureplay bench -o FILE.json`: {error}"
            ))
        })?;
        let numbers = saved.summaries.values().all(|summary| {
            let all = [
                summary.mean,
                summary.deviation,
                summary.minimum,
                summary.maximum,
            ];
            all.iter().all(|number| (0.0..=1e9).contains(number))
        });
        match numbers && saved.summaries.contains_key("run") {
            true => Ok(Self {
                path: path.to_path_buf(),
                summaries: saved.summaries,
            }),
            false => Err(wrong("its times are no times".into())),
        }
    }

    pub(super) fn compared_with(self, now: &BTreeMap<&'static str, Summary>) -> Comparison {
        let difference = |(name, now): (&&'static str, &Summary)| {
            let saved = *self.summaries.get(*name)?;
            let difference = Difference {
                saved,
                change: (saved.mean > 0.0).then(|| now.change_from(&saved)),
                significant: now.differs_from(&saved),
            };
            Some((*name, difference))
        };
        Comparison {
            times: now.iter().filter_map(difference).collect(),
            with: self.path,
        }
    }
}

impl Comparison {
    pub(super) fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "  beside {}", shown(&self.with))?;
        for name in ["run"].into_iter().chain(Phase::ALL.map(Phase::name)) {
            let Some(found) = self.times.get(name) else {
                continue;
            };
            let change = match found.change {
                _ if !found.significant => "no more than chance explains".into(),
                Some(change) if change < 0.0 => format!("{:.1} % less now", change * -100.0),
                Some(change) => format!("{:.1} % more now", change * 100.0),
                None => "more now".into(),
            };
            writeln!(
                out,
                "  {name:9} {:>9} {:>10}   {change}",
                text::seconds(found.saved.mean),
                text::seconds(found.saved.deviation)
            )?;
        }
        Ok(())
    }
}
