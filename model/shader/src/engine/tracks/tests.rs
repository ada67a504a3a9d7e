// SPDX-License-Identifier: MIT OR Apache-2.0
//! What threads keep in their own storage, by tracks.
#![allow(clippy::unwrap_used)]

use fastrand::Rng;
use gpureplay_memory::{Bus, Ram};

use crate::ir::micro::{Kind, Run};
use crate::ir::{Clause, Program, State, special};
use crate::operations::loops::{self, copy};
use crate::operations::memory::{load, store};
use crate::rows::LANES;
use crate::testing::{EDGE, Flat, Machine, Writer};

/// Each thread spills an offset, reloads it, and copies the word there. In between, it may store a loaded word at `at`
/// and after.
fn keeps_an_offset(table: u64, out: u64, at: Option<u64>) -> Program {
    let mut program = Program::new(16);
    let mut writer = Writer::new(&mut program, 1, table, out);
    let [own, own_high] = [special::THREAD_LOW, special::THREAD_HIGH];
    let (lane, low, zero) = (special::LANE_ID, special::TEMPORARY, writer.constant(0));
    let place = |writer: &mut Writer<'_>, row: u16, base: u64| {
        let (four, base) = (writer.constant(4), writer.constant(base as u32));
        let run = loops::three(|_, row, four, base| row * four + base);
        writer.push(Run::Rows(run), Kind::Plain, low, &[row, four, base], 0);
    };
    let (take, keep) = (Run::Message(load::<4>), Run::Message(store::<4>));
    writer.push(Run::Rows(copy as _), Kind::Copy, 0, &[lane], 0);
    writer.push(keep, Kind::Store, 0, &[own, own_high], 1);
    if let Some(at) = at {
        place(&mut writer, lane, table);
        writer.push(take, Kind::Load, 1, &[low, zero], 1);
        place(&mut writer, lane, at);
        writer.push(keep, Kind::Store, 1, &[low, zero], 1);
    }
    writer.push(take, Kind::Load, 2, &[own, own_high], 1);
    place(&mut writer, 2, table);
    writer.push(take, Kind::Load, 3, &[low, zero], 1);
    place(&mut writer, lane, out);
    writer.push(keep, Kind::Store, 3, &[low, zero], 1);
    program.clauses.push(Clause {
        state: State::Ready,
        ops: 0..program.ops.len(),
        ..Clause::pending(16)
    });
    program
}

#[test]
fn what_threads_keep_in_their_own_storage_is_known_unless_it_is_stored_to() {
    let mut space = Flat(Ram::new(16).unwrap(), 0);
    let [table, out, storage] = [(); 3].map(|()| space.0.allocate_contiguous(2).unwrap());
    // The storage is also at `EDGE`.
    space.1 = storage;
    let mut random = Rng::with_seed(7);
    for (at, followed) in [
        (None, 3),
        (Some(storage), 0),
        (Some(EDGE), 0),
        (Some(out), 3),
    ] {
        let program = keeps_an_offset(table, out, at);
        let mut machine = Machine::new();
        machine.grid.thread_storage = crate::ThreadStorage {
            base: storage,
            bytes_per_thread: 4,
            threads: LANES as u32,
        };
        for time in 0..5 {
            let words: Vec<u32> = (0..LANES).map(|_| random.u32(..LANES as u32)).collect();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            space.0.write(table, &bytes).unwrap();
            let outcome = machine.outcome((&program, &[]), &space, (u64::MAX, 1), true);
            assert!(outcome.starts_with("Ok"), "{outcome}");
            let mut copied = vec![0; bytes.len()];
            space.0.read(out, &mut copied).unwrap();
            let expected: Vec<u8> = match at {
                Some(at) if at != out => {
                    let twice = words.iter().map(|word| words[*word as usize]);
                    twice.flat_map(|word| word.to_le_bytes()).collect()
                }
                _ => bytes,
            };
            assert_eq!(copied, expected, "{at:?}, time {time}");
        }
        assert_eq!(machine.followed, followed, "{at:?}");
    }
}
