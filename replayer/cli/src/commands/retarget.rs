// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay retarget`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_library::files::FILE_NAME;
use gpureplay_library::manifest::Variant;
use gpureplay_library::variants::variant_file;
use gpureplay_library::weights::sha256;
use gpureplay_library::{Files, Manifest, manifest, shown};
use gpureplay_retarget::{CompareError, Compared, Effort, Options, Retargeted, compare, retarget};
use serde::Serialize;

use crate::common::destinations::{Destinations, Force};
use crate::common::edited;
use crate::common::failure::{Failure, Outcome};
use crate::common::gpu_argument::{Gpu, gpu};
use crate::common::model_options::ModelOptions;
use crate::common::new_directory::NewDirectory;
use crate::common::terminal;
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay retarget recordings/digits-g52 --gpu rk3566 -o digits-rk3566
      recorded on one GPU, to be replayed on the GPU of a board
  gpureplay retarget recordings/lenet-g52 --gpu g31 --gpu g76 -o lenet
      writes lenet/g31 and lenet/g76
  gpureplay retarget recordings/lenet-g52 --gpu g76 --limit-cores -o lenet-g76
      jobs run on as many cores as the recorded GPU has; no memory is added
  gpureplay retarget recordings/lenet-g52 --gpu rk3566 --gpu h616 --variants -o lenet
      one recording for three GPUs
  gpureplay verify --deep --for g31 recordings/*
      which recordings could run there as they are
Nothing is written before everything is proved. No real GPU takes part: say so when you pass the recording on.";

/// Convert a recording for another GPU
///
/// Changes what ties it to the recorded GPU: identity, settings, storage for the threads of its cores. Names rule and job where the
/// other GPU lacks an instruction, a limit or a format. The same if a shader looks at cores or warps that differ. Then both
/// recordings run on the models of their GPUs, and all memory is compared after every chain.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Retarget {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// The GPU, or a board that has it; may be given several times
    #[arg(long = "gpu", value_name = "GPU|BOARD", required = true, value_parser = gpu)]
    gpus: Vec<Gpu>,
    /// The directory to write; with several GPUs one in it for each
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Write one directory: the recording as it is, and a variant for each GPU, which share its data; `run` takes the one that fits
    #[arg(long)]
    variants: bool,
    /// Allow architecture versions 6 (G71, G72) and 7 to be mixed, with changed descriptors; never seen on silicon
    #[arg(long)]
    mix_versions: bool,
    /// On a GPU with more cores use only those that have recorded storage, instead of giving all of them storage
    #[arg(long)]
    limit_cores: bool,
    /// How many inputs are compared: cases of the manifest, then random values [default: all cases]
    #[arg(
        long,
        alias = "inputs",
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    trials: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    model: ModelOptions,
}

struct Made {
    gpu: Gpu,
    /// Directory of the recording, or a variant's file.
    place: PathBuf,
    retargeted: Retargeted,
    compared: Compared,
}

impl Retarget {
    pub(crate) fn execute(&self) -> Result {
        let files = Files::read(&self.recording)?;
        let view = files.view()?;
        let verified = files.verify(&view)?;
        let mut destinations = Destinations::new(self.force.force);
        destinations.reads_recording(&files);
        let mut places = Vec::new();
        for gpu in &self.gpus {
            let directory = match self.gpus.len() {
                _ if self.variants => self.output.join(variant_name(gpu)),
                1 => self.output.clone(),
                _ => self.output.join(&gpu.name),
            };
            places.push(directory);
        }
        let directories = match self.variants {
            true => vec![self.output.clone()],
            false => places.clone(),
        };
        let directories = directories.into_iter();
        let directories: Vec<NewDirectory> = directories
            .map(|directory| NewDirectory::new(directory, self.force))
            .collect::<Result<_>>()?;
        let options = Options {
            mix_versions: self.mix_versions,
            limit_cores: self.limit_cores,
        };
        let model = gpureplay_library::ModelOptions::from(self.model);
        let effort = Effort {
            inputs: self.trials,
            work_limit: model.work_limit,
        };
        let mut all = Vec::new();
        for (gpu, place) in self.gpus.iter().zip(&places) {
            let refused = |text: String| {
                let from = shown(&self.recording);
                Failure::Recording(format!("{from} for {}: {text}", gpu.name))
            };
            let chains = verified.chains().map_err(|error| {
                refused(format!("{error}; they are not converted for another GPU"))
            })?;
            let retargeted = retarget(chains, gpu.profile, &options)
                .map_err(|refusal| refused(refusal.to_string()))?;
            let read = || Files::read(&self.recording);
            let compared = compare(read, &retargeted, effort).map_err(|error| match error {
                CompareError::Library(error) => Failure::from(error),
                CompareError::NoMemory(_) => Failure::Device(error.to_string()),
                CompareError::Refused(refusal) => refused(refusal.to_string()),
            })?;
            all.push(Made {
                gpu: gpu.clone(),
                place: place.clone(),
                retargeted,
                compared,
            });
        }
        // Prove all before writing the first.
        let contents = match self.variants {
            true => vec![self.together(&files, &all)?],
            false => all
                .iter()
                .map(|made| self.contents(&files, made))
                .collect::<Result<_>>()?,
        };
        for (directory, contents) in directories.iter().zip(contents) {
            directory.write(&contents, &destinations)?;
        }
        self.report(&files, &all)?;
        Ok(Outcome::Done)
    }

    fn contents(&self, files: &Files, made: &Made) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut contents = files.beside()?;
        let bytes = made.retargeted.bytes.clone();
        if let Some(manifest) = &files.manifest {
            let mut manifest = manifest.clone();
            manifest.drop_variants(&mut contents);
            let name = made.place.file_name().and_then(|name| name.to_str());
            manifest.name = name.unwrap_or(&made.gpu.name).to_owned();
            let mut know = |key: &str, value: String| manifest.provenance.insert(key.into(), value);
            let recorded = know("gpu", made.retargeted.target.gpu_id.to_string());
            let source = made.retargeted.source.gpu_id.to_string();
            know("recorded on", recorded.unwrap_or(source));
            know("retargeted from", sha256(&files.bytes));
            know("retargeted", self.claim(made));
            know("sha256", sha256(&bytes));
            let text = manifest.to_text()?;
            contents.insert(manifest::FILE_NAME.into(), text.into_bytes());
        }
        contents.insert(FILE_NAME.into(), bytes);
        Ok(contents)
    }

    fn together(&self, files: &Files, all: &[Made]) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut contents = files.beside()?;
        let first = files.parse()?;
        let mut manifest = files.manifest.clone().unwrap_or_else(|| Manifest {
            version: manifest::VERSION,
            name: files.name(),
            ..Manifest::default()
        });
        let sha = sha256(&files.bytes);
        manifest.provenance.insert("sha256".into(), sha);
        for made in all {
            let bytes = &made.retargeted.bytes;
            let other = gpureplay_format::Recording::parse(bytes);
            let file = other.ok().and_then(|other| variant_file(&first, &other));
            let file = file.ok_or_else(|| {
                let gpu = &made.gpu.name;
                Failure::Recording(format!("the data for {gpu} are others"))
            })?;
            let name = variant_name(&made.gpu);
            manifest.variants.retain(|it| it.file != Path::new(&name));
            manifest.variants.push(Variant {
                gpu: made.gpu.name.clone(),
                file: PathBuf::from(&name),
                sha256: sha256(bytes),
                made: self.claim(made),
            });
            contents.insert(name, file);
        }
        contents.insert(manifest::FILE_NAME.into(), manifest.to_text()?.into_bytes());
        contents.insert(FILE_NAME.into(), files.bytes.clone());
        Ok(contents)
    }

    fn claim(&self, made: &Made) -> String {
        let Compared { inputs, chains, .. } = made.compared;
        let mixed = made.retargeted.source.architecture != made.retargeted.target.architecture;
        format!(
            "by gpureplay {} for {}; memory is equal on the models of both GPUs after each of {} for {}; not seen on silicon{}",
            env!("CARGO_PKG_VERSION"),
            made.gpu.name,
            text::count(chains as u64, "chain"),
            text::count(inputs as u64, "input"),
            if mixed {
                "; architecture versions are mixed"
            } else {
                ""
            }
        )
    }

    fn report(&self, files: &Files, all: &[Made]) -> Result<()> {
        if self.json {
            let list: Vec<_> = all.iter().map(Report::of).collect();
            return terminal::json(&mut terminal::stdout(), &list);
        }
        let mut out = terminal::report(false);
        for made in all {
            let Compared {
                inputs,
                chains,
                bytes,
                races,
            } = made.compared;
            writeln!(
                out,
                "{}  {}, {} proved; {} equal after each of {} for {}",
                shown(&made.place),
                made.retargeted.target.gpu_id,
                text::count(made.retargeted.jobs as u64, "job"),
                text::bytes(bytes),
                text::count(chains as u64, "chain"),
                text::count(inputs as u64, "input"),
            )?;
            for line in changes(&made.retargeted) {
                writeln!(out, "  {line}")?;
            }
            if let Some(chain) = races {
                writeln!(
                    out,
                    "  note: memory after chain {chain} depends on the order of work groups, on the recorded GPU too; outputs do not"
                )?;
            }
        }
        edited::say_unsigned(&mut out, files)?;
        writeln!(
            out,
            "not seen on silicon: the models of the GPUs were compared"
        )?;
        Ok(())
    }
}

fn variant_name(gpu: &Gpu) -> String {
    format!("{}.variant", gpu.name.to_ascii_lowercase())
}

fn cores(made: &Retargeted) -> (u32, u32) {
    let present = made.target.shader_present;
    let used = present & !u64::from(made.unused_cores);
    (used.count_ones(), present.count_ones())
}

fn changes(made: &Retargeted) -> Vec<String> {
    let mut lines = vec![format!(
        "identity: {} instead of {}",
        made.target.gpu_id, made.source.gpu_id
    )];
    let (used, cores) = cores(made);
    if used != cores {
        lines.push(format!("cores: {used} of {cores} are used"));
    }
    for setting in &made.settings {
        let name = text::register(setting.register.into());
        lines.push(match setting.value {
            Some(value) => format!("{name}: {value:#x} instead of {:#x}", setting.recorded),
            None => format!("{name}: not written ({:#x})", setting.recorded),
        });
    }
    for grown in &made.grown {
        lines.push(format!(
            "storage at {:#x}: {} at {:#x}, for {} cores",
            grown.old,
            text::bytes(u64::from(grown.pages) * 4096),
            grown.new,
            cores
        ));
    }
    let words = made.descriptors.len() as u64;
    if words > 0 {
        lines.push(format!("{} of descriptors", text::count(words, "word")));
    }
    lines
}

/// A recording for one GPU, for `--json`.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Report {
    /// The directory, or the file of a variant.
    #[serde(serialize_with = "gpureplay_library::json_path::one")]
    #[cfg_attr(test, schemars(with = "PathBuf"))]
    directory: PathBuf,
    gpu: String,
    recorded_gpu: String,
    jobs: usize,
    /// Cores of the GPU that jobs run on.
    cores_used: u32,
    /// Cores that it has.
    cores: u32,
    /// Registers whose value is another one.
    settings: Vec<SettingReport>,
    /// Storage of threads that lies elsewhere, as the GPU has more cores.
    storage: Vec<StorageReport>,
    /// Words of descriptors that were changed.
    descriptor_words: usize,
    /// Inputs for which memory was compared on the models of both GPUs.
    inputs: usize,
    /// Chains after which it was.
    chains: usize,
    bytes_compared: u64,
    /// The first chain after which memory depends on the order of work groups.
    racing_chain: Option<usize>,
    /// Always false: the models of the GPUs are compared.
    seen_on_silicon: bool,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct SettingReport {
    register: String,
    recorded: u32,
    /// Nothing if it is not written.
    value: Option<u32>,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct StorageReport {
    from: String,
    to: String,
    bytes: u64,
}

impl Report {
    fn of(made: &Made) -> Self {
        let retargeted = &made.retargeted;
        let settings = retargeted.settings.iter().map(|one| SettingReport {
            register: text::register(one.register.into()),
            recorded: one.recorded,
            value: one.value,
        });
        let storage = retargeted.grown.iter().map(|one| StorageReport {
            from: format!("{:#x}", one.old),
            to: format!("{:#x}", one.new),
            bytes: u64::from(one.pages) * 4096,
        });
        let (cores_used, cores) = cores(retargeted);
        Self {
            cores_used,
            cores,
            directory: made.place.clone(),
            gpu: retargeted.target.gpu_id.to_string(),
            recorded_gpu: retargeted.source.gpu_id.to_string(),
            jobs: retargeted.jobs,
            settings: settings.collect(),
            storage: storage.collect(),
            descriptor_words: retargeted.descriptors.len(),
            inputs: made.compared.inputs,
            chains: made.compared.chains,
            bytes_compared: made.compared.bytes,
            racing_chain: made.compared.races,
            seen_on_silicon: false,
        }
    }
}
