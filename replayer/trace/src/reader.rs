// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads records one at a time.

use std::io::{self, Read};

use zerocopy::FromBytes;

use crate::layout::{
    self, BeginPayload, CompletePayload, EndPayload, ErrorPayload, Header, IrqPayload, MAX_RECORD,
    MappingPayload, PagePayload, PollPayload, RegionPayload, RegisterPayload, SubmitPayload,
};
use crate::{
    Begin, Context, Driver, ErrorCode, Event, Line, PAGE_SIZE, Phase, Record, RecordType,
    RegionFlags,
};

const HEADER: usize = size_of::<Header>();

/// Why a stream is not a raw trace. Positions are byte offsets.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The stream cannot be read.
    #[error("reading the trace at byte {position}: {source}")]
    Io {
        /// Byte offset.
        position: u64,
        /// System's error.
        source: io::Error,
    },
    /// The stream ends inside a record.
    #[error(
        "the trace is cut off: a record starts at byte {position} and ends after the file does"
    )]
    Truncated {
        /// Record's start.
        position: u64,
    },
    /// Impossible length.
    #[error(
        "bad record at byte {position}: length {length} (expected a multiple of 8 from {HEADER} to {MAX_RECORD})"
    )]
    Length {
        /// Record's start.
        position: u64,
        /// As stated.
        length: u32,
    },
    /// The first record is not BEGIN of a known version.
    #[error("not a raw trace of version {}: {found}", layout::VERSION)]
    NotATrace {
        /// What is there.
        found: String,
    },
    /// Unknown record type.
    #[error("bad record at byte {position}: type {kind} is not known")]
    Kind {
        /// Record's start.
        position: u64,
        /// Type.
        kind: u16,
    },
    /// Length does not fit the type.
    #[error("bad {kind} record at byte {position}: {length} bytes of payload, expected {expected}")]
    Payload {
        /// Record's start.
        position: u64,
        /// Type.
        kind: RecordType,
        /// Bytes after the header.
        length: usize,
        /// Bytes after the header.
        expected: usize,
    },
    /// Undefined value.
    #[error("bad {kind} record at byte {position}: {field} is {value:#x}")]
    Field {
        /// Record's start.
        position: u64,
        /// Type.
        kind: RecordType,
        /// Its name.
        field: &'static str,
        /// Value.
        value: u64,
    },
}

/// Reads records from a stream.
///
/// ```
/// use gpureplay_trace::{Driver, Event, Reader, Writer};
/// let mut writer = Writer::begin(Vec::new(), Driver::Panfrost, false, "panfrost", "6.12").unwrap();
/// writer.reg_write(0x30, 1).unwrap();
/// let trace = writer.end().unwrap();
/// let mut reader = Reader::new(trace.as_slice());
/// while let Some(record) = reader.next_record().unwrap() {
///     if let Event::RegWrite { offset, value } = record.event {
///         assert_eq!((offset, value), (0x30, 1));
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    stream: io::BufReader<R>,
    position: u64,
    buffer: Box<[u8]>,
}

impl<R: Read> Reader<R> {
    /// Reader at a trace's beginning.
    pub fn new(stream: R) -> Self {
        Reader {
            stream: io::BufReader::with_capacity(1 << 16, stream),
            position: 0,
            buffer: vec![0; MAX_RECORD].into(),
        }
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// `None` at the end.
    ///
    /// Do not go on after an error.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        let position = self.position;
        let first = position == 0;
        let read = fill(&mut self.stream, &mut self.buffer[..HEADER])
            .map_err(|source| TraceError::Io { position, source })?;
        if read == 0 && !first {
            return Ok(None);
        }
        if read < HEADER {
            return Err(if first {
                TraceError::NotATrace {
                    found: format!("the file has only {read} bytes"),
                }
            } else {
                TraceError::Truncated { position }
            });
        }
        let Ok((header, _)) = Header::read_from_prefix(&self.buffer) else {
            return Err(TraceError::Truncated { position });
        };
        if first && header.kind.get() != RecordType::Begin.code() {
            let found = format!("it starts with record type {}, not BEGIN", header.kind);
            return Err(TraceError::NotATrace { found });
        }
        let length = header.length.get();
        let whole = length as usize;
        if !(HEADER..=MAX_RECORD).contains(&whole) || !whole.is_multiple_of(8) {
            return Err(TraceError::Length { position, length });
        }
        let payload = &mut self.buffer[HEADER..whole];
        let read = fill(&mut self.stream, payload)
            .map_err(|source| TraceError::Io { position, source })?;
        if read < payload.len() {
            return Err(TraceError::Truncated { position });
        }
        self.position = position.saturating_add(u64::from(length));
        decode(position, &header, &self.buffer[HEADER..whole]).map(Some)
    }
}

fn fill(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match stream.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

struct Payload<'a> {
    position: u64,
    kind: RecordType,
    bytes: &'a [u8],
}

impl<'a> Payload<'a> {
    fn get<T: FromBytes>(&self) -> Result<T, TraceError> {
        T::read_from_bytes(self.bytes).map_err(|_| self.length(size_of::<T>()))
    }

    fn length(&self, expected: usize) -> TraceError {
        TraceError::Payload {
            position: self.position,
            kind: self.kind,
            length: self.bytes.len(),
            expected,
        }
    }

    fn field(&self, field: &'static str, value: impl Into<u64>) -> TraceError {
        TraceError::Field {
            position: self.position,
            kind: self.kind,
            field,
            value: value.into(),
        }
    }

    fn page_aligned(&self, va: u64) -> Result<u64, TraceError> {
        if va.is_multiple_of(PAGE_SIZE as u64) {
            Ok(va)
        } else {
            Err(self.field("va", va))
        }
    }
}

fn text<'a>(
    payload: &Payload<'a>,
    field: &'static str,
    bytes: &'a [u8],
) -> Result<&'a str, TraceError> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let text = &bytes[..end];
    core::str::from_utf8(text).map_err(|e| payload.field(field, text[e.valid_up_to()]))
}

fn space(code: u32) -> Option<u32> {
    (code != layout::AS_NONE).then_some(code)
}

fn decode<'a>(position: u64, header: &Header, bytes: &'a [u8]) -> Result<Record<'a>, TraceError> {
    let kind = RecordType::from_code(header.kind.get()).ok_or(TraceError::Kind {
        position,
        kind: header.kind.get(),
    })?;
    let payload = Payload {
        position,
        kind,
        bytes,
    };
    let context = Context::from_code(header.context)
        .ok_or_else(|| payload.field("context", header.context))?;
    let slot = header.slot_or_line;
    let line = || Line::from_code(slot).ok_or_else(|| payload.field("interrupt line", slot));
    let event = match kind {
        RecordType::Begin => Event::Begin(begin(&payload)?),
        RecordType::RegRead | RecordType::RegWrite => {
            let p: RegisterPayload = payload.get()?;
            let (offset, value) = (p.offset.get(), p.value.get());
            if kind == RecordType::RegRead {
                Event::RegRead { offset, value }
            } else {
                Event::RegWrite { offset, value }
            }
        }
        RecordType::PollBegin => {
            let p: PollPayload = payload.get()?;
            Event::PollBegin {
                offset: p.offset.get(),
                timeout_us: p.timeout_us.get(),
            }
        }
        RecordType::PollEnd => {
            let p: PollPayload = payload.get()?;
            Event::PollEnd {
                offset: p.offset.get(),
                last_value: p.last_value.get(),
                result: p.result.get(),
                timeout_us: p.timeout_us.get(),
            }
        }
        RecordType::IrqEnter => {
            payload.get::<IrqPayload>()?;
            Event::IrqEnter { line: line()? }
        }
        RecordType::IrqExit => {
            let p: IrqPayload = payload.get()?;
            Event::IrqExit {
                line: line()?,
                irqreturn: p.irqreturn.get(),
            }
        }
        RecordType::Map | RecordType::Unmap => {
            let p: MappingPayload = payload.get()?;
            let (space, flags, va, size) = (
                space(p.space.get()),
                p.flags.get(),
                p.va.get(),
                p.size.get(),
            );
            if kind == RecordType::Map {
                Event::Map {
                    space,
                    flags,
                    va,
                    size,
                }
            } else {
                Event::Unmap {
                    space,
                    flags,
                    va,
                    size,
                }
            }
        }
        RecordType::Submit => {
            let p: SubmitPayload = payload.get()?;
            Event::Submit {
                slot,
                space: p.space.get(),
                chain_head: p.chain_head.get(),
                stream_bytes: p.stream_bytes.get(),
            }
        }
        RecordType::Region => {
            let p: RegionPayload = payload.get()?;
            let (va, pages) = (payload.page_aligned(p.va.get())?, p.pages.get());
            let end = pages
                .checked_mul(PAGE_SIZE as u64)
                .and_then(|size| va.checked_add(size));
            if pages == 0 || end.is_none() {
                return Err(payload.field("pages", pages));
            }
            Event::Region {
                space: p.space.get(),
                flags: RegionFlags(p.flags.get()),
                va,
                pages,
            }
        }
        RecordType::Page => page(&payload)?,
        RecordType::Complete => {
            let p: CompletePayload = payload.get()?;
            Event::Complete {
                slot,
                status: p.status.get(),
            }
        }
        RecordType::Note => Event::Note(text(&payload, "text", bytes)?),
        RecordType::Error => {
            let p: ErrorPayload = payload.get()?;
            let code = ErrorCode::from_code(p.code.get())
                .ok_or_else(|| payload.field("code", p.code.get()))?;
            Event::Error {
                code,
                detail: p.detail.get(),
            }
        }
        RecordType::End => {
            let p: EndPayload = payload.get()?;
            Event::End {
                records: p.records.get(),
                bytes: p.bytes.get(),
            }
        }
    };
    Ok(Record {
        position,
        sequence: header.sequence.get(),
        time_ns: header.time_ns.get(),
        context,
        event,
    })
}

fn begin<'a>(payload: &Payload<'a>) -> Result<Begin<'a>, TraceError> {
    let (p, _) = BeginPayload::ref_from_prefix(payload.bytes)
        .map_err(|_| payload.length(size_of::<BeginPayload>()))?;
    let version = p.version.get();
    if version != layout::VERSION {
        return Err(TraceError::NotATrace {
            found: format!("it says version {version}"),
        });
    }
    payload.get::<BeginPayload>()?;
    if p.page_size.get() as usize != PAGE_SIZE {
        return Err(payload.field("page_size", p.page_size.get()));
    }
    Ok(Begin {
        driver: Driver::from_code(p.driver.get())
            .ok_or_else(|| payload.field("driver", p.driver.get()))?,
        coherent: p.flags.get() & layout::BEGIN_COHERENT != 0,
        in_app: p.flags.get() & layout::BEGIN_IN_APP != 0,
        driver_name: text(payload, "driver_name", &p.driver_name)?,
        kernel_release: text(payload, "kernel_release", &p.kernel_release)?,
    })
}

fn page<'a>(payload: &Payload<'a>) -> Result<Event<'a>, TraceError> {
    let expected = size_of::<PagePayload>() + PAGE_SIZE;
    let (p, contents) =
        PagePayload::ref_from_prefix(payload.bytes).map_err(|_| payload.length(expected))?;
    let bytes = match contents {
        [] => None,
        contents => {
            Some(<&[u8; PAGE_SIZE]>::try_from(contents).map_err(|_| payload.length(expected))?)
        }
    };
    let phase =
        Phase::from_code(p.phase.get()).ok_or_else(|| payload.field("phase", p.phase.get()))?;
    Ok(Event::Page {
        space: p.space.get(),
        phase,
        va: payload.page_aligned(p.va.get())?,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;

    fn sample() -> Vec<u8> {
        let mut w =
            Writer::begin(Vec::new(), Driver::Panfrost, true, "panfrost", "6.12.1").unwrap();
        w.reg_read(0, 0x7212_0000).unwrap();
        w.poll(0x20, 0x100, 0, 10_000, &[0, 0x100]).unwrap();
        w.region(0, RegionFlags::READ | RegionFlags::FIRST, 0x10000, 2)
            .unwrap();
        w.page(0, Phase::Before, 0x10000, &[7; PAGE_SIZE]).unwrap();
        w.page(0, Phase::Before, 0x11000, &[0; PAGE_SIZE]).unwrap();
        w.submit(1, 0, 0x10040).unwrap();
        w.irq(Line::Job, Context::HardIrq, 1, |_| Ok(())).unwrap();
        w.complete(1, 1).unwrap();
        w.note("hello").unwrap();
        w.end().unwrap()
    }

    fn read_all(bytes: &[u8]) -> Result<usize, TraceError> {
        let mut reader = Reader::new(bytes);
        let mut count = 0;
        while reader.next_record()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sample();
        let mut reader = Reader::new(bytes.as_slice());
        let mut zero_pages = 0;
        let mut sequence = 0;
        while let Some(record) = reader.next_record().unwrap() {
            assert_eq!(record.sequence, sequence);
            sequence += 1;
            match record.event {
                Event::Begin(begin) => {
                    assert_eq!(
                        (begin.driver_name, begin.kernel_release),
                        ("panfrost", "6.12.1")
                    );
                    assert!(begin.coherent);
                }
                Event::Page {
                    bytes: None, va, ..
                } => {
                    assert_eq!(va, 0x11000);
                    zero_pages += 1;
                }
                Event::Page {
                    bytes: Some(bytes), ..
                } => assert!(bytes.iter().all(|b| *b == 7)),
                Event::Note(text) => assert_eq!(text, "hello"),
                Event::End { records, .. } => assert_eq!(records, sequence - 1),
                _ => {}
            }
        }
        assert_eq!(zero_pages, 1);
        assert_eq!(reader.position(), bytes.len() as u64);
    }

    #[test]
    fn every_truncation_inside_a_record_is_an_error() {
        let bytes = sample();
        let mut ends = vec![];
        let mut reader = Reader::new(bytes.as_slice());
        while reader.next_record().unwrap().is_some() {
            ends.push(reader.position() as usize);
        }
        for n in (0..bytes.len()).filter(|n| n % 97 < 40) {
            assert_eq!(read_all(&bytes[..n]).is_ok(), ends.contains(&n), "{n}");
        }
    }

    #[test]
    fn bad_bytes_never_panic() {
        let bytes = sample();
        for at in (0..bytes.len()).filter(|at| at % 4096 < 300) {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = read_all(&changed);
            }
        }
        assert!(matches!(
            read_all(b"hello"),
            Err(TraceError::NotATrace { .. })
        ));
        assert!(matches!(
            read_all(&[0; 64]),
            Err(TraceError::NotATrace { .. })
        ));
    }
}
