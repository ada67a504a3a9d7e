// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes raw traces.

use std::io::{self, Write};

use zerocopy::little_endian::{I32, U16, U32, U64};
use zerocopy::{Immutable, IntoBytes};

use crate::layout::{
    self, BeginPayload, CompletePayload, EndPayload, ErrorPayload, Header, IrqPayload,
    MappingPayload, PagePayload, PollPayload, RegionPayload, RegisterPayload, SubmitPayload,
};
use crate::{Begin, Context, Driver, ErrorCode, Line, PAGE_SIZE, Phase, RecordType, RegionFlags};

/// Its clock counts one microsecond per record until [`Writer::set_time`].
#[derive(Debug)]
pub struct Writer<W> {
    stream: W,
    time_ns: Option<u64>,
    context: Context,
    sequence: u64,
    position: u64,
}

fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    for (to, from) in out.iter_mut().take(N - 1).zip(text.bytes()) {
        *to = from;
    }
    out
}

impl<W: Write> Writer<W> {
    /// Writes BEGIN.
    pub fn begin(
        stream: W,
        driver: Driver,
        coherent: bool,
        driver_name: &str,
        kernel_release: &str,
    ) -> io::Result<Self> {
        let begin = Begin {
            driver,
            coherent,
            in_app: false,
            driver_name,
            kernel_release,
        };
        Self::begin_at(stream, &begin, None)
    }

    /// At a time in nanoseconds, kept until [`Writer::set_time`].
    pub fn begin_at(stream: W, begin: &Begin<'_>, time_ns: Option<u64>) -> io::Result<Self> {
        let mut writer = Writer {
            stream,
            time_ns,
            context: Context::Process,
            sequence: 0,
            position: 0,
        };
        let flag = |set, bit| if set { bit } else { 0 };
        let payload = BeginPayload {
            version: U32::new(layout::VERSION),
            page_size: U32::new(PAGE_SIZE as u32),
            driver: U32::new(begin.driver.code()),
            flags: U32::new(
                flag(begin.coherent, layout::BEGIN_COHERENT)
                    | flag(begin.in_app, layout::BEGIN_IN_APP),
            ),
            driver_name: padded(begin.driver_name),
            kernel_release: padded(begin.kernel_release),
        };
        writer.record(RecordType::Begin, 0, &payload, &[])?;
        Ok(writer)
    }

    /// Monotonic, in nanoseconds, for following records.
    pub fn set_time(&mut self, ns: u64) {
        self.time_ns = Some(ns);
    }

    /// Where the records go.
    pub fn stream_mut(&mut self) -> &mut W {
        &mut self.stream
    }

    fn record<P: IntoBytes + Immutable>(
        &mut self,
        kind: RecordType,
        slot_or_line: u8,
        payload: &P,
        tail: &[u8],
    ) -> io::Result<()> {
        let unpadded = size_of::<Header>() + size_of::<P>() + tail.len();
        let length = unpadded.next_multiple_of(8);
        let header = Header {
            kind: U16::new(kind.code()),
            context: self.context.code(),
            slot_or_line,
            length: U32::new(length as u32),
            sequence: U64::new(self.sequence),
            time_ns: U64::new(self.time_ns.unwrap_or(self.sequence * 1000)),
        };
        self.stream.write_all(header.as_bytes())?;
        self.stream.write_all(payload.as_bytes())?;
        self.stream.write_all(tail)?;
        self.stream.write_all(&[0; 8][..length - unpadded])?;
        self.sequence += 1;
        self.position += length as u64;
        Ok(())
    }

    /// Writes REG_READ.
    pub fn reg_read(&mut self, offset: u32, value: u32) -> io::Result<()> {
        let payload = RegisterPayload {
            offset: offset.into(),
            value: value.into(),
        };
        self.record(RecordType::RegRead, 0, &payload, &[])
    }

    /// Writes REG_WRITE.
    pub fn reg_write(&mut self, offset: u32, value: u32) -> io::Result<()> {
        let payload = RegisterPayload {
            offset: offset.into(),
            value: value.into(),
        };
        self.record(RecordType::RegWrite, 0, &payload, &[])
    }

    /// POLL_BEGIN, the reads, and POLL_END.
    pub fn poll(
        &mut self,
        offset: u32,
        last: u32,
        result: i32,
        timeout_us: u32,
        reads: &[u32],
    ) -> io::Result<()> {
        let payload = |last_value: u32, result: i32| PollPayload {
            offset: offset.into(),
            last_value: last_value.into(),
            result: I32::new(result),
            timeout_us: timeout_us.into(),
        };
        self.record(RecordType::PollBegin, 0, &payload(0, 0), &[])?;
        for value in reads {
            self.reg_read(offset, *value)?;
        }
        self.record(RecordType::PollEnd, 0, &payload(last, result), &[])
    }

    /// IRQ_ENTER, what `body` writes, and IRQ_EXIT.
    pub fn irq(
        &mut self,
        line: Line,
        context: Context,
        irqreturn: u32,
        body: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let outer = std::mem::replace(&mut self.context, context);
        let payload = |irqreturn: u32| IrqPayload {
            irqreturn: irqreturn.into(),
            reserved: U32::ZERO,
        };
        self.record(RecordType::IrqEnter, line.code(), &payload(0), &[])?;
        body(self)?;
        self.record(RecordType::IrqExit, line.code(), &payload(irqreturn), &[])?;
        self.context = outer;
        Ok(())
    }

    /// MAP, or UNMAP.
    pub fn mapping(
        &mut self,
        map: bool,
        space: Option<u32>,
        flags: u32,
        va: u64,
        size: u64,
    ) -> io::Result<()> {
        let payload = MappingPayload {
            space: space.unwrap_or(layout::AS_NONE).into(),
            flags: flags.into(),
            va: va.into(),
            size: size.into(),
        };
        self.record(
            if map {
                RecordType::Map
            } else {
                RecordType::Unmap
            },
            0,
            &payload,
            &[],
        )
    }

    /// SUBMIT of a job chain.
    pub fn submit(&mut self, slot: u8, space: u32, chain_head: u64) -> io::Result<()> {
        self.submit_stream(slot, space, (chain_head, 0))
    }

    /// SUBMIT of a command stream: address and bytes.
    pub fn submit_stream(
        &mut self,
        slot: u8,
        space: u32,
        (address, bytes): (u64, u32),
    ) -> io::Result<()> {
        let payload = SubmitPayload {
            space: space.into(),
            stream_bytes: bytes.into(),
            chain_head: address.into(),
        };
        self.record(RecordType::Submit, slot, &payload, &[])
    }

    /// Writes REGION.
    pub fn region(
        &mut self,
        space: u32,
        flags: RegionFlags,
        va: u64,
        pages: u64,
    ) -> io::Result<()> {
        let payload = RegionPayload {
            space: space.into(),
            flags: flags.0.into(),
            va: va.into(),
            pages: pages.into(),
        };
        self.record(RecordType::Region, 0, &payload, &[])
    }

    /// PAGE; a zero page's bytes are left out.
    pub fn page(
        &mut self,
        space: u32,
        phase: Phase,
        va: u64,
        bytes: &[u8; PAGE_SIZE],
    ) -> io::Result<()> {
        let payload = PagePayload {
            space: space.into(),
            phase: phase.code().into(),
            va: va.into(),
        };
        let zero = *bytes == [0; PAGE_SIZE];
        self.record(
            RecordType::Page,
            0,
            &payload,
            if zero { &[] } else { bytes },
        )
    }

    /// Writes COMPLETE.
    pub fn complete(&mut self, slot: u8, status: u32) -> io::Result<()> {
        let payload = CompletePayload {
            status: status.into(),
            reserved: U32::ZERO,
        };
        self.record(RecordType::Complete, slot, &payload, &[])
    }

    /// NOTE; text beyond 4096 bytes is cut off.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        let mut end = text.len().min(PAGE_SIZE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.record(RecordType::Note, 0, &(), &text.as_bytes()[..end])
    }

    /// Writes ERROR.
    pub fn error(&mut self, code: ErrorCode, detail: u64) -> io::Result<()> {
        let payload = ErrorPayload {
            code: code.code().into(),
            reserved: U32::ZERO,
            detail: detail.into(),
        };
        self.record(RecordType::Error, 0, &payload, &[])
    }

    /// END; gives the stream back.
    pub fn end(mut self) -> io::Result<W> {
        let payload = EndPayload {
            records: self.sequence.into(),
            bytes: self.position.into(),
        };
        self.record(RecordType::End, 0, &payload, &[])?;
        self.stream.flush()?;
        Ok(self.stream)
    }
}
