// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is kept of a running region.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gpureplay_cuda_launch::abi::{Handle, MemsetNode, attribute};
use gpureplay_cuda_launch::recording::{
    Device, Kernel, Operation, Range, RegionKind, Rows, Side, Stream, StreamKind,
};

use super::{Copied, HostWait, host_rows};
use crate::arena;
use crate::functions::Function;
use crate::memory::{Kind, Memory, Piece};
use crate::real::{current_device, driver, idle_within};
use crate::record::{self, HeldVariable, because};
use crate::settings::Record;
use crate::state::{Image, memory};
use crate::variables::{self, Asked};

pub(super) type Result<T> = std::result::Result<T, String>;

pub(super) enum Outcome {
    /// Complete when the call returned.
    Bytes(Vec<u8>),
    /// On its way into our pinned memory: address, bytes.
    Coming(usize, usize),
}

impl Outcome {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Coming(_, size) => *size as u64,
        }
    }
}

static REGIONS: AtomicU64 = AtomicU64::new(0);
const MOST_RANGES: usize = 1 << 16;

pub(super) struct Log {
    pub(super) device: Device,
    /// Address and contents at the beginning.
    pub(super) before: Vec<(u64, Vec<u8>)>,
    pub(super) asked: BTreeMap<u64, Asked>,
    /// With later allocations.
    pub(super) memory: Memory,
    pub(super) streams: Vec<Stream>,
    pub(super) images: Vec<Arc<Image>>,
    pub(super) kernels: Vec<Kernel>,
    /// With their image's number.
    pub(super) variables: Vec<(u32, HeldVariable)>,
    pub(super) inputs: Vec<Vec<u8>>,
    pub(super) outputs: Vec<Outcome>,
    pub(super) operations: Vec<Operation>,
    pub(super) ranges: Vec<Range>,
    pub(super) number: u64,
    pub(super) refusal: Option<String>,
    stream_numbers: HashMap<Handle, u32>,
    event_numbers: HashMap<Handle, u32>,
    events: u32,
    pub(super) kernel_numbers: HashMap<Handle, (u32, Arc<Function>)>,
    /// Copies out before any work are no results.
    begun: bool,
    /// The host may read a result after its next wait.
    pending: bool,
    /// The host may have read a result.
    seen: bool,
    pub(super) settings: &'static Record,
}

impl Log {
    pub(super) fn begin(settings: &'static Record) -> Result<Self> {
        idle(settings)?;
        let device = record::device()?;
        let asked = variables::known();
        let memory = memory().clone();
        let mut before = Vec::new();
        let mut total = 0u64;
        let device_memory =
            |piece: &Piece| matches!(piece.kind, Kind::Device | Kind::Mapped | Kind::Variable);
        for piece in memory.pieces().filter(device_memory) {
            if record::gpu_of(piece.address).unwrap_or(piece.device) != device.ordinal {
                continue;
            }
            total = total.saturating_add(piece.size);
            if total > settings.most_bytes {
                return Err(format!(
                    "the program has more than {} bytes",
                    settings.most_bytes
                ));
            }
            let size = usize::try_from(piece.size).map_err(|_| "memory is too large")?;
            match record::read(piece.address, size, RegionKind::Device) {
                Ok(bytes) => before.push((piece.address, bytes)),
                // Perhaps another context's: refused if needed.
                Err(_) if piece.kind == Kind::Variable => {}
                Err(reason) => return Err(reason),
            }
        }
        Ok(Self {
            device,
            before,
            asked,
            memory,
            streams: Vec::new(),
            images: Vec::new(),
            kernels: Vec::new(),
            variables: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            operations: Vec::new(),
            ranges: Vec::new(),
            number: REGIONS.fetch_add(1, Ordering::Relaxed),
            refusal: None,
            stream_numbers: HashMap::new(),
            event_numbers: HashMap::new(),
            events: 0,
            kernel_numbers: HashMap::new(),
            begun: false,
            pending: false,
            seen: false,
            settings,
        })
    }

    pub(super) fn range(&mut self, number: u64, name: String, first: usize) {
        let ends = [first, self.operations.len()].map(u32::try_from);
        if let ([Ok(first), Ok(end)], true) = (ends, number == self.number)
            && first < end
            && self.ranges.len() < MOST_RANGES
        {
            self.ranges.push(Range { name, first, end });
        }
    }

    pub(super) fn refuse(&mut self, reason: String) {
        self.refusal.get_or_insert(reason);
    }

    pub(super) fn push(&mut self, operation: Operation) {
        if self.refusal.is_none() {
            self.operations.push(operation);
        }
    }

    pub(super) fn work(&mut self, what: &str, operation: Operation) -> Result<()> {
        if self.seen {
            return Err(format!(
                "{what} comes after the host may have read a result, and may depend on it; end the region before"
            ));
        }
        self.begun = true;
        self.push(operation);
        Ok(())
    }

    pub(super) fn stream(&mut self, stream: Handle) -> Result<u32> {
        let gpu = current_device().map_err(because("no current GPU"))?;
        if gpu != self.device.ordinal {
            return Err(format!("GPU {gpu} is used"));
        }
        let stream = if stream == attribute::stream::LEGACY {
            0
        } else {
            stream
        };
        if let Some(number) = self.stream_numbers.get(&stream) {
            return Ok(*number);
        }
        let kind = match stream {
            0 => StreamKind::Default,
            attribute::stream::PER_THREAD => StreamKind::Blocking,
            other => {
                let mut flags = 0;
                let driver = driver().map_err(because("no driver"))?;
                // SAFETY: the program's stream, a pointer to a local.
                let status = unsafe { driver.cuStreamGetFlags(other, &raw mut flags) };
                status.check().map_err(because("the flags of a stream"))?;
                if flags & attribute::stream::NON_BLOCKING == 0 {
                    StreamKind::Blocking
                } else {
                    StreamKind::Free
                }
            }
        };
        let number = u32::try_from(self.streams.len()).map_err(|_| "too many streams")?;
        self.streams.push(Stream { kind });
        self.stream_numbers.insert(stream, number);
        Ok(number)
    }

    pub(super) fn is_seen(&self) -> bool {
        self.seen
    }

    pub(super) fn forget_stream(&mut self, stream: Handle) {
        self.stream_numbers.remove(&stream);
    }

    pub(super) fn forget_event(&mut self, event: Handle) {
        self.event_numbers.remove(&event);
    }

    pub(super) fn allocated(&mut self, piece: Piece) {
        self.memory.insert_rest(piece);
    }

    pub(super) fn is_device(&self, address: u64) -> bool {
        let piece = self.memory.at(address);
        piece.is_some_and(|piece| piece.kind != Kind::Host)
            || self.variables.iter().any(|(_, variable)| {
                let held = &variable.held;
                (held.address..held.address + held.before.len() as u64).contains(&address)
            })
    }

    pub(super) fn usable(&self, address: u64) -> Result<()> {
        let piece = self.memory.at(address);
        match piece.and_then(|piece| piece.kind.lacked()) {
            Some(what) => Err(format!("it uses {what}")),
            None => Ok(()),
        }
    }

    /// Refuses the driver's unknown memory, which a replay lacks.
    pub(super) fn known(&self, address: u64) -> Result<()> {
        // Freed arena memory is mapped, but unused.
        if self.memory.at(address).is_some()
            || self.is_device(address)
            || arena::holds(address)
            || record::gpu_of(address).is_none()
        {
            return Ok(());
        }
        Err(format!(
            "it uses memory at {address:#x}, which was made in a way that is not recorded"
        ))
    }

    pub(super) fn input(&mut self, copied: Copied, stream: Handle, waits: bool) -> Result<()> {
        if copied.size == 0 {
            return Ok(());
        }
        self.usable(copied.to)?;
        let stream = self.stream(stream)?;
        let input = u32::try_from(self.inputs.len()).map_err(|_| "too many inputs")?;
        let operation = Operation::In {
            stream,
            address: copied.to,
            input,
            rows: copied.rows.map(|rows| Rows {
                from: rows.packed(),
                ..rows
            }),
        };
        self.work("an input", operation)?;
        let rows = copied.rows.map(|rows| (rows, rows.from));
        let bytes = host_rows(copied.from, copied.size, rows);
        self.inputs.push(bytes);
        if waits {
            self.push(Operation::HostStream { stream });
        }
        Ok(())
    }

    pub(super) fn output(&mut self, copied: Copied, stream: Handle, waits: bool) -> Result<()> {
        if copied.size == 0 || !self.begun {
            return Ok(());
        }
        self.usable(copied.from)?;
        let packed = copied.rows.map(|rows| Rows {
            to: rows.packed(),
            ..rows
        });
        let number = self.stream(stream)?;
        let output = u32::try_from(self.outputs.len()).map_err(|_| "too many outputs")?;
        self.push(Operation::Out {
            stream: number,
            address: copied.from,
            output,
            rows: packed,
        });
        // Copies to unpinned memory are done at return.
        if waits || self.memory.at(copied.to).is_none() {
            let rows = copied.rows.map(|rows| (rows, rows.to));
            let bytes = host_rows(copied.to, copied.size, rows);
            self.outputs.push(Outcome::Bytes(bytes));
            self.push(Operation::HostStream { stream: number });
            self.seen = true;
            return Ok(());
        }
        // Also to our memory: the host may overwrite its own.
        let driver = driver().map_err(because("no driver"))?;
        let (mut buffer, size) = (std::ptr::null_mut(), copied.size);
        // SAFETY: a pointer to a local, then our buffer of as many bytes; the stream is the program's.
        unsafe {
            let made = driver.cuMemHostAlloc(&raw mut buffer, size, attribute::host::PORTABLE);
            made.check()
                .map_err(because("pinned memory for a result"))?;
            let copied = match packed {
                None => driver.cuMemcpyDtoHAsync_v2(buffer, copied.from, size, stream),
                Some(rows) => {
                    let to = (Side::Host, buffer as u64);
                    let copy = rows.copy(to, (Side::Device, copied.from));
                    driver.cuMemcpy3DAsync_v2(&raw const copy, stream)
                }
            };
            copied.check().map_err(because("a copy of a result"))?;
        }
        self.outputs.push(Outcome::Coming(buffer as usize, size));
        self.pending = true;
        Ok(())
    }

    pub(super) fn copy(&mut self, copied: Copied, stream: Handle) -> Result<()> {
        if copied.size == 0 {
            return Ok(());
        }
        self.usable(copied.to)?;
        self.usable(copied.from)?;
        let stream = self.stream(stream)?;
        let operation = Operation::Copy {
            stream,
            to: copied.to,
            from: copied.from,
            size: copied.size as u64,
            rows: copied.rows,
        };
        self.work("a copy", operation)
    }

    pub(super) fn set(&mut self, set: &MemsetNode, stream: Handle) -> Result<()> {
        if set.width == 0 || set.height == 0 {
            return Ok(());
        }
        self.usable(set.destination)?;
        let operation = Operation::Set {
            stream: self.stream(stream)?,
            address: set.destination,
            pitch: set.pitch as u64,
            value: set.value,
            element: set.element,
            width: set.width as u64,
            height: set.height as u64,
        };
        self.work("a memset", operation)
    }

    pub(super) fn record(&mut self, event: Handle, stream: Handle) -> Result<()> {
        let stream = self.stream(stream)?;
        // Each record is a new event: a wait means the last one.
        let number = self.events;
        self.events = number.checked_add(1).ok_or("too many events")?;
        self.event_numbers.insert(event, number);
        self.push(Operation::Record {
            stream,
            event: number,
        });
        Ok(())
    }

    pub(super) fn wait(&mut self, stream: Handle, event: Handle) -> Result<()> {
        let stream = self.stream(stream)?;
        // Earlier events have happened: the GPU was idle.
        if let Some(event) = self.event_numbers.get(&event).copied() {
            self.push(Operation::Wait { stream, event });
        }
        Ok(())
    }

    pub(super) fn host(&mut self, wait: HostWait) -> Result<()> {
        if !self.begun {
            return Ok(());
        }
        let operation = match wait {
            HostWait::Stream(stream) => Some(Operation::HostStream {
                stream: self.stream(stream)?,
            }),
            HostWait::Event(event) => {
                let event = self.event_numbers.get(&event).copied();
                event.map(|event| Operation::HostEvent { event })
            }
            HostWait::All => Some(Operation::HostAll {}),
        };
        if let Some(operation) = operation {
            self.push(operation);
            self.seen |= self.pending;
        }
        Ok(())
    }
}

pub(super) fn idle(settings: &Record) -> Result<()> {
    if idle_within(settings.time_limit).map_err(because("the GPU is not idle"))? {
        return Ok(());
    }
    Err(record::busy(settings))
}
