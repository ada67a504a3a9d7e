// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay dump`: every detail of a recording, or of a raw trace.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_format::layout::{MAGIC, Segment};
use gpureplay_format::{Access, Action, ActionFault, Payload, RegionKind, SegmentKind};
use gpureplay_trace::{Check, Reader, Style, write_record};
use mali_regs::GpuId;

use crate::common::failure::{Failure, Outcome};
use crate::common::listing::{Listing, Unverified};
use crate::common::terminal;
use crate::{Result, text};
use gpureplay_library::{Files, shown};

const EXAMPLES: &str = "\
Examples:
  gpureplay dump recordings/acl-gemm-g52
  gpureplay dump raw.trace --all      a recorder's log, with register names";

/// Print a recording's regions, tensors and actions, or a recorder's raw trace
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dump {
    /// Directory with a recording.gpr, such a file, a pack, or a raw trace
    file: PathBuf,
    /// Also print the bytes of uploads and pages
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    unverified: Unverified,
}

impl Dump {
    pub(crate) fn execute(&self) -> Result {
        let mut out = terminal::buffered_stdout();
        if self.file.is_dir() || starts_with_magic(&self.file)? {
            let files = Files::read(&self.file)?;
            dump_recording(&mut out, &mut self.unverified.list(&files)?, self.all)?;
        } else {
            self.dump_trace(&mut out)?;
        }
        out.flush()?;
        Ok(Outcome::Done)
    }

    fn dump_trace(&self, out: &mut impl Write) -> Result<()> {
        let wrong = |reason: String| Failure::Recording(format!("{}: {reason}", shown(&self.file)));
        let file = std::fs::File::open(&self.file).map_err(|error| wrong(error.to_string()))?;
        let mut reader = Reader::new(std::io::BufReader::new(file));
        let mut check = Check::new();
        let style = Style { hexdump: self.all };
        let (mut start_ns, mut first_problem) = (None, None);
        let mut line = String::new();
        while let Some(record) = reader
            .next_record()
            .map_err(|error| wrong(error.to_string()))?
        {
            if let Err(problem) = check.observe(&record) {
                first_problem.get_or_insert(problem);
            }
            let start_ns = *start_ns.get_or_insert(record.time_ns);
            line.clear();
            write_record(&mut line, &record, start_ns, style)
                .map_err(|error| wrong(error.to_string()))?;
            out.write_all(line.as_bytes())?;
        }
        out.flush()?;
        let problem = first_problem.map_or_else(|| check.finish(), Err);
        problem.map_err(|problem| wrong(problem.to_string()))
    }
}

fn starts_with_magic(path: &Path) -> Result<bool> {
    let wrong = |error| Failure::Recording(format!("{}: {error}", shown(path)));
    let mut start = Vec::new();
    let file = std::fs::File::open(path).map_err(wrong)?;
    file.take(MAGIC.len() as u64)
        .read_to_end(&mut start)
        .map_err(wrong)?;
    Ok(start == MAGIC || gpureplay_sign::Pack::is_pack(&start))
}

fn dump_recording(out: &mut impl Write, listing: &mut Listing<'_>, all: bool) -> Result<()> {
    let recording = listing.recording;
    if let Some(reason) = &listing.unsound {
        writeln!(out, "not sound: {reason}")?;
    }
    let id = recording.gpu_id();
    writeln!(out, "gpu {} ({id:#010x})", GpuId(id))?;
    for check in listing.of(recording.identity()) {
        let (mask, value) = (check.mask.get(), check.value.get());
        writeln!(
            out,
            "  {} & {mask:#x} == {value:#x}",
            text::register(check.register.get())
        )?;
    }
    listing.left_out(out, recording.identity())?;
    writeln!(out, "regions")?;
    for region in listing.of(recording.regions()) {
        let access = Access(region.access);
        let letter = |bit, letter| if access.contains(bit) { letter } else { '-' };
        writeln!(
            out,
            "  {:#014x}..{:#014x} {:6} pages {}{}{} {}",
            region.va.get(),
            region.end(),
            region.pages.get(),
            letter(Access::READ, 'r'),
            letter(Access::WRITE, 'w'),
            letter(Access::EXECUTE, 'x'),
            RegionKind::from_code(region.kind.into()).map_or("unknown kind", RegionKind::name)
        )?;
    }
    listing.left_out(out, recording.regions())?;
    writeln!(out, "tensors")?;
    for (index, tensor) in listing.of(recording.tensors()).iter().enumerate() {
        writeln!(
            out,
            "  {index} {} {} {}",
            text::kind_of(tensor).name(),
            listing.name(tensor.name.get()),
            text::tensor_type(&recording, tensor)
        )?;
        let pieces = recording.pieces(tensor).unwrap_or(&[]);
        for piece in listing.of(pieces) {
            write!(
                out,
                "      from element {} at {:#x}:",
                piece.element.get(),
                piece.va.get()
            )?;
            for axis in listing.of(recording.axes(piece).unwrap_or(&[])) {
                write!(
                    out,
                    " {} × ({}, {} bytes)",
                    axis.extent.get(),
                    axis.element_stride.get(),
                    axis.byte_stride.get()
                )?;
            }
            writeln!(out)?;
        }
        listing.left_out(out, pieces)?;
    }
    listing.left_out(out, recording.tensors())?;
    for segment in listing.of(recording.segments()) {
        dump_segment(out, listing, segment, all)?;
    }
    listing.left_out(out, recording.segments())
}

fn dump_segment(
    out: &mut impl Write,
    listing: &mut Listing<'_>,
    segment: &Segment,
    all: bool,
) -> Result<()> {
    let recording = listing.recording;
    writeln!(
        out,
        "segment {} ({})",
        listing.name(segment.name.get()),
        SegmentKind::from_code(segment.kind.into()).map_or("unknown kind", SegmentKind::name)
    )?;
    let count = recording.segment_entries(segment).len();
    let shown = listing.take_actions(count);
    let actions = recording.segment_actions(segment).take(shown);
    for (action, index) in actions.zip(u64::from(segment.first_action.get())..) {
        write!(out, "  {index:5} ")?;
        match action {
            Ok(action) => dump_action(out, listing, &action)?,
            Err(ActionFault::Opcode) => writeln!(out, "unknown opcode")?,
            Err(ActionFault::Operand) => writeln!(out, "operand out of range")?,
            Err(ActionFault::Data) => writeln!(out, "bytes outside the section data")?,
        }
        if let (
            true,
            Ok(Action::Upload {
                va,
                payload: Payload::Raw(bytes),
                ..
            }),
        ) = (all, action)
        {
            dump_bytes(out, va, bytes)?;
        }
    }
    if shown < count {
        writeln!(out, "  … and {} more", count - shown)?;
    }
    Ok(())
}

fn dump_action(out: &mut impl Write, listing: &Listing<'_>, action: &Action<'_>) -> Result<()> {
    match *action {
        Action::Write { register, value } => {
            writeln!(
                out,
                "write {} = {value:#x}",
                text::register(register.into())
            )?;
        }
        Action::Upload {
            va,
            length,
            payload,
        } => {
            let stored = match payload {
                Payload::Raw(_) => "raw".to_owned(),
                Payload::Lz4(block) => format!("in {} bytes", block.len()),
            };
            writeln!(out, "upload {length} bytes to {va:#x}, {stored}")?;
        }
        Action::Fill { va, length, byte } => {
            writeln!(out, "fill {length} bytes from {va:#x} with {byte:#04x}")?;
        }
        Action::Rearm { va } => writeln!(out, "rearm job {va:#x}")?,
        Action::Submit {
            slot,
            config,
            timeout_us,
            chain,
        } => writeln!(
            out,
            "submit chain {chain:#x} on slot {slot}, configuration {config:#x}, for {timeout_us} µs"
        )?,
        Action::BindInput { tensor } => writeln!(out, "bind_input {}", listing.tensor(tensor))?,
        Action::BindOutput { tensor } => writeln!(out, "bind_output {}", listing.tensor(tensor))?,
        Action::Seek { offset } => writeln!(out, "seek to {offset:#x}")?,
    }
    Ok(())
}

fn dump_bytes(out: &mut impl Write, va: u64, bytes: &[u8]) -> Result<()> {
    for (line, offset) in bytes.chunks(16).zip((0u64..).step_by(16)) {
        let va = va.wrapping_add(offset);
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "          {va:012x}  {}", hex.join(" "))?;
    }
    Ok(())
}
