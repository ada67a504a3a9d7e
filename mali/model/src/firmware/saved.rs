// SPDX-License-Identifier: MIT OR Apache-2.0
//! A suspended stream in the driver's buffer.

use mali_isa::valhall::streams::{Condition, SAVED_WORDS, Sequencer, Sync, SyncKind};

use super::queue::Queue;

const MAGIC: u32 = 0x5355_5331;
pub(super) const WORDS: usize = 8 + SAVED_WORDS;
const WAITS: u32 = 1;
const FAILED: u32 = 1 << 1;
const GREATER: u32 = 1 << 2;
const WIDE: u32 = 1 << 3;
const REJECTS: u32 = 1 << 4;

pub(super) const fn size(streams: u32) -> u32 {
    (4 * WORDS as u32 * streams).next_multiple_of(0x1000)
}

pub(super) fn words(queue: &Queue) -> [u32; WORDS] {
    let mut flags = 0;
    let mut set = |flag: u32, wanted: bool| flags |= if wanted { flag } else { 0 };
    set(FAILED, queue.failed);
    let waiting = queue.waiting.as_ref();
    set(WAITS, waiting.is_some());
    set(WIDE, waiting.is_some_and(|sync| sync.wide));
    set(REJECTS, waiting.is_some_and(|sync| sync.error));
    let greater = |sync: &Sync| sync.kind == SyncKind::Wait(Condition::Greater);
    set(GREATER, waiting.is_some_and(greater));
    let [address, value] = waiting.map_or([0; 2], |sync| [sync.address, sync.value]);
    let head = [
        MAGIC,
        flags,
        queue.error,
        0,
        address as u32,
        (address >> 32) as u32,
        value as u32,
        (value >> 32) as u32,
    ];
    let mut words = [0; WORDS];
    let all = head.into_iter().chain(queue.sequencer.save());
    for (word, value) in words.iter_mut().zip(all) {
        *word = value;
    }
    words
}

pub(super) fn queue(words: &[u32; WORDS]) -> Option<Queue> {
    let (head, sequencer) = words.split_first_chunk::<8>()?;
    let [
        magic,
        flags,
        error,
        _,
        address,
        address_high,
        value,
        value_high,
    ] = *head;
    let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let condition = match flags & GREATER {
        0 => Condition::LessOrEqual,
        _ => Condition::Greater,
    };
    let waiting = Sync {
        kind: SyncKind::Wait(condition),
        wide: flags & WIDE != 0,
        address: wide(address, address_high),
        value: wide(value, value_high),
        error: flags & REJECTS != 0,
    };
    let sequencer = Sequencer::restore(sequencer.try_into().ok()?)?;
    (magic == MAGIC).then_some(Queue {
        sequencer,
        waiting: (flags & WAITS != 0).then_some(waiting),
        error,
        failed: flags & FAILED != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_waits_comes_back_as_it_was() {
        let mut saved = Queue {
            error: 0x51,
            waiting: Some(Sync {
                kind: SyncKind::Wait(Condition::Greater),
                wide: true,
                address: 0x7fff_1234_5678,
                value: 1 << 40 | 3,
                error: true,
            }),
            ..Queue::default()
        };
        saved.sequencer.start(0x1_0000, 0x20).unwrap();
        assert_eq!(queue(&words(&saved)), Some(saved.clone()));
        let plain = Queue {
            waiting: None,
            failed: true,
            ..saved
        };
        assert_eq!(queue(&words(&plain)), Some(plain));
        assert_eq!(queue(&[0; WORDS]), None);
    }
}
