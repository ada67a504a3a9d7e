// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay disasm`.

mod file;

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_edit::Interface;
use gpureplay_host::beneath;
use gpureplay_jobs::analysis::annotate::Notes;
use gpureplay_jobs::analysis::report::Report as Analysis;
use gpureplay_jobs::{Jobs, Shown};
use gpureplay_library::{Recording, escaped, shown};
use serde::Serialize;

use crate::common::analysis_file;
use crate::common::arguments::whole_number;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::{Failure, Outcome};
use crate::common::gpu_argument::{Gpu, any_gpu};
use crate::common::job_options::JobOptions;
use crate::common::terminal;
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay disasm recordings/saxpy-g52
  gpureplay disasm recordings/digits-g52 --jobs 3
  gpureplay disasm recordings/lenet-g52 --jobs layer:conv2
  gpureplay analyse recordings/lenet-g52 --json > lenet.json
  gpureplay disasm recordings/lenet-g52 --jobs layer:conv2 --annotate lenet.json
  gpureplay disasm code/e18c719edd19456a.bin      a file of --save, or of cargo xtask guest compile-kernel
  gpureplay disasm kernel.bin --gpu g57           a Valhall shader as a compiler writes it
  gpureplay disasm dispatch.bin --streams         a command stream of a Mali-G610
  gpureplay disasm recordings/digits-g52 --json | jq -r '.shaders[].hash'
Shaders are found by walking the job chains that the recording submits. docs/reference/isa.md describes the text.";

/// Print shaders
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Disasm {
    /// Directory with a recording.gpr, such a file, a pack, or a file with a shader's code that ends in .bin
    recording: PathBuf,
    /// As --jobs N
    #[arg(long, hide = true, value_name = "N", conflicts_with_all = ["shader", "jobs"], value_parser = whole_number::<usize>)]
    job: Option<usize>,
    #[command(flatten)]
    jobs: JobOptions,
    /// Only the shader at this address
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with = "jobs")]
    shader: Option<u64>,
    /// Also write the code of each shader to DIR/HASH.bin, and what its first job gives it to DIR/HASH.toml
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// The GPU that a file with code is for: g57 for Valhall; Bifrost's share one encoding
    #[arg(long, value_name = "GPU", value_parser = any_gpu)]
    gpu: Option<Gpu>,
    /// The file is a command stream of architecture 10 (Mali-G610), not a shader
    #[arg(long, conflicts_with_all = ["gpu", "json"])]
    streams: bool,
    /// Write what `gpureplay analyse --json` found in this recording beside clauses or blocks
    #[arg(long, value_name = "ANALYSIS.json")]
    annotate: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

fn address(text: &str) -> std::result::Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16)
        .map_err(|_| "expected a hexadecimal address such as 0x7f00040000".into())
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Report {
    recording: String,
    gpu: String,
    jobs: usize,
    shaders: Vec<ShaderReport>,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct ShaderReport {
    address: String,
    jobs: Vec<usize>,
    hash: Option<String>,
    bytes: Option<u64>,
    clauses: Option<u32>,
    instructions: Option<usize>,
    text: Option<String>,
    error: Option<String>,
}

impl Disasm {
    pub(crate) fn execute(&self) -> Result {
        if self.recording.extension().is_some_and(|end| end == "bin") && self.recording.is_file() {
            return self.file();
        }
        if self.gpu.is_some() || self.streams {
            return Err(Failure::Usage(format!(
                "{}: --gpu and --streams are about files with code, and a recording says which GPU it is for",
                shown(&self.recording)
            )));
        }
        let recording = Recording::open(&self.recording)?;
        let files = recording.files();
        let (table, selected) = self.jobs.select(&recording)?;
        let jobs = table.jobs.len();
        let mut shaders = found(&table);
        if self.jobs.chosen() {
            let chosen = |job: &usize| selected.binary_search(job).is_ok();
            shaders.retain(|shader| shader.jobs.iter().any(chosen));
        }
        if let Some(job) = self.job {
            shaders.retain(|shader| shader.jobs.contains(&job));
        }
        if let Some(address) = self.shader {
            shaders.retain(|shader| shader.address == address);
        }
        if shaders.is_empty() && (self.job.is_some() || self.shader.is_some()) {
            return Err(Failure::Usage(format!(
                "{}: no such shader; {}, and `gpureplay disasm {}` lists every shader",
                shown(&files.path),
                match jobs {
                    0 => "the recording has no jobs".to_owned(),
                    jobs => format!("jobs are 0 to {}", jobs - 1),
                },
                shown(&self.recording)
            )));
        }
        let analysis = self.annotate.as_deref();
        let analysis = analysis.map(|path| analysis_file::read(path, &recording));
        let analysis = analysis.transpose()?;
        if let Some(directory) = &self.save {
            let mut destinations = Destinations::new(self.force.force);
            destinations.reads_recording(files);
            for shader in &shaders {
                let Ok(code) = shader.code else {
                    continue;
                };
                let path = directory.join(format!("{:016x}.bin", code.hash()));
                std::fs::create_dir_all(directory)
                    .map_err(|error| Failure::Output(format!("{}: {error}", shown(directory))))?;
                let job = shader.jobs.first().and_then(|job| table.jobs.get(*job));
                let interface = job.and_then(|job| Interface::of(job, table.profile));
                let interface = interface.map(|it| toml::to_string(&it)).transpose();
                let interface = interface.map_err(|error| Failure::Output(error.to_string()))?;
                let files = [
                    (
                        path.with_extension("toml"),
                        interface.map(String::into_bytes),
                    ),
                    (path, Some(code.bytes().to_vec())),
                ];
                for (path, contents) in files {
                    let Some(contents) = contents else {
                        continue;
                    };
                    // The name follows from the contents: an equal file may stay.
                    let name = path.file_name().map(Path::new).unwrap_or(&path);
                    let there = beneath::read(directory, name, contents.len() as u64);
                    if there.is_ok_and(|there| there == contents) {
                        continue;
                    }
                    destinations.claim_here(&path)?;
                    destinations.write_here(&path, &contents)?;
                }
            }
        }
        let report = Report {
            recording: files.name(),
            gpu: table.gpu.to_string(),
            jobs,
            shaders: shaders
                .iter()
                .map(|shader| describe(shader, analysis.as_ref()))
                .collect(),
        };
        self.show(&report)?;
        match report.shaders.iter().find(|shader| shader.error.is_some()) {
            Some(bad) => Err(Failure::Recording(format!(
                "{}: the shader at {} does not decode: {}",
                shown(&files.path),
                bad.address,
                bad.error.as_deref().unwrap_or_default()
            ))),
            None => Ok(Outcome::Done),
        }
    }

    fn show(&self, report: &Report) -> Result<()> {
        let mut out = terminal::buffered_stdout();
        if self.json {
            terminal::json(&mut out, report)?;
        } else {
            print(&mut out, report)?;
        }
        Ok(out.flush()?)
    }
}

/// Code at an address may change between jobs: each version is a shader.
struct Found<'a> {
    address: u64,
    jobs: Vec<usize>,
    code: std::result::Result<Shown<'a>, &'a str>,
}

fn found(table: &Jobs) -> Vec<Found<'_>> {
    let mut found: Vec<Found<'_>> = Vec::new();
    let mut known = HashMap::new();
    for job in &table.jobs {
        let Some((address, code)) = job.code() else {
            continue;
        };
        let hash = code.ok().map(|code| code.hash());
        let index = *known.entry((address, hash)).or_insert(found.len());
        if index == found.len() {
            found.push(Found {
                address,
                jobs: Vec::new(),
                code,
            });
        }
        if let Some(shader) = found.get_mut(index) {
            shader.jobs.push(job.index);
        }
    }
    found
}

fn describe(shader: &Found<'_>, analysis: Option<&Analysis>) -> ShaderReport {
    let code = shader.code.ok();
    let hash = code.map(|code| format!("{:016x}", code.hash()));
    let notes = analysis.zip(code);
    let notes = notes.and_then(|(analysis, code)| Notes::of(analysis, code));
    ShaderReport {
        address: format!("{:#x}", shader.address),
        jobs: shader.jobs.clone(),
        hash,
        bytes: code.map(|code| code.bytes().len() as u64),
        clauses: code.and_then(Shown::clauses),
        instructions: code.map(Shown::instructions),
        text: code.map(|code| match (code, &notes) {
            (code, Some(notes)) => notes.text(code),
            (Shown::Clauses(code), None) => code.shader.to_string(),
            (Shown::Words(words), None) => words.to_string(),
        }),
        error: shader.code.err().map(str::to_owned),
    }
}

fn print(out: &mut impl Write, report: &Report) -> Result<()> {
    writeln!(
        out,
        "{}, {}: {} in {}",
        escaped(&report.recording),
        report.gpu,
        text::count(report.shaders.len() as u64, "shader"),
        text::count(report.jobs as u64, "job")
    )?;
    for shader in &report.shaders {
        let jobs: Vec<String> = shader.jobs.iter().map(usize::to_string).collect();
        writeln!(out)?;
        match (&shader.text, &shader.hash) {
            (Some(text), Some(hash)) => {
                let clauses = shader.clauses.map(|count| format!(" {count} clauses,"));
                writeln!(
                    out,
                    "shader {hash} at {}, {} bytes,{} {} instructions, jobs {}",
                    shader.address,
                    shader.bytes.unwrap_or(0),
                    clauses.unwrap_or_default(),
                    shader.instructions.unwrap_or(0),
                    jobs.join(" ")
                )?;
                out.write_all(text.as_bytes())?;
            }
            _ => writeln!(
                out,
                "shader at {}, jobs {}: {}",
                shader.address,
                jobs.join(" "),
                shader.error.as_deref().unwrap_or_default()
            )?,
        }
    }
    Ok(())
}
