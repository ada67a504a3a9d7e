// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay info`.

use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gpureplay_format::layout::{FLAG_COHERENT, TENSOR_EXTERNAL};
use gpureplay_format::{Action, SegmentKind};
use gpureplay_jobs::Selector;
use mali_drive::names;
use serde::Serialize;

use crate::commands::dump::{Dump, is_trace};
use crate::common::failure::{Failure, Outcome};
use crate::common::listing::{Listing, Unverified};
use crate::common::terminal;
use crate::{Result, text};
use gpureplay_library::{Files, Trust, escaped, shown};

const EXAMPLES: &str = "\
Examples:
  gpureplay info recordings/acl-gemm-g52
  gpureplay info recordings/acl-gemm-g52 --json
  gpureplay info recordings/lenet-g52 --actions --jobs layer:conv2
      what these jobs need: actions before their chains, and their descriptors
  gpureplay info raw.trace
      a recorder's log, with register names";

/// Show tensors, layers, memory, origin
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Info {
    /// Directory with a recording.gpr, such a file, a pack, or a raw trace, whose records are listed
    recording: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// List regions, tensors and actions
    #[arg(long, conflicts_with = "json")]
    actions: bool,
    /// With --actions or a raw trace: also print the bytes of uploads and pages
    #[arg(long)]
    bytes: bool,
    /// With --actions: only those that lead to these jobs, and their descriptors: 3, 3..7, 18.., /regular expression/, kernel:NAME, hash:98aa,
    /// layer:conv2, or a list of these with commas
    #[arg(
        long,
        value_name = "SELECTOR",
        requires = "actions",
        conflicts_with = "unverified"
    )]
    jobs: Option<Selector>,
    #[command(flatten)]
    unverified: Unverified,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Summary<'a> {
    name: String,
    /// The rule that the recording breaks; then the tables are not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsound: Option<String>,
    /// Whose signature it has, which is not checked without a key, or why that is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    description: String,
    command: String,
    provenance: std::collections::BTreeMap<String, String>,
    gpu: String,
    gpu_id: u32,
    coherent: bool,
    /// Shader cores, by their bits in SHADER_PRESENT, that no job runs on.
    unused_cores: u32,
    /// Other GPUs that a variant of it is for.
    variants: Vec<String>,
    file_bytes: u64,
    data_bytes: u64,
    gpu_memory_bytes: u64,
    regions: usize,
    actions: usize,
    jobs: u64,
    tensors: Vec<TensorSummary<'a>>,
    segments: Vec<SegmentSummary<'a>>,
    cases: usize,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct TensorSummary<'a> {
    name: Cow<'a, str>,
    kind: &'static str,
    #[serde(rename = "type")]
    element: &'static str,
    shape: Vec<u64>,
    external: bool,
    address: u64,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Default, Serialize)]
struct SegmentSummary<'a> {
    name: Cow<'a, str>,
    kind: &'static str,
    actions: u32,
    chains: u32,
    jobs: u32,
    uploaded_bytes: u64,
    /// Number of the layer, for `run --layers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<usize>,
    /// Tensors that can be given to it.
    inputs: Vec<Cow<'a, str>>,
    /// Tensors that can be read after it.
    outputs: Vec<Cow<'a, str>>,
}

impl Info {
    pub(crate) fn execute(&self) -> Result {
        let trace = self.recording.is_file() && is_trace(&self.recording)?;
        if trace && self.json {
            return Err(Failure::Usage(format!(
                "{}: a raw trace has no JSON; `gpureplay compile` makes a recording of it",
                shown(&self.recording)
            )));
        }
        if self.actions || trace {
            let dump = Dump {
                file: self.recording.clone(),
                all: self.bytes,
                jobs: self.jobs.clone(),
                unverified: self.unverified,
            };
            return dump.execute();
        }
        if self.bytes {
            return Err(Failure::Usage(
                "--bytes goes with --actions or a raw trace".into(),
            ));
        }
        let files = Files::look(&self.recording, &Trust::default())?;
        let mut listing = self.unverified.list(&files)?;
        let summary = summarise(&files, &mut listing);
        let mut out = terminal::buffered_stdout();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &summary).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            print(&mut out, &summary, &listing)?;
        }
        out.flush()?;
        Ok(Outcome::Done)
    }
}

fn summarise<'a>(files: &Files, listing: &mut Listing<'a>) -> Summary<'a> {
    let recording = listing.recording;
    let manifest = files.manifest.clone().unwrap_or_default();
    let segments = segments(listing);
    let tensors = listing.of(recording.tensors()).iter();
    let tensors = tensors.map(|tensor| TensorSummary {
        name: listing.name(tensor.name.get()),
        kind: text::kind_of(tensor).name(),
        element: text::element_of(tensor).name(),
        shape: text::shape_of(&recording, tensor),
        external: tensor.flags & TENSOR_EXTERNAL != 0,
        address: recording
            .pieces(tensor)
            .and_then(|pieces| pieces.first())
            .map_or(0, |piece| piece.va.get()),
    });
    let regions = recording.regions().iter();
    Summary {
        name: files.name(),
        unsound: listing.unsound.clone(),
        signature: files.seal().map(|seal| seal.to_string()),
        description: manifest.description,
        command: manifest.command,
        provenance: manifest.provenance,
        gpu: names::gpu(recording.gpu_id()).to_string(),
        gpu_id: recording.gpu_id(),
        coherent: recording.header().flags.get() & FLAG_COHERENT != 0,
        variants: manifest.variants.into_iter().map(|one| one.gpu).collect(),
        unused_cores: recording.header().unused_cores.get(),
        file_bytes: files.bytes.len() as u64,
        data_bytes: recording.data().len() as u64,
        gpu_memory_bytes: regions
            .map(|region| region.bytes())
            .fold(0, u64::saturating_add),
        regions: recording.regions().len(),
        actions: recording.action_entries().len(),
        jobs: segments.iter().map(|segment| u64::from(segment.jobs)).sum(),
        tensors: tensors.collect(),
        segments,
        cases: manifest.cases.len(),
    }
}

fn segments<'a>(listing: &mut Listing<'a>) -> Vec<SegmentSummary<'a>> {
    let recording = listing.recording;
    let mut layers = 0;
    let mut summaries = Vec::new();
    for segment in listing.of(recording.segments()) {
        let kind = SegmentKind::from_code(segment.kind.into());
        let mut summary = SegmentSummary {
            name: listing.name(segment.name.get()),
            kind: kind.map_or("unknown", SegmentKind::name),
            actions: segment.actions.get(),
            ..SegmentSummary::default()
        };
        let runs = kind == Some(SegmentKind::Run);
        if runs {
            layers += 1;
            summary.layer = Some(layers);
        }
        let actions = listing.take_actions(recording.segment_entries(segment).len());
        let actions = recording.segment_actions(segment).take(actions);
        for action in actions.flatten() {
            match action {
                Action::Upload { length, .. } | Action::Fill { length, .. } => {
                    summary.uploaded_bytes += u64::from(length);
                }
                Action::Rearm { .. } => {
                    summary.uploaded_bytes += 16;
                    summary.jobs += 1;
                }
                Action::Submit { .. } => summary.chains += 1,
                Action::Launch { words, .. } => {
                    summary.chains += 1;
                    let _ = mali_jobs::streams::dispatches(words, |_, _| summary.jobs += 1);
                }
                Action::BindInput { tensor } if runs => {
                    summary.inputs.push(listing.tensor(tensor));
                }
                Action::BindOutput { tensor } if runs => {
                    summary.outputs.push(listing.tensor(tensor));
                }
                _ => {}
            }
        }
        summaries.push(summary);
    }
    summaries
}

fn flow(segment: &SegmentSummary<'_>) -> String {
    let part = |verb: &str, names: &[Cow<'_, str>]| match names {
        [] => String::new(),
        names => format!("; {verb} {}", names.join(", ")),
    };
    part("takes", &segment.inputs) + &part("gives", &segment.outputs)
}

fn print(out: &mut impl Write, summary: &Summary<'_>, listing: &Listing<'_>) -> Result<()> {
    writeln!(out, "{}", escaped(&summary.name))?;
    if let Some(reason) = &summary.unsound {
        writeln!(out, "  not sound: {reason}")?;
    }
    if let Some(signature) = &summary.signature {
        writeln!(out, "  {}", escaped(signature))?;
    }
    if !summary.description.is_empty() {
        writeln!(out, "  {}", escaped(&summary.description))?;
    }
    // Retargeted: its GPU is under "recorded on".
    let verb = match summary.provenance.contains_key("retargeted") {
        true => "for",
        false => "recorded on",
    };
    writeln!(
        out,
        "  {verb} {} ({:#010x}){}",
        summary.gpu,
        summary.gpu_id,
        if summary.coherent {
            ", coherent with the CPU"
        } else {
            ""
        }
    )?;
    if summary.unused_cores != 0 {
        let unused = summary.unused_cores;
        writeln!(out, "  does not use the shader cores {unused:#x}")?;
    }
    if !summary.variants.is_empty() {
        let variants = summary.variants.iter().map(|name| escaped(name));
        let variants = variants.collect::<Vec<_>>().join(", ");
        writeln!(out, "  with variants for {variants}")?;
    }
    for (key, value) in &summary.provenance {
        writeln!(out, "  {}: {}", escaped(key), escaped(value))?;
    }
    if !summary.command.is_empty() {
        writeln!(out, "  made by: {}", escaped(&summary.command))?;
    }
    writeln!(
        out,
        "  {} in the file, {} of GPU memory in {}, {}, {}",
        text::bytes(summary.file_bytes),
        text::bytes(summary.gpu_memory_bytes),
        text::count(summary.regions as u64, "region"),
        text::count(summary.actions as u64, "action"),
        text::count(summary.jobs, "job")
    )?;
    writeln!(out, "tensors")?;
    let width = summary
        .tensors
        .iter()
        .map(|tensor| tensor.name.chars().count())
        .max()
        .unwrap_or(0);
    for tensor in &summary.tensors {
        let extents: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
        writeln!(
            out,
            "  {:12} {:width$}  {}[{}]  at {:#x}{}",
            tensor.kind,
            tensor.name,
            tensor.element,
            extents.join(","),
            tensor.address,
            if tensor.external {
                "  (value not in the recording)"
            } else {
                ""
            }
        )?;
    }
    listing.left_out(out, listing.recording.tensors())?;
    writeln!(out, "segments")?;
    for segment in &summary.segments {
        writeln!(
            out,
            "  {:12} {}  {}, {} in {}, {} written{}",
            match segment.layer {
                Some(number) => format!("{} {number}", segment.kind),
                None => segment.kind.to_owned(),
            },
            segment.name,
            text::count(segment.actions.into(), "action"),
            text::count(segment.jobs.into(), "job"),
            text::count(segment.chains.into(), "chain"),
            text::bytes(segment.uploaded_bytes),
            flow(segment)
        )?;
    }
    listing.left_out(out, listing.recording.segments())?;
    if summary.cases > 0 {
        writeln!(
            out,
            "{} with expected outputs",
            text::count(summary.cases as u64, "case")
        )?;
    }
    Ok(())
}
