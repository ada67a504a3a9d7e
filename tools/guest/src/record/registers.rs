// SPDX-License-Identifier: MIT OR Apache-2.0
//! Register writes: recorder against model.

use std::{fs::File, io::BufReader, path::Path};

use gpureplay_trace::{Event, Reader};
use mali_facts::registers::{job_slot, job_slot::JobConfigFlags, mmu};

/// Offset, value.
type Write = (u32, u32);

/// The trace must be a contiguous part of the model's log.
pub(crate) fn same_writes(trace: &Path, log: &Path) -> Result<(), String> {
    let recorded = writes_of_trace(trace)?;
    let text =
        std::fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let seen = writes_of_log(&text)?;
    contained(&recorded, &seen)
}

pub(crate) fn page_faults(trace: &Path) -> Result<usize, String> {
    let mut faults = 0;
    each(trace, |event| match event {
        Event::RegRead { offset, value } if offset == mmu::MMU_INT_STAT && value != 0 => {
            faults += 1
        }
        _ => {}
    })?;
    Ok(faults)
}

/// Of a job chain or a command stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// To job slots, without two varying parts: the number of cache flushes before it, and the chain's flag, the lowest
    /// bit of the driver's job count.
    writes: Vec<Write>,
    /// Bytes; no register tells them. Its place depends on the buffers that the runtime has freed by then.
    stream: u32,
}

pub(crate) fn starts(trace: &Path) -> Result<Vec<Start>, String> {
    let slots = job_slot::offset(0, 0)..job_slot::offset(3, 0);
    let is_flush = |offset| (offset - slots.start) % job_slot::STRIDE == job_slot::FLUSH_ID_NEXT;
    let (mut out, mut start) = (Vec::new(), Start::default());
    each(trace, |event| match event {
        Event::RegWrite { offset, value } if slots.contains(&offset) && !is_flush(offset) => {
            let flag = match (offset - slots.start) % job_slot::STRIDE {
                job_slot::CONFIG_NEXT => JobConfigFlags::CHAIN_FLAG.bits(),
                _ => 0,
            };
            start.writes.push((offset, value & !flag));
        }
        Event::Submit { stream_bytes, .. } => start.stream = stream_bytes,
        Event::Complete { .. } => out.push(std::mem::take(&mut start)),
        _ => {}
    })?;
    Ok(out)
}

fn writes_of_trace(path: &Path) -> Result<Vec<Write>, String> {
    let mut writes = Vec::new();
    each(path, |event| {
        if let Event::RegWrite { offset, value } = event {
            writes.push((offset, value));
        }
    })?;
    Ok(writes)
}

fn each(path: &Path, mut see: impl FnMut(Event<'_>)) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let mut reader = Reader::new(BufReader::new(file));
    while let Some(record) = reader.next_record().map_err(|error| wrong(&error))? {
        see(record.event);
    }
    Ok(())
}

/// Lines are `W 0x0030 0x00000001 GPU_CMD`; reads begin with R.
fn writes_of_log(text: &str) -> Result<Vec<Write>, String> {
    let number = |word: Option<&str>| u32::from_str_radix(word?.strip_prefix("0x")?, 16).ok();
    text.lines()
        .filter(|line| line.starts_with("W "))
        .map(|line| {
            let mut words = line.split(' ').skip(1);
            number(words.next())
                .zip(number(words.next()))
                .ok_or_else(|| format!("the model's log has a strange line: {line}"))
        })
        .collect()
}

fn contained(recorded: &[Write], seen: &[Write]) -> Result<(), String> {
    if recorded.is_empty() {
        return Err("the trace has no register writes".into());
    }
    if seen
        .windows(recorded.len())
        .any(|window| window == recorded)
    {
        return Ok(());
    }
    // The longest match shows where trace and log part.
    let (start, same) = (0..seen.len())
        .map(|start| {
            let pairs = seen[start..].iter().zip(recorded);
            (start, pairs.take_while(|(a, b)| a == b).count())
        })
        .max_by_key(|&(_, same)| same)
        .unwrap_or((0, 0));
    let show = |write: Option<&Write>| {
        write.map_or("nothing".into(), |(offset, value)| {
            format!("{offset:#06x} = {value:#010x}")
        })
    };
    Err(format!(
        "register write {same} of {}: recorded {}, the model saw {}",
        recorded.len(),
        show(recorded.get(same)),
        show(seen.get(start + same))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpureplay_trace::{Driver, Writer};

    #[test]
    fn a_longer_stream_is_another_start() {
        let trace = |bytes| {
            let mut trace =
                Writer::begin(Vec::new(), Driver::Panthor, true, "panthor", "6.12").unwrap();
            trace.submit_stream(0, 0, (0x7fff_a000, bytes)).unwrap();
            trace.complete(0, 1).unwrap();
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), trace.end().unwrap()).unwrap();
            starts(file.path()).unwrap()
        };
        assert_eq!(trace(0xa0).len(), 1);
        assert_eq!(trace(0xa0), trace(0xa0));
        assert_ne!(trace(0xa0), trace(0xa8));
    }

    #[test]
    fn log_lines_are_read() {
        let text =
            "R 0x0000 0x72120000 GPU_ID\nW 0x0030 0x00000001 GPU_CMD\nW 0x1820 0x0000000a -\n";
        assert_eq!(writes_of_log(text), Ok(vec![(0x30, 1), (0x1820, 10)]));
        assert!(writes_of_log("W nonsense\n").is_err());
    }

    #[test]
    fn a_missing_or_changed_write_is_seen() {
        let seen = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)];
        assert_eq!(contained(&seen[1..4], &seen), Ok(()));
        let error = contained(&[(2, 2), (4, 4)], &seen).unwrap_err();
        assert!(
            error.contains("write 1 of 2") && error.contains("0x0003"),
            "{error}"
        );
        assert!(contained(&[(2, 2), (3, 9)], &seen).is_err());
        assert!(contained(&[], &seen).is_err());
        assert!(contained(&[(5, 5), (6, 6)], &seen).is_err());
    }
}
