// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws in the tiler's heap, in the model's own form: hardware's is not public. The count is in the tiler context.

use gpureplay_memory::Bus;
use mali_facts::registers::JobStatus;
use mali_facts::{TILER_STATE_OFFSET, TilerContext, TilerHeap, descriptor_address};

use super::{Job, primitive};
use crate::environment::JobFault;

const MARK: u32 = 0x5741_5244;
const RECORD_BYTES: u64 = 32;
/// Per framebuffer.
const MOST_DRAWS: u64 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Draw descriptor; on Valhall, the job.
    pub(crate) draw: u64,
    pub(crate) mode: u32,
    pub(crate) vertices: u32,
    pub(crate) first_provokes: bool,
    pub(crate) packets: u64,
}

impl Record {
    fn words(&self) -> [u32; 8] {
        let provoking = u32::from(self.first_provokes);
        let [[low, high], [first, second]] =
            [self.draw, self.packets].map(|va| [va as u32, (va >> 32) as u32]);
        [
            MARK,
            low,
            high,
            self.mode,
            self.vertices,
            provoking,
            first,
            second,
        ]
    }

    fn from_words(words: [u32; 8]) -> Option<Record> {
        let [mark, low, high, mode, vertices, provoking, first, second] = words;
        let known = mark == MARK && primitive::is_known(mode);
        known.then_some(Record {
            draw: u64::from(high) << 32 | u64::from(low),
            mode,
            vertices,
            first_provokes: provoking == 1,
            packets: u64::from(second) << 32 | u64::from(first),
        })
    }
}

struct List {
    bottom: u64,
    count: u64,
    room: u64,
    /// Bottom; they grow down from the heap's end.
    vertices: u64,
    taken: u64,
}

impl List {
    fn read<B: Bus>(job: &Job<'_, B>, context: u64) -> Result<List, JobFault> {
        let context = TilerContext::from_bytes(&job.memory.bytes(context)?);
        let heap = descriptor_address(context.heap());
        let heap = TilerHeap::from_bytes(&job.memory.bytes(heap)?);
        let count = match (context.mark() as u32, context.draws()) {
            (0, 0) => 0,
            (MARK, count) => count,
            _ => return Err(job.invalid("the tiler context has a state that is not the model's")),
        };
        let taken = context.vertices();
        let vertices = (heap.top() & !63).saturating_sub(taken);
        let room = vertices.saturating_sub(heap.bottom()) / RECORD_BYTES;
        if count > room.min(MOST_DRAWS) {
            return Err(job.invalid(format!("the tiler context has {count} draws")));
        }
        Ok(List {
            bottom: heap.bottom(),
            count,
            room,
            vertices,
            taken,
        })
    }

    fn at(&self, number: u64) -> u64 {
        self.bottom.wrapping_add(number * RECORD_BYTES)
    }
}

fn words(bytes: [u8; 32]) -> [u32; 8] {
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

pub(crate) fn allocate<B: Bus>(
    job: &Job<'_, B>,
    context: u64,
    bytes: u64,
) -> Result<u64, JobFault> {
    let list = List::read(job, context)?;
    let bytes = bytes.next_multiple_of(64);
    let taken = u32::try_from(list.taken + bytes).ok();
    let free = (list.room - list.count) * RECORD_BYTES;
    let Some(taken) = taken.filter(|_| bytes <= free) else {
        return Err(full(list.vertices));
    };
    let state = [MARK, list.count as u32, taken].map(u32::to_le_bytes);
    let at = context.wrapping_add(TILER_STATE_OFFSET);
    job.memory.write(at, state.as_flattened())?;
    Ok(list.vertices - bytes)
}

fn full(at: u64) -> JobFault {
    JobFault::new(JobStatus::OUT_OF_MEMORY, at, "the tiler's heap is full")
}

pub(crate) fn add<B: Bus>(job: &Job<'_, B>, context: u64, record: &Record) -> Result<(), JobFault> {
    let list = List::read(job, context)?;
    if list.count >= MOST_DRAWS {
        return Err(job.unmodelled(format!("more than {MOST_DRAWS} draws to a framebuffer")));
    }
    if list.count >= list.room {
        return Err(full(list.at(list.count)));
    }
    let bytes = record.words().map(u32::to_le_bytes);
    job.memory
        .write(list.at(list.count), bytes.as_flattened())?;
    let state = [MARK, list.count as u32 + 1].map(u32::to_le_bytes);
    let at = context.wrapping_add(TILER_STATE_OFFSET);
    Ok(job.memory.write(at, state.as_flattened())?)
}

pub(crate) fn records<B: Bus>(job: &Job<'_, B>, context: u64) -> Result<Vec<Record>, JobFault> {
    if context == 0 {
        return Ok(Vec::new());
    }
    let list = List::read(job, context)?;
    let read = |number| {
        let record = Record::from_words(words(job.memory.bytes(list.at(number))?));
        record
            .ok_or_else(|| job.invalid("the tiler's heap holds what the model did not leave there"))
    };
    (0..list.count).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let record = Record {
            draw: 0x12_3456_7880,
            mode: 12,
            vertices: 4,
            first_provokes: true,
            packets: 0x98_7654_3240,
        };
        assert_eq!(Record::from_words(record.words()), Some(record));
        assert_eq!(Record::from_words([0; 8]), None);
        let mut words = record.words();
        words[3] = 1;
        assert_eq!(Record::from_words(words), None, "points");
    }
}
