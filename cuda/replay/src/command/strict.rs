// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--strict`: hooks against CUPTI.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use tempfile::TempDir;

use crate::command::attempt::private_folder;
use crate::command::failure::{Failure, Outcome, texts};
use crate::command::report::note;
use crate::command::setting::set;

/// Where CUPTI is, and whether launches are counted by it.
#[derive(Args)]
pub(crate) struct Strict {
    /// Count launches of each kernel with CUPTI too, and fail if one was missed.
    #[arg(long)]
    strict: bool,
    /// The file of CUPTI; else it is looked for.
    #[arg(long, value_name = "FILE")]
    cupti: Option<PathBuf>,
}

impl Strict {
    pub(crate) fn cupti(&self) -> PathBuf {
        self.cupti.clone().unwrap_or_else(find_cupti)
    }

    pub(crate) fn prepare(&self, command: &mut Command) -> Result<Option<TempDir>, Failure> {
        let folder = self.strict.then(|| private_folder("strict")).transpose()?;
        if self.strict {
            set(command, "CUPTI", Some(self.cupti()));
        }
        set(command, "STRICT", folder.as_ref().map(TempDir::path));
        Ok(folder)
    }
}

/// A failed program's exit code stays.
pub(crate) fn conclude(folder: Option<&TempDir>, code: ExitCode) -> Outcome {
    let Some(folder) = folder.map(TempDir::path) else {
        return Ok(code);
    };
    let mut tally = Tally::default();
    for text in texts(folder)? {
        tally.processes += 1;
        text.lines().for_each(|line| tally.add(line));
    }
    let complaints = tally.complaints();
    for complaint in &complaints {
        note!("{complaint}");
    }
    if complaints.is_empty() {
        let launches: u64 = tally.rows.values().map(|[hooks, _]| hooks).sum();
        note!(
            "{launches} launches of {} kernels: the hooks saw what CUPTI saw",
            tally.rows.len()
        );
        return Ok(code);
    }
    Ok(match code == ExitCode::SUCCESS {
        true => ExitCode::from(1),
        false => code,
    })
}

#[derive(Default)]
struct Tally {
    processes: usize,
    without_cupti: usize,
    rows: BTreeMap<String, [u64; 2]>,
}

impl Tally {
    fn add(&mut self, line: &str) {
        let mut fields = line.split('\t');
        let (name, numbers) = (fields.next(), fields.map(str::parse::<u64>));
        match (name, numbers.collect::<Result<Vec<_>, _>>().as_deref()) {
            (Some(name), Ok([hooks, cupti])) => {
                let row = self.rows.entry(name.to_owned()).or_default();
                row[0] += hooks;
                row[1] += cupti;
            }
            _ => self.without_cupti += 1,
        }
    }

    fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.processes == 0 {
            complaints.push(
                "no process told of its launches: none used CUDA, or none ended in order"
                    .to_owned(),
            );
        }
        if self.without_cupti > 0 {
            complaints.push("CUPTI counts nothing here: launches cannot be compared".to_owned());
        }
        let differ = self
            .rows
            .iter()
            .filter(|(_, [hooks, cupti])| hooks != cupti);
        complaints.extend(differ.map(|(name, [hooks, cupti])| {
            format!("{name}: the hooks saw {hooks} launches, CUPTI {cupti}")
        }));
        complaints
    }
}

/// From CUDA's installer, else its name alone.
fn find_cupti() -> PathBuf {
    let root =
        std::env::var_os("CUDA_HOME").map_or_else(|| "/usr/local/cuda".into(), PathBuf::from);
    let folders = ["extras/CUPTI/lib64", "targets/x86_64-linux/lib", "lib64"];
    let names = ["libcupti.so.13", "libcupti.so.12"];
    let all = folders
        .iter()
        .flat_map(|folder| names.map(|name| root.join(folder).join(name)));
    all.into_iter()
        .find(|path| Path::exists(path))
        .unwrap_or_else(|| "libcupti.so.13".into())
}
