// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --until` and `--layers`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use gpureplay_cuda_launch::recording::{Operation, Run, UNKNOWN_SUM};
use gpureplay_library::{layer_named, selection};

use super::{WholeReport, write};
use crate::RunSession;
use crate::command::check;
use crate::command::failure::{Failure, Outcome};
use crate::command::report::{say, say_json};
use crate::layers::{layers, parts};

/// Which layers of a whole run are done.
#[derive(Args)]
pub(crate) struct Layers {
    /// Run the layers of a whole run up to this one. By number or name, as `info` lists them; --state-out writes what they leave.
    #[arg(long, value_name = "LAYER", conflicts_with = "repeat")]
    until: Option<String>,
    /// Run these layers of a whole run, and those before them.
    #[arg(long, value_name = "FIRST..LAST", conflicts_with_all = ["until", "repeat"])]
    layers: Option<String>,
}

pub(crate) struct Done {
    layers: usize,
    name: String,
    end: u32,
}

impl Layers {
    pub(crate) fn given(&self) -> Option<&'static str> {
        let until = self.until.as_ref().map(|_| "--until");
        until.or_else(|| self.layers.as_ref().map(|_| "--layers"))
    }

    /// `None` means all layers.
    pub(crate) fn of(&self, run: &Run) -> Result<Option<Done>, Failure> {
        let all = layers(run);
        let last = match (&self.until, &self.layers) {
            (Some(name), _) => layer_named(&all, name).map(Some),
            (None, Some(text)) => selection::range(&all, text).map(|range| Some(range.end - 1)),
            (None, None) => Ok(None),
        };
        let last = last.map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(last.map(|last| Done {
            layers: last + 1,
            name: all[last].name.clone(),
            end: parts(run)[last].end,
        }))
    }
}

impl Done {
    pub(crate) fn execute(
        &self,
        session: &mut RunSession,
        number: u32,
        is_recorded: bool,
        (outputs, state_out, as_json): (&[(usize, PathBuf)], Option<&Path>, bool),
    ) -> Outcome {
        let done = &session.run().operations[..self.end as usize];
        let copied: Vec<usize> = done
            .iter()
            .filter_map(|one| match one {
                Operation::Out { output, .. } => Some(*output as usize),
                _ => None,
            })
            .collect();
        let launches = done.iter();
        let launches = launches.filter(|one| matches!(one, Operation::Launch { .. }));
        let launches = launches.count();
        if let Some((port, _)) = outputs.iter().find(|(port, _)| !copied.contains(port)) {
            return Err(Failure::Usage(format!(
                "--output {}: layers up to {} do not copy it; --state-out writes what they leave in memory",
                session.run().outputs[*port].name,
                self.name
            )));
        }
        let known = session.run().sums().nth(self.end as usize - 1);
        let known = known.filter(|sum| is_recorded && *sum != UNKNOWN_SUM);
        let verdict = match known {
            None => {
                session.execute_part(0..self.end)?;
                None
            }
            Some(known) => match session.sums(self.end)?.last() == Some(&known) {
                true => Some("exact"),
                false => Some("differs"),
            },
        };
        write(session, outputs, state_out)?;
        let report = WholeReport {
            run: number,
            launches,
            graph: false,
            verdict,
            differing: Vec::new(),
            turns: None,
            checked: check::state(session.run()),
            runs: None,
            median_us: None,
            least_us: None,
        };
        if as_json {
            say_json(&report)?;
        } else {
            let (layers, name) = (self.layers, &self.name);
            say!("run {number}: {layers} layers, up to {name}: {launches} launches, one by one");
            match verdict {
                Some("exact") => say!("  memory as recorded"),
                Some(_) => {
                    say!(
                        "  memory is not as recorded; diff --against recorded says where it begins"
                    )
                }
                None => say!("  memory is not compared"),
            }
        }
        Ok(ExitCode::from(u8::from(verdict == Some("differs"))))
    }
}
