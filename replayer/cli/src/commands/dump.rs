// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay info --actions`.

use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_format::layout::{FAMILY_STREAMS, MAGIC, Segment};
use gpureplay_format::{Access, Action, ActionFault, Payload, RegionKind, SegmentKind};
use gpureplay_jobs::{Jobs, JobsError, Selector};
use gpureplay_trace::{Check, Reader};
use mali_drive::names;
use mali_jobs::streams;
use mali_jobs::text::descriptors_of;

use crate::common::failure::{Failure, Outcome};
use crate::common::job_options::table;
use crate::common::listing::{Listing, Unverified};
use crate::common::record_text::write_record;
use crate::common::terminal;
use crate::{Result, text};
use gpureplay_library::{Files, Recording, Trust, shown};

const EXAMPLES: &str = "\
Examples:
  gpureplay info recordings/acl-gemm-g52 --actions
  gpureplay info recordings/lenet-g52 --actions --jobs layer:conv2
  gpureplay info raw.trace --actions --bytes";

/// Print regions, tensors, actions, or a raw trace: an old name of `info --actions`
#[derive(Args)]
#[command(after_help = EXAMPLES, hide = true)]
pub(crate) struct Dump {
    /// Directory with a recording.gpr, such a file, a pack, or a raw trace
    pub(crate) file: PathBuf,
    /// Also print the bytes of uploads and pages
    #[arg(long)]
    pub(crate) all: bool,
    /// Only the actions that lead to these jobs, and their descriptors: 3, 3..7, 18.., /regular expression/, kernel:NAME, hash:98aa, layer:conv2,
    /// or a list of these with commas
    #[arg(long, value_name = "SELECTOR", conflicts_with = "unverified")]
    pub(crate) jobs: Option<Selector>,
    #[command(flatten)]
    pub(crate) unverified: Unverified,
}

impl Dump {
    pub(crate) fn execute(&self) -> Result {
        let mut out = terminal::buffered_stdout();
        if self.file.is_dir() || starts_with_magic(&self.file)? {
            match &self.jobs {
                Some(selector) => self.dump_jobs(&mut out, selector)?,
                None => {
                    let files = Files::look(&self.file, &Trust::default())?;
                    dump_recording(&mut out, &mut self.unverified.list(&files)?, self.all)?;
                }
            }
        } else if self.jobs.is_some() {
            return Err(Failure::Usage(format!(
                "--jobs selects jobs of a recording, and {} is a raw trace",
                shown(&self.file)
            )));
        } else {
            self.dump_trace(&mut out)?;
        }
        out.flush()?;
        Ok(Outcome::Done)
    }

    fn dump_jobs(&self, out: &mut impl Write, selector: &Selector) -> Result<()> {
        let recording = Recording::open(&self.file)?;
        let jobs = table(&recording)?;
        let selected = selector.select(&jobs)?;
        let described = descriptors(&recording, &jobs, &selected)?;
        let listing = self.unverified.list(recording.files())?;
        let view = &listing.recording;
        // Each chain continues in its segment after the previous one.
        let mut walk = None;
        for (number, text) in described {
            let Some(chain) = jobs.chains.get(number) else {
                continue;
            };
            let layer = chain.layer.and_then(|at| jobs.layers.get(at));
            writeln!(
                out,
                "chain {number}{}",
                layer.map_or_else(String::new, |layer| format!(", layer {}", layer.name))
            )?;
            let earlier = number.checked_sub(1).and_then(|at| jobs.chains.get(at));
            let earlier = earlier.filter(|earlier| earlier.segment == chain.segment);
            let after = earlier.map_or(0, |earlier| earlier.action.saturating_add(1));
            if walk.as_ref().is_none_or(|(at, _)| *at != chain.segment) {
                let segment = view.segments().get(chain.segment as usize);
                walk = segment.map(|segment| {
                    let actions = view.segment_actions(segment);
                    let numbered = (segment.first_action.get()..).zip(actions);
                    (chain.segment, numbered)
                });
            }
            for (index, action) in walk.iter_mut().flat_map(|(_, actions)| actions) {
                if index >= after {
                    write!(out, "  {index:5} ")?;
                    self.dump_decoded(out, &listing, action.ok())?;
                }
                if index >= chain.action {
                    break;
                }
            }
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    }

    fn dump_decoded(
        &self,
        out: &mut impl Write,
        listing: &Listing<'_>,
        action: Option<Action<'_>>,
    ) -> Result<()> {
        let Some(action) = action else {
            return Ok(writeln!(out, "damaged")?);
        };
        dump_action(out, listing, &action)?;
        match action {
            Action::Upload {
                va,
                payload: Payload::Raw(bytes),
                ..
            } if self.all => dump_bytes(out, va, bytes),
            _ => Ok(()),
        }
    }

    fn dump_trace(&self, out: &mut impl Write) -> Result<()> {
        let wrong = |reason: String| Failure::Recording(format!("{}: {reason}", shown(&self.file)));
        let file = std::fs::File::open(&self.file).map_err(|error| wrong(error.to_string()))?;
        let mut reader = Reader::new(std::io::BufReader::new(file));
        let mut check = Check::new();
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
            write_record(&mut line, &record, start_ns, self.all)
                .map_err(|error| wrong(error.to_string()))?;
            out.write_all(line.as_bytes())?;
        }
        out.flush()?;
        let problem = first_problem.map_or_else(|| check.finish(), Err);
        problem.map_err(|problem| wrong(problem.to_string()))
    }
}

/// A network of 500 jobs has 10,000.
const MOST_DESCRIPTORS: usize = 1 << 16;

fn any_selected(selected: &[usize], range: &Range<usize>) -> bool {
    let at = selected.partition_point(|job| *job < range.start);
    selected.get(at).is_some_and(|job| *job < range.end)
}

fn descriptors(
    recording: &Recording,
    jobs: &Jobs,
    selected: &[usize],
) -> Result<Vec<(usize, String)>> {
    let mut all = Vec::new();
    let mut numbers = 0..;
    let mut left = MOST_DESCRIPTORS;
    let walked: std::result::Result<(), JobsError> =
        recording.verified().submissions(|submission| {
            let number = numbers.next().unwrap_or_default();
            let chain = jobs.chains.get(number).map(|chain| chain.jobs.clone());
            let Some(range) = chain.filter(|range| any_selected(selected, range)) else {
                return Ok(());
            };
            let mut text =
                descriptors_of(submission, jobs.profile, range.start, selected, &mut left);
            if left == 0 {
                text.push_str(&format!(
                    "  ! what follows {MOST_DESCRIPTORS} descriptors is left out: select fewer jobs\n"
                ));
            }
            all.push((number, text));
            Ok(())
        });
    walked.map_err(|error| {
        Failure::Recording(format!("{}: {error}", shown(&recording.files().path)))
    })?;
    Ok(all)
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

pub(crate) fn is_trace(path: &Path) -> Result<bool> {
    if starts_with_magic(path)? {
        return Ok(false);
    }
    let wrong = |error| Failure::Recording(format!("{}: {error}", shown(path)));
    let file = std::fs::File::open(path).map_err(wrong)?;
    let mut reader = Reader::new(std::io::BufReader::new(file));
    Ok(matches!(reader.next_record(), Ok(Some(_))))
}

fn dump_recording(out: &mut impl Write, listing: &mut Listing<'_>, all: bool) -> Result<()> {
    let recording = listing.recording;
    if let Some(reason) = &listing.unsound {
        writeln!(out, "not sound: {reason}")?;
    }
    let id = recording.gpu_id();
    writeln!(out, "gpu {} ({id:#010x})", names::gpu(id))?;
    let unused = recording.header().unused_cores.get();
    if unused != 0 {
        writeln!(out, "  shader cores {unused:#x} are not used")?;
    }
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
        Action::Launch {
            queue,
            words,
            timeout_us,
        } if listing.recording.header().family.get() == FAMILY_STREAMS => {
            let bytes = words.len();
            writeln!(
                out,
                "stream of {bytes} bytes on queue {queue}, for {timeout_us} µs"
            )?;
            for line in streams::text(words).to_string().lines() {
                writeln!(out, "      {line}")?;
            }
        }
        Action::Launch {
            queue,
            words,
            timeout_us,
        } => {
            let words = words
                .as_chunks()
                .0
                .iter()
                .map(|&word| u32::from_le_bytes(word));
            let words: Vec<String> = words.map(|word| format!("{word:#x}")).collect();
            let words = words.join(" ");
            writeln!(out, "launch {words} on queue {queue}, for {timeout_us} µs")?;
        }
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
