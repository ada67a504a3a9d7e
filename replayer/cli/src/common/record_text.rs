// SPDX-License-Identifier: MIT OR Apache-2.0
//! A raw trace record as text, with register names.

use std::fmt::{self, Write};

use gpureplay_trace::{Event, PAGE_SIZE, Record, RegionFlags};
use mali_drive::names;

struct Register(u32);

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match names::register(self.0) {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "{:#06x}", self.0),
        }
    }
}

struct Space(Option<u32>);

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(space) => write!(f, "AS{space}"),
            None => f.write_str("AS?"),
        }
    }
}

pub(crate) fn write_record(
    out: &mut impl Write,
    record: &Record<'_>,
    start_ns: u64,
    hexdumps: bool,
) -> fmt::Result {
    let time = record.time_ns.wrapping_sub(start_ns);
    write!(
        out,
        "{:8} {:5}.{:06} {:10} ",
        record.sequence,
        time / 1_000_000_000,
        time / 1000 % 1_000_000,
        record.context
    )?;
    match record.event {
        Event::Begin(begin) => {
            let coherent = if begin.coherent { ", coherent" } else { "" };
            writeln!(
                out,
                "BEGIN {} ({}) on Linux {}{coherent}",
                begin.driver, begin.driver_name, begin.kernel_release
            )
        }
        Event::RegRead { offset, value } => {
            writeln!(out, "read  {} = {value:#010x}", Register(offset))
        }
        Event::RegWrite { offset, value } => {
            writeln!(out, "write {} = {value:#010x}", Register(offset))
        }
        Event::PollBegin { offset, timeout_us } => {
            writeln!(
                out,
                "poll  {} for at most {timeout_us} us",
                Register(offset)
            )
        }
        Event::PollEnd {
            offset,
            last_value,
            result,
            ..
        } => {
            let verdict = if result == 0 { "done" } else { "FAILED" };
            writeln!(
                out,
                "poll  {} {verdict} ({result}) with {last_value:#010x}",
                Register(offset)
            )
        }
        Event::IrqEnter { line } => writeln!(out, "irq   {line} {{"),
        Event::IrqExit { line, irqreturn } => {
            let verdict = match irqreturn {
                0 => "not ours",
                1 => "handled",
                2 => "wakes the thread",
                _ => "unknown",
            };
            writeln!(out, "irq   {line} }} {verdict}")
        }
        Event::Map {
            space,
            flags,
            va,
            size,
        } => {
            writeln!(
                out,
                "map   {} {va:#x} {size:#x} bytes flags {flags:#x}",
                Space(space)
            )
        }
        Event::Unmap {
            space,
            flags,
            va,
            size,
        } => {
            writeln!(
                out,
                "unmap {} {va:#x} {size:#x} bytes flags {flags:#x}",
                Space(space)
            )
        }
        Event::Submit {
            slot,
            space,
            chain_head,
            stream_bytes,
        } => {
            write!(out, "SUBMIT slot {slot} {} ", Space(Some(space)))?;
            match stream_bytes {
                0 => writeln!(out, "chain {chain_head:#x}"),
                bytes => writeln!(out, "stream {chain_head:#x} {bytes:#x} bytes"),
            }
        }
        Event::Region {
            space,
            flags,
            va,
            pages,
        } => {
            let first = if flags.contains(RegionFlags::FIRST) {
                " (list starts)"
            } else {
                ""
            };
            writeln!(
                out,
                "region {} {va:#x} {pages} pages {flags}{first}",
                Space(Some(space))
            )
        }
        Event::Page {
            space,
            phase,
            va,
            bytes,
        } => {
            match bytes {
                None => writeln!(out, "page  {} {va:#x} {phase} zero", Space(Some(space)))?,
                Some(bytes) => {
                    let used = bytes.iter().filter(|b| **b != 0).count();
                    writeln!(
                        out,
                        "page  {} {va:#x} {phase} {used} bytes not zero",
                        Space(Some(space))
                    )?;
                    if hexdumps {
                        hexdump(out, va, bytes)?;
                    }
                }
            }
            Ok(())
        }
        Event::Complete { slot, status } => {
            let name = names::status(status).unwrap_or("unknown");
            writeln!(out, "COMPLETE slot {slot} {name} ({status:#x})")
        }
        Event::Note(text) => writeln!(out, "note  {}", text.escape_debug()),
        Event::Error { code, detail } => writeln!(out, "ERROR {code} {detail:#x}"),
        Event::End { records, bytes } => writeln!(out, "END {records} records, {bytes} bytes"),
    }
}

fn hexdump(out: &mut impl Write, va: u64, bytes: &[u8; PAGE_SIZE]) -> fmt::Result {
    for (i, line) in bytes.chunks_exact(32).enumerate() {
        if line.iter().all(|b| *b == 0) {
            continue;
        }
        write!(out, "{:>30}{:#012x}:", "", va + 32 * i as u64)?;
        for word in line.chunks_exact(4) {
            write!(
                out,
                " {:02x}{:02x}{:02x}{:02x}",
                word[3], word[2], word[1], word[0]
            )?;
        }
        out.write_char('\n')?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpureplay_trace::{Driver, Phase, Reader, Writer};

    #[test]
    fn registers_are_named() {
        let mut w = Writer::begin(Vec::new(), Driver::Panfrost, false, "panfrost", "6.12").unwrap();
        w.reg_write(0x18e0, 1).unwrap();
        w.reg_read(0x3ffc, 1).unwrap();
        let mut page = [0; PAGE_SIZE];
        page[64] = 9;
        w.page(0, Phase::Before, 0x5000, &page).unwrap();
        w.complete(1, 0x51).unwrap();
        let trace = w.end().unwrap();
        let mut reader = Reader::new(trace.as_slice());
        let mut text = String::new();
        while let Some(record) = reader.next_record().unwrap() {
            write_record(&mut text, &record, 0, true).unwrap();
        }
        for part in [
            "write JS1_COMMAND_NEXT = 0x00000001",
            "read  0x3ffc = 0x00000001",
            "0x0000005040: 00000009",
            "INSTR_INVALID_ENC",
            "END 5 records",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
