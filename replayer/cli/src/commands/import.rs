// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay import`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_host::beneath;
use gpureplay_import::{Description, Diagnosis, Imported, Options, Original, built_in, convert};
use gpureplay_tensors::{Stated, read_npy};
use serde::Serialize;

use crate::common::constant;
use crate::common::destinations::Destinations;
use crate::common::failure::{Failure, Outcome};
use crate::common::terminal;
use crate::common::user_tensors::{StatedOptions, suggestion};
use crate::manifest::{self, Manifest};
use gpureplay_library::{Recording, shown};

use crate::{Result, files, text};

/// As of a manifest. The program's own have a few thousand bytes.
const MAX_DESCRIPTION: u64 = 1 << 20;

const HISTORY: &str = "registers.csv";

const EXAMPLES: &str = "\
Examples:
  gpureplay import old/mnist
      writes recordings/mnist/; a description that comes with the program names the tensors
  gpureplay import old/mnist -o recordings/digits --weights trained/
      with weights inside, from trained/conv1.weight.npy and so on
  gpureplay import old/other --description other.toml
      with your own names for tensors and layers
  gpureplay import old/other --suggest > tensors.toml; gpureplay import old/other --tensors tensors.toml
      names and shapes for the ranges that the app synchronised, when tensors.toml has been changed
  gpureplay import old/other --check
      only says what is in the files and what is wrong with them";

/// Convert a recording of GPUReplay (2022)
///
/// Reads the four files gr_io_history, gr_pgt, gr_mem_contents and gr_sync_as. They contain no weights: bind these on every
/// run, or put them into the recording with --weights. Defects of the files are reported by name.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// Directory with the four files
    directory: PathBuf,
    /// Directory to write [default: recordings/NAME]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// TOML file with names of tensors and layers, instead of the one that comes with the program
    #[arg(long, short_alias = 'd', value_name = "FILE.toml")]
    description: Option<PathBuf>,
    /// Use no description: all jobs in one segment, tensors without names
    #[arg(long, conflicts_with = "description")]
    plain: bool,
    #[command(flatten)]
    stated: StatedOptions,
    /// Print names, types and shapes of the ranges that no description knows, to be changed and given to --tensors; write no recording
    #[arg(long, conflicts_with_all = ["check", "json"])]
    suggest: bool,
    /// Directory with NAME.npy for weights that the recording is to contain
    #[arg(long, short_alias = 'w', value_name = "DIR")]
    weights: Option<PathBuf>,
    /// Leave out job chains whose descriptors are not in the files
    #[arg(long)]
    drop_lost_chains: bool,
    /// Replace an existing recording
    #[arg(short, long)]
    force: bool,
    /// Write nothing
    #[arg(long)]
    check: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What was converted, for `--json`.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Report {
    recording: String,
    /// Where it was written; nothing with `--check`.
    directory: Option<PathBuf>,
    bytes: usize,
    fingerprint: String,
    chains: usize,
    jobs: usize,
    mapped_bytes: u64,
    register_accesses: usize,
    /// What is wrong with the original.
    defects: Vec<DefectReport>,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct DefectReport {
    name: &'static str,
    /// The file that it was found in.
    file: &'static str,
    text: String,
}

impl Import {
    pub(crate) fn execute(&self) -> Result {
        let original = gpureplay_import::read_directory(&self.directory)
            .map_err(|error| Failure::Input(error.to_string()))?;
        for diagnosis in &original.diagnoses {
            terminal::note(format!("{diagnosis}"));
        }
        let fails = |error: gpureplay_import::ConvertError| {
            Failure::Recording(format!("{}: {error}", shown(&self.directory)))
        };
        let mut options = Options {
            drop_lost: self.drop_lost_chains,
            ..Options::default()
        };
        let mut imported = convert(&original, &options).map_err(fails)?;
        for diagnosis in &imported.diagnoses {
            terminal::note(format!("{diagnosis}"));
        }
        options.description = self.described(imported.fingerprint)?;
        if options.description.is_none() && !self.plain {
            terminal::note(format!(
                "no description of this recording (fingerprint {:016x}): tensors are the ranges that the app synchronised; name them by --tensors (--suggest prints such a file), or write a description",
                imported.fingerprint
            ));
        }
        options.values = self.values(options.description.as_ref())?;
        options.stated = self.stated.read()?;
        if options.description.is_some() || options.stated != Stated::default() {
            imported = convert(&original, &options).map_err(fails)?;
        }
        if self.suggest {
            let ranges = imported.ranges.iter();
            let ranges =
                ranges.map(|(kind, name, form)| (kind.name(), name.as_str(), form.clone()));
            terminal::stdout().write_all(suggestion(ranges).as_bytes())?;
            return Ok(Outcome::Done);
        }
        if let Ok(recording) = Recording::from_bytes(imported.recording.clone()) {
            for (_, remark) in constant::remarks(&recording) {
                terminal::note(remark);
            }
        }
        let name = self.name(options.description.as_ref());
        let output = match &self.output {
            Some(directory) => directory.clone(),
            None => Path::new("recordings").join(&name),
        };
        if !self.check {
            let manifest = self.manifest(&name, &original, &options);
            self.write(&output, &original, &imported, &manifest)?;
        }
        let defects: Vec<&Diagnosis> = original
            .diagnoses
            .iter()
            .chain(&imported.diagnoses)
            .collect();
        self.report(&name, &output, &original, &imported, &defects)?;
        Ok(Outcome::Done)
    }

    fn described(&self, fingerprint: u64) -> Result<Option<Description>> {
        if self.plain {
            return Ok(None);
        }
        let Some(path) = &self.description else {
            return built_in(fingerprint).map_err(|error| Failure::Input(error.to_string()));
        };
        let wrong = |error: String| Failure::Input(format!("{}: {error}", shown(path)));
        let text = std::fs::File::open(path)
            .and_then(|file| beneath::contents(file, MAX_DESCRIPTION))
            .map_err(|error| wrong(error.to_string()))?;
        let text = String::from_utf8(text).map_err(|error| wrong(error.to_string()))?;
        let description = Description::parse(&text).map_err(|error| wrong(error.to_string()))?;
        let own = format!("{fingerprint:016x}");
        match &description.fingerprint {
            Some(other) if *other != own => Err(wrong(format!(
                "describes the recording with the fingerprint {other}; that of {} is {own}",
                shown(&self.directory)
            ))),
            _ => Ok(Some(description)),
        }
    }

    fn values(&self, description: Option<&Description>) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut values = BTreeMap::new();
        let Some(directory) = &self.weights else {
            return Ok(values);
        };
        let Some(description) = description else {
            return Err(Failure::Usage(
                "--weights needs a description that names the weights".into(),
            ));
        };
        let weights = description.tensor.iter().filter(|t| t.kind == "weight");
        for entry in weights {
            let path = directory.join(format!("{}.npy", entry.name));
            if !path.exists() {
                continue;
            }
            let wrong = |reason: String| Failure::Input(format!("{}: {reason}", shown(&path)));
            let tensor = read_npy(&path).map_err(|error| wrong(error.to_string()))?;
            let shape: Vec<u64> = entry.shape.iter().copied().map(u64::from).collect();
            if tensor.dtype().name() != entry.dtype || tensor.shape() != shape {
                return Err(wrong(format!(
                    "is {} {:?}; {} is {} {:?}",
                    tensor.dtype().name(),
                    tensor.shape(),
                    entry.name,
                    entry.dtype,
                    shape
                )));
            }
            values.insert(entry.name.clone(), tensor.bytes().to_vec());
        }
        if values.is_empty() {
            let names = description.tensor.iter().filter(|t| t.kind == "weight");
            return Err(Failure::Input(format!(
                "{} has none of the weights: {}",
                shown(directory),
                names
                    .map(|t| format!("{}.npy", t.name))
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        }
        Ok(values)
    }

    fn name(&self, description: Option<&Description>) -> String {
        let path = match (&self.output, description) {
            (Some(output), _) => output.clone(),
            (None, Some(description)) => return description.name.clone(),
            (None, None) => self
                .directory
                .canonicalize()
                .unwrap_or_else(|_| self.directory.clone()),
        };
        path.file_name()
            .map_or_else(|| "imported".into(), |n| n.to_string_lossy().into_owned())
    }

    fn manifest(&self, name: &str, original: &Original, options: &Options) -> Manifest {
        let about = options.description.as_ref().map(|d| d.about.trim());
        let mut provenance = BTreeMap::from([
            (
                "source".to_owned(),
                "original GPUReplay recording, imported".to_owned(),
            ),
            (
                "not in the files".to_owned(),
                "weights, names, cache state".to_owned(),
            ),
        ]);
        let importer = format!("gpureplay {} import", env!("CARGO_PKG_VERSION"));
        provenance.insert("recorder".into(), importer);
        if let Some(id) = original.history.gpu_id() {
            provenance.insert("gpu".into(), mali_drive::names::gpu(id).to_string());
            provenance.insert("GPU_ID".into(), format!("{id:#010x}"));
        }
        Manifest {
            version: manifest::VERSION,
            name: name.to_owned(),
            description: about
                .unwrap_or("Imported; nothing is known about it")
                .to_owned(),
            command: format!("gpureplay import {}", name),
            provenance,
            ..Manifest::default()
        }
    }

    fn write(
        &self,
        output: &Path,
        original: &Original,
        imported: &Imported,
        manifest: &Manifest,
    ) -> Result<()> {
        let failed =
            |path: &Path, error: String| Failure::Output(format!("{}: {error}", shown(path)));
        let file = output.join(files::FILE_NAME);
        if file.exists() && !self.force {
            return Err(Failure::Output(format!(
                "{} exists; give --force to replace it, or another directory with --output",
                shown(&file)
            )));
        }
        let toml = manifest.to_text()?;
        std::fs::create_dir_all(output).map_err(|error| failed(output, error.to_string()))?;
        let history = original.history.to_csv();
        // Last: where it exists, the rest does too.
        let files: [(&str, &[u8]); 3] = [
            (HISTORY, history.as_bytes()),
            (manifest::FILE_NAME, toml.as_bytes()),
            (files::FILE_NAME, &imported.recording),
        ];
        let mut destinations = Destinations::new(self.force);
        if let Ok(entries) = std::fs::read_dir(&self.directory) {
            for entry in entries.flatten() {
                destinations.reads(&entry.path());
            }
        }
        for (name, _) in files {
            destinations.claim_here(&output.join(name))?;
        }
        for (name, bytes) in files {
            destinations.write_here(&output.join(name), bytes)?;
        }
        Ok(())
    }

    fn report(
        &self,
        name: &str,
        output: &Path,
        original: &Original,
        imported: &Imported,
        defects: &[&Diagnosis],
    ) -> Result<()> {
        let mut out = match self.json {
            true => terminal::stdout(),
            false => terminal::report(false),
        };
        let jobs: usize = imported.chains.iter().map(|c| c.jobs.len()).sum();
        let found: u64 = defects.iter().map(|defect| defect.count()).sum();
        let accesses = original.history.accesses.len();
        if self.json {
            let defects = defects.iter().map(|defect| DefectReport {
                name: defect.name(),
                file: defect.file(),
                text: defect.to_string(),
            });
            let value = Report {
                recording: name.to_string(),
                directory: (!self.check).then(|| output.to_path_buf()),
                bytes: imported.recording.len(),
                fingerprint: format!("{:016x}", imported.fingerprint),
                chains: imported.chains.len(),
                jobs,
                mapped_bytes: imported.mapped_bytes,
                register_accesses: accesses,
                defects: defects.collect(),
            };
            return terminal::json(&mut out, &value);
        }
        if self.check {
            write!(out, "{name}: ")?;
        } else {
            write!(out, "{}: ", shown(output))?;
        }
        writeln!(
            out,
            "{} chains with {jobs} jobs, {} of GPU memory, {accesses} register accesses; recording of {}, {found} defects",
            imported.chains.len(),
            text::bytes(imported.mapped_bytes),
            text::bytes(imported.recording.len() as u64)
        )?;
        Ok(())
    }
}
