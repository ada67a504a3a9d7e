// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay info`: what is in a recording.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gpureplay_format::layout::{FLAG_COHERENT, TENSOR_EXTERNAL};
use gpureplay_format::{Action, Opcode, Recording, SegmentKind};
use mali_regs::GpuId;
use serde::Serialize;

use crate::common::failure::{Failure, Outcome};
use crate::common::terminal;
use crate::{Result, text};
use gpureplay_library::{Files, Layer, escaped};

const EXAMPLES: &str = "\
Examples:
  gpureplay info recordings/acl-gemm-g52
  gpureplay info recordings/acl-gemm-g52 --json";

/// Show what is in a recording: GPU, memory, tensors, segments
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Info {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary {
    name: String,
    description: String,
    command: String,
    provenance: std::collections::BTreeMap<String, String>,
    gpu: String,
    gpu_id: u32,
    coherent: bool,
    file_bytes: u64,
    data_bytes: u64,
    gpu_memory_bytes: u64,
    regions: usize,
    actions: usize,
    jobs: u64,
    tensors: Vec<TensorSummary>,
    segments: Vec<SegmentSummary>,
    cases: usize,
}

#[derive(Serialize)]
struct TensorSummary {
    name: String,
    kind: &'static str,
    #[serde(rename = "type")]
    element: &'static str,
    shape: Vec<u64>,
    external: bool,
    address: u64,
}

#[derive(Serialize)]
struct SegmentSummary {
    name: String,
    kind: &'static str,
    actions: u32,
    chains: u32,
    jobs: u32,
    uploaded_bytes: u64,
    /// Number of the layer, for `run --layers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<usize>,
    /// Tensors that can be given to it.
    inputs: Vec<String>,
    /// Tensors that can be read after it.
    outputs: Vec<String>,
}

impl Info {
    pub(crate) fn execute(&self) -> Result {
        let files = Files::read(&self.recording)?;
        let recording = files.parse()?;
        let summary = summarise(&files, &recording);
        let mut out = terminal::stdout();
        if self.json {
            let text = serde_json::to_string_pretty(&summary)
                .map_err(|error| Failure::Output(error.to_string()))?;
            writeln!(out, "{text}")?;
        } else {
            print(&mut out, &summary)?;
        }
        Ok(Outcome::Done)
    }
}

fn summarise(files: &Files, recording: &Recording<'_>) -> Summary {
    let manifest = files.manifest.clone().unwrap_or_default();
    let tensors = recording.tensors().iter().map(|tensor| TensorSummary {
        name: recording.name(tensor.name.get()).to_owned(),
        kind: text::kind_of(tensor).name(),
        element: text::element_of(tensor).name(),
        shape: text::shape_of(recording, tensor),
        external: tensor.flags & TENSOR_EXTERNAL != 0,
        address: recording
            .pieces(tensor)
            .and_then(|pieces| pieces.first())
            .map_or(0, |piece| piece.va.get()),
    });
    let layers = Layer::all(recording);
    let names = |tensors: &[u32]| {
        let entries = tensors
            .iter()
            .filter_map(|tensor| recording.tensors().get(*tensor as usize));
        entries
            .map(|entry| recording.name(entry.name.get()).to_owned())
            .collect()
    };
    let segments = (0u32..).zip(recording.segments()).map(|(index, segment)| {
        let number = layers.iter().position(|layer| layer.segment == index);
        let layer = number.and_then(|number| layers.get(number));
        let moved = recording
            .segment_actions(segment)
            .flatten()
            .map(|action| match action {
                Action::Upload { length, .. } | Action::Fill { length, .. } => u64::from(length),
                Action::Rearm { .. } => 16,
                _ => 0,
            });
        SegmentSummary {
            name: recording.name(segment.name.get()).to_owned(),
            kind: SegmentKind::from_code(segment.kind.into()).map_or("unknown", SegmentKind::name),
            actions: segment.actions.get(),
            chains: recording.count(segment, Opcode::Submit),
            jobs: recording.count(segment, Opcode::Rearm),
            uploaded_bytes: moved.sum(),
            layer: number.map(|number| number + 1),
            inputs: layer.map_or_else(Vec::new, |layer| names(&layer.inputs)),
            outputs: layer.map_or_else(Vec::new, |layer| names(&layer.outputs)),
        }
    });
    Summary {
        name: files.name(),
        description: manifest.description,
        command: manifest.command,
        provenance: manifest.provenance,
        gpu: GpuId(recording.gpu_id()).to_string(),
        gpu_id: recording.gpu_id(),
        coherent: recording.header().flags.get() & FLAG_COHERENT != 0,
        file_bytes: files.bytes.len() as u64,
        data_bytes: recording.data().len() as u64,
        gpu_memory_bytes: recording
            .regions()
            .iter()
            .map(|region| region.bytes())
            .sum(),
        regions: recording.regions().len(),
        actions: recording.action_entries().len(),
        jobs: recording
            .segments()
            .iter()
            .map(|segment| u64::from(recording.count(segment, Opcode::Rearm)))
            .sum(),
        tensors: tensors.collect(),
        segments: segments.collect(),
        cases: manifest.cases.len(),
    }
}

/// `; takes input; gives conv1`.
fn flow(segment: &SegmentSummary) -> String {
    let part = |verb: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!("; {verb} {}", names.join(", ")),
    };
    part("takes", &segment.inputs) + &part("gives", &segment.outputs)
}

fn print(out: &mut impl Write, summary: &Summary) -> Result<()> {
    writeln!(out, "{}", escaped(&summary.name))?;
    if !summary.description.is_empty() {
        writeln!(out, "  {}", escaped(&summary.description))?;
    }
    writeln!(
        out,
        "  recorded on {} ({:#010x}){}",
        summary.gpu,
        summary.gpu_id,
        if summary.coherent {
            ", coherent with the CPU"
        } else {
            ""
        }
    )?;
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
        .map(|tensor| tensor.name.len())
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
    if summary.cases > 0 {
        writeln!(
            out,
            "{} with expected outputs",
            text::count(summary.cases as u64, "case")
        )?;
    }
    Ok(())
}
