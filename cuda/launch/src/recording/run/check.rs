// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for runs, before anything is mapped.

use std::collections::HashSet;

use crate::abi::{MAX_PARAMETER_BYTES, attribute};

use super::{Checked, Operation, Rows, Run};
use crate::recording::check::{ADDRESS_END, ADDRESS_START, MAX_IMAGE, is_name, limits};
use crate::recording::format::FORMAT;
use crate::recording::{MAX_BYTES, MAX_REGIONS, RecordingError};

const MAX_STREAMS: usize = 1 << 10;
const MAX_TABLE: usize = 1 << 16;
const MAX_TURNS: usize = 1 << 10;
const MAX_OPERATIONS: usize = 1 << 20;

fn field(field: &'static str, reason: impl Into<String>) -> RecordingError {
    RecordingError::Field {
        field,
        reason: reason.into(),
    }
}

/// Beginnings and ends of usable memory, ascending, without overlaps.
struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    fn hold(&self, what: &'static str, address: u64, size: u64) -> Result<(), RecordingError> {
        let after = self.0.partition_point(|range| range.0 <= address);
        let range = after.checked_sub(1).and_then(|index| self.0.get(index));
        let end = address.checked_add(size).filter(|_| size > 0);
        if range.is_some_and(|range| end.is_some_and(|end| end <= range.1)) {
            return Ok(());
        }
        let reason = format!(
            "uses {size} bytes at {address:#x}, which are not in the memory of the recording"
        );
        Err(field(what, reason))
    }
}

impl Run {
    pub(crate) fn check(&self) -> Result<(), RecordingError> {
        if self.format != FORMAT {
            return Err(RecordingError::Format {
                found: self.format,
                known: FORMAT,
            });
        }
        self.check_counts()?;
        limits(&self.limits)?;
        for image in &self.images {
            let reduced = image.reduced.map_or(0, |reduced| reduced.size);
            if image.size.max(reduced) > MAX_IMAGE {
                return Err(RecordingError::TooLarge {
                    what: "an image",
                    limit: MAX_IMAGE,
                });
            }
        }
        if !self.sums.len().is_multiple_of(8) || self.sums.len() > 8 * MAX_OPERATIONS {
            return Err(field(
                "sums",
                "are no words, or more than operations may be",
            ));
        }
        self.check_names()?;
        for kernel in &self.kernels {
            let mut end = 0;
            for [offset, size] in &kernel.layout {
                let last = offset.checked_add(*size);
                match last.filter(|last| *offset >= end && *last <= MAX_PARAMETER_BYTES) {
                    Some(last) => end = last,
                    None => return Err(field("kernel", "has parameters that cannot be")),
                }
            }
        }
        let images = self.kernels.iter().map(|kernel| kernel.image);
        let mut images = images.chain(self.variables.iter().map(|variable| variable.image));
        if images.any(|image| image as usize >= self.images.len()) {
            return Err(field("image", "has a number that the run does not have"));
        }
        if self.bytes() > MAX_BYTES {
            return Err(RecordingError::TooLarge {
                what: "all memory, inputs and outputs together",
                limit: MAX_BYTES,
            });
        }
        // First, since the other checks add addresses and sizes.
        let ranges = self.ranges()?;
        let operations = self.operations.len();
        let mut ranges_ = self.ranges.iter();
        if !ranges_.all(|range| range.first < range.end && range.end as usize <= operations) {
            return Err(field("range", "has operations that the run does not have"));
        }
        self.check_turns()?;
        self.check_tensors()?;
        self.check_operations(&ranges)
    }

    fn check_tensors(&self) -> Result<(), RecordingError> {
        if self.weights.is_some() == self.tensors.is_empty() {
            return Err(field(
                "weights",
                "are named without tensors, or the other way round",
            ));
        }
        let held = self
            .memory
            .iter()
            .filter(|memory| memory.contents.is_some());
        let held = Ranges(
            held.map(|memory| (memory.address, memory.address + memory.size))
                .collect(),
        );
        let mut places = Vec::new();
        for tensor in &self.tensors {
            for address in &tensor.places {
                held.hold("a tensor", *address, tensor.size)?;
                places.push((*address, tensor.size));
            }
        }
        places.sort_unstable();
        match places
            .windows(2)
            .find(|pair| pair[0].0 + pair[0].1 > pair[1].0)
        {
            Some(pair) => Err(RecordingError::Region {
                address: pair[1].0,
                size: pair[1].1,
                reason: "lies over another one",
            }),
            None => Ok(()),
        }
    }

    fn check_turns(&self) -> Result<(), RecordingError> {
        for turn in &self.turns {
            if (turn.inputs.len(), turn.outputs.len()) != (self.inputs.len(), self.outputs.len()) {
                return Err(field("turn", "has other inputs or outputs than the run"));
            }
            if turn.words.len() > MAX_OPERATIONS {
                return Err(field("turn", "has more words than operations may have"));
            }
        }
        for number in &self.numbers {
            if number.places.is_empty() || number.places.len() > MAX_OPERATIONS {
                return Err(field("number", "has no places, or too many"));
            }
        }
        let places = self.numbers.iter().flat_map(|number| &number.places);
        let words = self.turns.iter().flat_map(|turn| &turn.words);
        let words = words.map(|[operation, offset, _]| [*operation, *offset]);
        for place in places.copied().chain(words) {
            let operation = self.operations.get(place[0] as usize);
            let size = operation.map_or(0, Operation::host_size);
            if place[1] % 4 != 0 || place[1] as usize >= size {
                return Err(field("number or turn", "has a place that is no parameter"));
            }
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), RecordingError> {
        for (what, count, most) in [
            ("stream", self.streams.len(), MAX_STREAMS),
            ("image", self.images.len(), MAX_TABLE),
            ("kernel", self.kernels.len(), MAX_TABLE),
            ("memory", self.memory.len(), MAX_REGIONS),
            ("variable", self.variables.len(), MAX_REGIONS),
            ("input", self.inputs.len(), MAX_TABLE),
            ("output", self.outputs.len(), MAX_TABLE),
            ("operation", self.operations.len(), MAX_OPERATIONS),
            ("number", self.numbers.len(), MAX_TABLE),
            ("turn", self.turns.len(), MAX_TURNS),
            ("tensor", self.tensors.len(), MAX_TABLE),
            ("range", self.ranges.len(), MAX_TABLE),
        ] {
            if count > most {
                return Err(field(what, format!("is there {count} times, not {most}")));
            }
        }
        if self.outputs.is_empty() {
            return Err(field(
                "output",
                "is missing: nothing would show that a replay is right",
            ));
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), RecordingError> {
        let kernels = self.kernels.iter().map(|kernel| ("kernel", &kernel.name));
        let variables = self.variables.iter();
        let variables = variables.map(|variable| ("variable", &variable.name));
        let others = [("device", &self.device.name), ("region", &self.region_of)];
        let tensors = self.tensors.iter().map(|tensor| ("tensor", &tensor.name));
        let weights = self.weights.iter().map(|name| ("weights", name));
        let forms = self.inputs.iter().chain(&self.outputs);
        let forms = forms.filter_map(|port| Some(("type and shape", port.form.as_ref()?)));
        let ranges = self.ranges.iter().map(|range| ("range", &range.name));
        let mut names = kernels
            .chain(variables)
            .chain(others)
            .chain(tensors)
            .chain(weights)
            .chain(forms)
            .chain(ranges);
        if let Some((what, _)) = names.find(|(_, name)| !is_name(name)) {
            return Err(field(what, "has no name"));
        }
        if let Some(Checked {
            fault: Some(fault), ..
        }) = &self.checked
            && !is_name(fault)
        {
            return Err(field("checked", "has a fault that is no name"));
        }
        let mut seen = HashSet::new();
        let ports = self.inputs.iter().chain(&self.outputs);
        let ports = ports.map(|port| &port.name);
        for name in ports.chain(self.numbers.iter().map(|number| &number.name)) {
            if !is_port(name) {
                return Err(field(
                    "input or output",
                    "has a name that is not of letters, digits, '_', '-' and '.'",
                ));
            }
            if !seen.insert(name) {
                return Err(field("input or output", format!("{name} is there twice")));
            }
        }
        Ok(())
    }

    fn ranges(&self) -> Result<Ranges, RecordingError> {
        let memory = self.memory.iter().map(|one| (one.address, one.size));
        let variables = self.variables.iter().map(|one| (one.address, one.size));
        let mut ranges = Vec::with_capacity(self.memory.len() + self.variables.len());
        for (address, size) in memory.chain(variables) {
            let end = address.checked_add(size).filter(|end| *end <= ADDRESS_END);
            match end.filter(|_| size > 0 && address >= ADDRESS_START) {
                Some(end) => ranges.push((address, end)),
                None => {
                    return Err(RecordingError::Region {
                        address,
                        size,
                        reason: "is empty or reaches beyond the address space",
                    });
                }
            }
        }
        let ascends = |pair: &[(u64, u64)]| pair[0].1 <= pair[1].0;
        let memory = &ranges[..self.memory.len()];
        if !memory.windows(2).all(ascends) {
            return Err(field(
                "memory",
                "does not ascend, or lies over other memory",
            ));
        }
        ranges.sort_unstable();
        match ranges.windows(2).find(|pair| !ascends(pair)) {
            Some(pair) => Err(RecordingError::Region {
                address: pair[1].0,
                size: pair[1].1 - pair[1].0,
                reason: "lies over another one",
            }),
            None => Ok(Ranges(ranges)),
        }
    }

    fn check_operations(&self, ranges: &Ranges) -> Result<(), RecordingError> {
        let mut events = HashSet::new();
        let mut inputs = vec![false; self.inputs.len()];
        let mut outputs = vec![false; self.outputs.len()];
        let once = |used: &mut [bool], number: u32, what| match used.get_mut(number as usize) {
            Some(used) if !*used => {
                *used = true;
                Ok(number as usize)
            }
            _ => Err(field(what, format!("{number} is not copied exactly once"))),
        };
        for operation in &self.operations {
            if operation
                .stream()
                .is_some_and(|stream| stream as usize >= self.streams.len())
            {
                return Err(field("stream", "has a number that the run does not have"));
            }
            match operation {
                Operation::Launch { .. } => self.check_launch(operation)?,
                Operation::Set {
                    address,
                    pitch,
                    element,
                    width,
                    height,
                    ..
                } => {
                    let row = width.checked_mul(u64::from(*element));
                    let rows = height
                        .checked_sub(1)
                        .and_then(|rows| rows.checked_mul(*pitch));
                    let size = row.zip(rows).and_then(|(row, rows)| row.checked_add(rows));
                    let sound =
                        matches!(element, 1 | 2 | 4) && (*height <= 1 || row <= Some(*pitch));
                    let size = size.filter(|_| sound).unwrap_or(0);
                    ranges.hold("a memset", *address, size)?;
                }
                Operation::In {
                    address,
                    input,
                    rows,
                    ..
                } => {
                    let input = once(&mut inputs, *input, "input")?;
                    let [to, from] = extents(*rows, self.inputs[input].size)?;
                    check_packed(*rows, from, self.inputs[input].size)?;
                    ranges.hold("an input", *address, to)?;
                }
                Operation::Out {
                    address,
                    output,
                    rows,
                    ..
                } => {
                    let output = once(&mut outputs, *output, "output")?;
                    let [to, from] = extents(*rows, self.outputs[output].size)?;
                    check_packed(*rows, to, self.outputs[output].size)?;
                    ranges.hold("an output", *address, from)?;
                }
                Operation::Copy {
                    to,
                    from,
                    size,
                    rows,
                    ..
                } => {
                    let [into, out_of] = extents(*rows, *size)?;
                    ranges.hold("a copy", *to, into)?;
                    ranges.hold("a copy", *from, out_of)?;
                }
                Operation::Record { event, .. } => _ = events.insert(*event),
                Operation::Wait { event, .. } | Operation::HostEvent { event } => {
                    if !events.contains(event) {
                        return Err(field(
                            "event",
                            format!("{event} is waited for before it is recorded"),
                        ));
                    }
                }
                Operation::HostStream { .. } | Operation::HostAll {} => {}
            }
        }
        if inputs.iter().chain(&outputs).any(|used| !used) {
            return Err(field("input or output", "is never copied"));
        }
        Ok(())
    }

    fn check_launch(&self, operation: &Operation) -> Result<(), RecordingError> {
        let Operation::Launch {
            kernel,
            grid,
            block,
            parameters,
            attributes,
            ..
        } = operation
        else {
            return Ok(());
        };
        let Some(kernel) = self.kernels.get(*kernel as usize) else {
            return Err(field("kernel", "has a number that the run does not have"));
        };
        if grid.contains(&0) || block.contains(&0) {
            return Err(field("a launch", "has a dimension of 0"));
        }
        let end = kernel
            .layout
            .last()
            .map_or(0, |[offset, size]| offset + size);
        if parameters.len() != end {
            return Err(field(
                "a launch",
                "has parameters that are not its kernel's",
            ));
        }
        let (list, rest) = attributes.as_chunks::<72>();
        let kept = |value: &[u8; 72]| attribute::launch::KEPT.contains(&value[0]);
        if !rest.is_empty() || list.len() > 64 || !list.iter().all(kept) {
            return Err(field(
                "a launch",
                "has attributes that a replay does not keep",
            ));
        }
        Ok(())
    }
}

/// First to last byte, of target and source.
fn extents(rows: Option<Rows>, size: u64) -> Result<[u64; 2], RecordingError> {
    let Some(rows) = rows else {
        return Ok([size; 2]);
    };
    let extents = [rows.to, rows.from].map(|lie| rows.extent(lie));
    match (extents, rows.size()) {
        ([Some(to), Some(from)], Some(found)) if found == size => Ok([to, from]),
        _ => Err(field("rows", "are not those of the copy")),
    }
}

fn check_packed(rows: Option<Rows>, extent: u64, size: u64) -> Result<(), RecordingError> {
    match rows.is_some() && extent != size {
        true => Err(field("rows", "have gaps on the host")),
        false => Ok(()),
    }
}

pub(crate) fn is_port(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}
