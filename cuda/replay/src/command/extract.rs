// SPDX-License-Identifier: MIT OR Apache-2.0
//! `extract`: a work directory of a launch.

pub(crate) mod source;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use gpureplay_cuda_launch::image::Format;
use gpureplay_cuda_launch::recording::{Hash, Launch, Recording, Store, Writer};
use serde::Serialize;

use crate::Pieces;
use crate::command::failure::{Failure, Outcome, json, write, written};
use crate::command::report::{bytes, say};
use crate::command::sign::Trust;
use crate::command::target::Target;
use source::Source;

/// Write a launch as a folder to work in
///
/// It has kernel, memory, a Makefile, and a check for changed kernels.
#[derive(Args)]
pub(crate) struct Extract {
    /// The launch.
    #[arg(value_name = "DIR#K")]
    target: Target,
    /// The folder, which must not exist.
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    trust: Trust,
}

/// `launch.json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct LaunchReport<'a> {
    /// The mangled name.
    kernel: &'a str,
    gpu: &'a str,
    /// Compute capability: major, minor.
    capability: [i32; 2],
    grid: [u32; 3],
    block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    shared: u32,
    /// The file of the recorded image.
    image: String,
    /// Where `kernel.ptx` is from; nothing if there is none.
    ptx: Option<&'a str>,
    parameters: Vec<ParameterReport>,
    memory: Vec<MemoryReport<'a>>,
}

/// A parameter of the kernel.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct ParameterReport {
    /// Bytes from the start of the packed parameters.
    offset: usize,
    size: usize,
    /// Its bytes in memory's order, in hexadecimal.
    value: String,
    /// The piece of memory that it points into.
    memory: Option<usize>,
    /// Bytes from where that piece begins.
    memory_offset: Option<u64>,
}

/// A piece of memory that the kernel can reach.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct MemoryReport<'a> {
    address: String,
    bytes: u64,
    /// The variable of the image that it is.
    variable: Option<&'a str>,
    before: String,
    /// Nothing if the launch left it as it was.
    after: Option<String>,
    /// Parameters that point into it.
    parameters: Vec<usize>,
}

impl Extract {
    pub(crate) fn execute(&self) -> Outcome {
        let recording = self.target.recording()?;
        let number = self.target.one(&recording)?;
        let launch = self.trust.launch(&recording, number)?;
        let image = recording
            .store()
            .image(launch.image.hash, launch.image.size)?;
        let source = Source::find(&image, &launch.kernel)?;
        let folder = &self.output;
        fs::create_dir(folder).map_err(written(folder))?;
        let put = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(written(&path))
        };
        let name = match Format::of(&image) {
            Some(Format::Ptx) => "recorded.ptx",
            Some(Format::Cubin) => "recorded.cubin",
            _ => "recorded.fatbin",
        };
        put(name, &image)?;
        if let Some(text) = &source.ptx {
            put("kernel.ptx", text)?;
        }
        copy_sources(&folder.join("source"), &source)?;
        let memory = copy_memory(folder, &recording, &launch)?;
        let report = LaunchReport {
            kernel: &launch.kernel,
            gpu: &launch.device.name,
            capability: launch.device.capability,
            grid: launch.grid,
            block: launch.block,
            shared: launch.shared,
            image: name.to_owned(),
            ptx: source.from.as_deref(),
            parameters: parameters(&launch),
            memory,
        };
        let text = serde_json::to_string_pretty(&report).map_err(json)? + "\n";
        write(&folder.join("launch.json"), &text)?;
        let makefile = include_str!("extract/Makefile");
        let makefile = makefile.replace("@ARCH@", &architecture(&launch, source.ptx.as_deref()));
        put("Makefile", makefile.as_bytes())?;
        put("README.md", include_bytes!("extract/README.md"))?;
        put("check", include_bytes!("extract/check"))?;
        let check = folder.join("check");
        fs::set_permissions(&check, fs::Permissions::from_mode(0o755)).map_err(written(&check))?;
        say!(
            "{}: {} in {} pieces of memory, {}",
            folder.display(),
            bytes(launch.bytes()),
            report.memory.len(),
            match report.ptx {
                Some(from) => format!("kernel.ptx from {from}"),
                None => "no PTX was found: write a kernel with the same name".to_owned(),
            }
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// The GPU's; or the PTX's own if that ends in `a` or `f`, such as `sm_90a`.
fn architecture(launch: &Launch, ptx: Option<&[u8]>) -> String {
    let text = String::from_utf8_lossy(ptx.unwrap_or_default());
    let target = text.lines().find_map(|line| line.strip_prefix(".target"));
    let target = target.and_then(|target| target.trim().split(',').next());
    let is_name = |name: &&str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let [major, minor] = launch.device.capability;
    match target.filter(is_name) {
        Some(target) if target.ends_with(['a', 'f']) => target.to_owned(),
        _ => format!("sm_{major}{minor}"),
    }
}

fn copy_sources(folder: &Path, source: &Source) -> Result<(), Failure> {
    for path in &source.files {
        let Some(name) = path.file_name() else {
            continue;
        };
        fs::create_dir_all(folder).map_err(written(folder))?;
        let to = folder.join(name);
        if !to.exists() {
            fs::write(&to, source::read(path)?).map_err(written(&to))?;
        }
    }
    Ok(())
}

fn parameters(launch: &Launch) -> Vec<ParameterReport> {
    let pieces = Pieces::of(launch);
    let one = |&[offset, size]: &[usize; 2]| {
        let bytes = launch.parameters.get(offset..offset.saturating_add(size));
        let bytes = bytes.unwrap_or_default();
        let pointer = <[u8; 8]>::try_from(bytes).ok();
        let found = pointer.and_then(|bytes| pieces.find(u64::from_le_bytes(bytes)));
        ParameterReport {
            offset,
            size,
            value: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            memory: found.map(|found| found.piece),
            memory_offset: found.map(|found| found.offset),
        }
    };
    launch.layout.iter().map(one).collect()
}

fn copy_memory<'a>(
    folder: &Path,
    recording: &Recording,
    launch: &'a Launch,
) -> Result<Vec<MemoryReport<'a>>, Failure> {
    let other = recording.folder();
    // Links are relative to their place.
    let other = other.canonicalize().map_err(written(other))?;
    let writer = Writer::sharing(&folder.join("recording"), Some(other))?;
    let from = recording.store();
    let image = from.image(launch.image.hash, launch.image.size)?;
    writer.store().put_image(&image)?;
    let room = folder.join("memory");
    fs::create_dir(&room).map_err(written(&room))?;
    let pieces = Pieces::of(launch);
    let mut memory = Vec::new();
    for (number, piece) in launch.pieces().enumerate() {
        let size = piece.size;
        let keep = |hash: Hash, what: &str, store: &Store| {
            let bytes = from.get(hash, size)?;
            store.put(&bytes)?;
            let name = format!("memory/{number}.{what}.bin");
            let path = folder.join(&name);
            fs::write(&path, bytes).map_err(written(&path))?;
            Ok::<_, Failure>(name)
        };
        let after = piece.after;
        let after = after.map(|after| keep(after, "after", writer.store()));
        memory.push(MemoryReport {
            address: format!("{:#x}", piece.address),
            bytes: size,
            variable: piece.owner.variable(),
            before: keep(piece.before, "before", writer.store())?,
            after: after.transpose()?,
            parameters: pieces.parameters(number),
        });
    }
    writer.add(launch)?;
    Ok(memory)
}
