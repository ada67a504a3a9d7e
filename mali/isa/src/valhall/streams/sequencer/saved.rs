// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue's state as words of memory.

use super::{CALLS, Frame, REGISTERS, SCOREBOARDS, Sequencer};

const SET: usize = 4;
const FRAME: usize = 6;
/// Words of a queue's state.
pub const SAVED_WORDS: usize = REGISTERS + SET * (1 + SCOREBOARDS) + FRAME * (CALLS + 1) + 2;

impl Sequencer {
    /// State as words.
    pub fn save(&self) -> [u32; SAVED_WORDS] {
        let sets = core::iter::once(&self.defined).chain(&self.pending);
        let sets = sets.flat_map(|set| (0..SET).map(move |at| (set >> (32 * at)) as u32));
        let frames = self.frames.iter();
        let frames = frames.flat_map(|frame| [frame.next, frame.start, frame.end]);
        let frames = frames.flat_map(|address| [address as u32, (address >> 32) as u32]);
        let [one, other] = self.entries.map(u32::from);
        let rest = [self.depth as u32, one | other << 8];
        let all = self.registers.iter().copied().chain(sets);
        let mut words = [0; SAVED_WORDS];
        for (word, value) in words.iter_mut().zip(all.chain(frames).chain(rest)) {
            *word = value;
        }
        words
    }

    /// `None` if no queue has that state.
    pub fn restore(words: &[u32; SAVED_WORDS]) -> Option<Sequencer> {
        let mut words = words.iter().copied();
        let mut word = || words.next().unwrap_or(0);
        let mut queue = Sequencer::undefined();
        for register in &mut queue.registers {
            *register = word();
        }
        let sets = core::iter::once(&mut queue.defined).chain(&mut queue.pending);
        for set in sets {
            *set = (0..SET).fold(0, |set, at| set | u128::from(word()) << (32 * at));
        }
        let mut address = || u64::from(word()) | u64::from(word()) << 32;
        for frame in &mut queue.frames {
            *frame = Frame {
                next: address(),
                start: address(),
                end: address(),
            };
        }
        let (depth, entries) = (word() as usize, word());
        queue.depth = depth;
        queue.entries = [entries as u8, (entries >> 8) as u8];
        let exist = |entry: &u8| usize::from(*entry) < SCOREBOARDS;
        (depth <= CALLS && queue.entries.iter().all(exist)).then_some(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_goes_on_where_it_was_put_aside() {
        let mut queue = Sequencer::new();
        queue.start(0x8_0000_1000, 0x40).unwrap();
        for word in [
            1 << 56 | 92 << 48 | 0x1234_5678_9abc_u64,
            0x17 << 56 | 3 << 4 | 2,
            0x14 << 56 | 10 << 48 | 92 << 40 | 3 << 16,
        ] {
            queue.step(word).unwrap();
        }
        queue.load(10, 77);
        let mut other = Sequencer::restore(&queue.save()).unwrap();
        assert_eq!(other, queue);
        assert_eq!(other.address(), Some(0x8_0000_1018));
        assert!(other.get(10).is_err(), "the load was not waited for");
        let mut words = queue.save();
        words[SAVED_WORDS - 2] = 9;
        assert_eq!(Sequencer::restore(&words), None);
        let mut words = queue.save();
        words[SAVED_WORDS - 1] = 8;
        assert_eq!(Sequencer::restore(&words), None);
    }
}
