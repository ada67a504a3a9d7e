// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs, as they are and specialised, executed and by tracks: all end alike and leave the same memory.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mali_memory::{Bus, Page, Ram};

use super::*;
use crate::core::Core;
use crate::engine::batch::{Batch, Plainly};
use crate::engine::tracks::{Resolved, Room, Set, Tracks, Way};
use crate::engine::worker::totals;
use crate::ir::micro::OnMemory;
use crate::ir::{Branch, Clause, Next, State, Target};
use crate::operations::memory::{load, store};
use crate::rows::LANES;
use crate::{Access, AddressSpace, Control, Dispatch, MmuFault, alu::float, vectors};

/// Memory at its own addresses, and two pages of it, one on each side of 4 GiB.
struct Flat(Ram, u64);

/// Where these pages begin.
const EDGE: u64 = (1 << 32) - 4096;

/// An address at which there is no memory.
const NOWHERE: u64 = 1 << 40;

impl AddressSpace for Flat {
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault> {
        let code = 0xc3;
        let at = match va {
            EDGE..=0x1_0000_0fff => self.1 + (va - EDGE),
            _ => va,
        };
        self.0.page(at).ok_or(MmuFault { va, access, code })
    }
}

struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        self.word() % n
    }
}

/// Words of the region that stores go to; each store has four words of each lane.
const STORES: usize = 24;
const PAGES: usize = STORES * LANES * 16 / 4096;
const UNIFORMS: u16 = 4;

/// Writes random clauses.
struct Writer<'a> {
    random: Random,
    program: &'a mut Program,
    /// Temporary rows that the clause has given values.
    temporaries: Vec<u16>,
    /// Where the next store goes.
    out: u32,
    table: u32,
    stores: usize,
}

impl Writer<'_> {
    fn constant(&mut self, value: u32) -> u16 {
        self.program.constant(Constant::Value(value))
    }

    fn source(&mut self) -> u16 {
        match self.random.below(10) {
            0 => self.constant(0),
            1 => {
                let value = self.random.below(5);
                self.constant(value)
            }
            2 | 3 => {
                let word = self.random.below(UNIFORMS.into()) as u16;
                self.program.constant(Constant::Uniform(word))
            }
            4 if self.random.below(2) == 0 => special::LANE_ID,
            4 | 5 if !self.temporaries.is_empty() => {
                let at = self.random.below(self.temporaries.len() as u32);
                self.temporaries[at as usize]
            }
            _ => self.random.below(10) as u16,
        }
    }

    fn destination(&mut self) -> u16 {
        if self.random.below(2) == 0 {
            return self.random.below(10) as u16;
        }
        let row = special::TEMPORARY + self.random.below(4) as u16;
        self.temporaries.push(row);
        row
    }

    fn push(&mut self, run: Run, kind: Kind, d: u16, sources: &[u16], m: u32) {
        let source = |at: usize| sources.get(at).copied().unwrap_or(0);
        self.program.ops.push(MicroOp {
            run,
            d,
            a: source(0),
            b: source(1),
            c: match kind {
                Kind::Load | Kind::Store => 4 * m as u16,
                _ => source(2),
            },
            e: source(3),
            m,
            sources: sources.len() as u8,
            kind,
            part: 0,
        });
    }

    fn op(&mut self) {
        let sources: [u16; 4] = std::array::from_fn(|_| self.source());
        let choice = self.random.below(12);
        let (run, kind, count, m) = match choice {
            0..3 => (loops::two(|_, a, b| a.wrapping_add(b)), Kind::Add, 2, 0),
            3 | 4 => (
                loops::two(|m, a, b| u32::from(a > b) & m),
                Kind::Above,
                2,
                1,
            ),
            5 => (copy as _, Kind::Copy, 1, 0),
            6 => (loops::two(|_, a, b| a ^ b), Kind::Plain, 2, 0),
            7 => (
                loops::three(|_, a, b, c| a.wrapping_mul(b).wrapping_add(c)),
                Kind::Plain,
                3,
                0,
            ),
            8 => (
                loops::four(|_, a, b, c, e| if a < b { c } else { e }),
                Kind::Plain,
                4,
                0,
            ),
            9 | 10 => {
                // A row of multiply-adds that share a factor.
                let run = if vectors::has_fused_multiply_add() {
                    loops::three(|_, a, b, c| float::fma(a, b, c))
                } else {
                    loops::three(|_, a, b, c| float::fma_portable(a, b, c))
                };
                for _ in 0..self.random.below(6) {
                    let (d, other) = (self.random.below(10) as u16, self.source());
                    let mut factors = [sources[0], other];
                    factors.rotate_left(self.random.below(2) as usize);
                    let [a, b] = factors;
                    self.push(Run::Rows(run), Kind::MultiplyAdd, d, &[a, b, d], 0);
                }
                (run, Kind::MultiplyAdd, 3, 0)
            }
            _ => return self.memory(sources[0]),
        };
        let d = self.destination();
        self.push(Run::Rows(run), kind, d, &sources[..count], m);
    }

    /// A load at `table + (row & 0xff0)`, or a store to words of its own.
    fn memory(&mut self, row: u16) {
        let (low, zero) = (special::TEMPORARY + 5, self.constant(0));
        let first = self.random.below(7) as u16;
        if self.random.below(2) == 0 || self.stores == STORES {
            let (mask, base) = (self.constant(0xff0), self.constant(self.table));
            let offset = loops::three(|_, row, mask, base| (row & mask).wrapping_add(base));
            self.push(Run::Rows(offset), Kind::Plain, low, &[row, mask, base], 0);
            let (run, words): (OnMemory, _) = match self.random.below(4) {
                0 => (load::<4>, 1),
                1 => (load::<8>, 2),
                2 => (load::<12>, 3),
                _ => (load::<16>, 4),
            };
            let d = first.min(10 - words);
            self.push(Run::Message(run), Kind::Load, d, &[low, zero], words.into());
            return;
        }
        if self.random.below(4) == 0 {
            self.lines(low, zero);
        }
        let (stride, base) = (self.constant(16), self.constant(self.out));
        let place =
            loops::three(|_, lane, stride, base| lane.wrapping_mul(stride).wrapping_add(base));
        let lane = special::LANE_ID;
        self.push(Run::Rows(place), Kind::Plain, low, &[lane, stride, base], 0);
        self.push(
            Run::Message(store::<16>),
            Kind::Store,
            first,
            &[low, zero],
            4,
        );
        self.out += 16 * LANES as u32;
        self.stores += 1;
    }

    /// A load of the same words for lines of lanes, or of those of one line for all, and a store of words that follow one another or not.
    fn lines(&mut self, low: u16, zero: u16) {
        let d = self.random.below(7) as u16;
        let (base, out) = (self.constant(self.table), self.constant(self.out));
        let [shift, mask] = match self.random.below(4) {
            0 => [3, !0],
            1 => [4, !0],
            2 => [0, 15],
            _ => [0, 31],
        };
        let (shift, mask) = (self.constant(shift), self.constant(mask));
        let place = loops::four(|_, lane, shift, mask, base| 16 * (lane >> shift & mask) + base);
        let lane = special::LANE_ID;
        self.push(
            Run::Rows(place),
            Kind::Plain,
            low,
            &[lane, shift, mask, base],
            0,
        );
        let (run, words): (OnMemory, _) = match self.random.below(3) {
            0 => (load::<4>, 1),
            1 => (load::<8>, 2),
            _ => (load::<16>, 4),
        };
        self.push(Run::Message(run), Kind::Load, d, &[low, zero], words);
        let each = 4 << self.random.below(3);
        let each = self.constant(each);
        let place = loops::three(|_, lane, each, base| lane * each + base);
        self.push(Run::Rows(place), Kind::Plain, low, &[lane, each, out], 0);
        self.push(Run::Message(store::<4>), Kind::Store, d, &[low, zero], 1);
    }

    /// Loads of words behind one address, each from a sum of 64 bits as compilers make it; some go on from the sum before.
    fn words(&mut self, row: u16) {
        let [low, high, sum, carry, last] = [6, 7, 8, 10, 11].map(|n| special::TEMPORARY + n);
        let (mask, zero) = (self.constant(0xfc), self.constant(0));
        let base = match self.random.below(16) {
            // Nothing is there, or nothing any more behind the first words.
            0 => self.constant(0x7000_0000),
            1 => self.constant(self.table + 0x2000 - 0xfc - 8),
            2..6 => self.constant(EDGE as u32 + 0xf00),
            6..10 => self.constant(self.table + 0xf80),
            _ => self.constant(self.table),
        };
        let place = loops::three(|_, row, mask, base| (row & mask).wrapping_add(base));
        self.push(Run::Rows(place), Kind::Plain, low, &[row, mask, base], 0);
        match self.random.below(2) {
            0 => self.push(Run::Rows(copy as _), Kind::Copy, high, &[zero], 0),
            // The same, which nobody knows before.
            _ => {
                let none = loops::two(|_, a, b| a ^ b);
                let lane = special::LANE_ID;
                self.push(Run::Rows(none), Kind::Plain, high, &[lane, lane], 0);
            }
        }
        let add = || Run::Rows(loops::two(|_, a, b| a.wrapping_add(b)));
        let above = || Run::Rows(loops::two(|m, a, b| u32::from(a > b) & m));
        let (mut before, mut offset) = ([low, high], 0);
        for _ in 0..2 + self.random.below(5) {
            let more = 4 * self.random.below(5);
            let from = match self.random.below(3) {
                // Behind the last sum, which is in rows of its own.
                0 if before != [low, high] => {
                    offset += more;
                    before
                }
                _ => {
                    offset = more;
                    [low, high]
                }
            };
            let d = self.random.below(7) as u16;
            if more == 0 && from == [low, high] {
                self.push(Run::Message(load::<4>), Kind::Load, d, &[low, high], 1);
            } else {
                let bytes = match from {
                    [one, _] if one == low => offset,
                    _ => more,
                };
                let constant = self.constant(bytes);
                let mut terms = [from[0], constant];
                terms.rotate_left(self.random.below(2) as usize);
                self.push(add(), Kind::Add, sum, &terms, 0);
                self.push(above(), Kind::Above, carry, &[from[0], sum], 1);
                self.push(add(), Kind::Add, carry, &[carry, from[1]], 0);
                self.push(Run::Message(load::<4>), Kind::Load, d, &[sum, carry], 1);
                if self.random.below(2) == 0 {
                    self.push(Run::Rows(copy as _), Kind::Copy, last, &[sum], 0);
                    self.push(Run::Rows(copy as _), Kind::Copy, last + 1, &[carry], 0);
                    before = [last, last + 1];
                }
            }
            if self.random.below(4) == 0 {
                self.op();
            }
        }
    }

    /// A program of some clauses, which ends with stores of all registers in use.
    fn program(&mut self) {
        let count = 2 + self.random.below(5);
        for index in 0..count {
            let start = self.program.ops.len();
            self.temporaries.clear();
            for _ in 0..1 + self.random.below(10) {
                self.op();
            }
            if self.random.below(2) == 0 {
                let row = self.source();
                self.words(row);
            }
            let last = index == count - 1;
            if last {
                for _ in 0..6 {
                    self.stores = self.stores.min(STORES - 1);
                    self.memory(0);
                }
            }
            let condition = match self.random.below(5) {
                0 => Condition::Always,
                1 => Condition::Any(self.source()),
                2 => Condition::All(self.source()),
                _ => Condition::NonZero(self.source()),
            };
            let target = match self.random.below(8) {
                0 => Target::End,
                _ => Target::Clause(self.random.below(count)),
            };
            let branch = (self.random.below(3) > 0).then_some(Branch { condition, target });
            let end = self.program.ops.len();
            self.program.clauses.push(Clause {
                address: 16 * u64::from(index) + 16,
                ops: start..end,
                next: if last {
                    Next::End
                } else {
                    Next::Clause(index + 1)
                },
                branch,
                barrier: false,
                state: State::Ready,
                fma: 0,
                add: 0,
                messages: Vec::new(),
                lane_cost: 0,
                joined: None,
                parts: Vec::new(),
            });
            let fused = fuse(&self.program.ops[start..]);
            self.program.ops.truncate(start);
            self.program.ops.extend(fused);
            self.program.clauses[index as usize].ops = start..self.program.ops.len();
        }
    }
}

/// A batch in which programs run.
struct Machine {
    dispatch: Dispatch,
    batches: [Batch; 1],
    tracks: Tracks,
    /// How often it followed a track.
    followed: u32,
}

impl Machine {
    fn new() -> Machine {
        Machine {
            dispatch: Dispatch::default(),
            batches: [Batch::new(Rows::new(special::CONSTANT, LANES))],
            tracks: Tracks::new(Room::new()),
            followed: 0,
        }
    }

    /// Runs a program with registers that have some values, by tracks or without, and returns how it ended.
    fn outcome(
        &mut self,
        (program, uniforms): (&Program, &[u32]),
        space: &Flat,
        (mask, seed): (u64, u64),
        by_tracks: bool,
    ) -> String {
        let (control, stop) = (Control::new(300), AtomicBool::new(false));
        let mut core = Core::new(&self.dispatch, space, &control, &stop);
        let [batch] = &mut self.batches;
        let mut random = Random(seed);
        for row in 0..special::CONSTANT {
            for value in &mut batch.rows.get_mut(row).0 {
                *value = random.word() >> random.below(32);
            }
        }
        batch.rows.get_mut(special::LANE_ID).0 = std::array::from_fn(|lane| lane as u32);
        let storage = &self.dispatch.thread_storage;
        for lane in 0..LANES {
            let own = storage.base + lane as u64 * u64::from(storage.bytes_per_thread);
            batch.rows.get_mut(special::THREAD_LOW).0[lane] = own as u32;
            batch.rows.get_mut(special::THREAD_HIGH).0[lane] = (own >> 32) as u32;
        }
        let mut program = Arc::new(program.clone());
        core.uniforms = uniforms.into();
        batch.start(&program, mask);
        let set = Set {
            first: 0,
            core: None,
        };
        let way = match by_tracks {
            true => {
                let pages = &mut Resolved::default();
                self.tracks
                    .go((set, 1), pages, &mut self.batches, &mut core)
            }
            false => Way::Execute,
        };
        let [batch] = &mut self.batches;
        let result = match way {
            Way::Followed => {
                self.followed += 1;
                Ok(())
            }
            Way::Execute => batch.run(&mut program, &mut core, &mut Plainly),
            Way::Record => {
                program.complete(&mut batch.rows, uniforms);
                let mut recorder = self.tracks.recorder(1);
                let before = core.begin_counting();
                let result = batch.run(&mut program, &mut core, &mut recorder);
                let counts = core.end_counting(before);
                let counted = (counts, result.is_err());
                self.tracks.keep(set, recorder, counted, &mut self.batches);
                result
            }
        };
        let statistics = totals(&core, &program);
        drop(core);
        // Joined clauses are taken from the limit at once, also where one of them faults.
        let left = result.is_ok().then(|| control.take(u64::MAX));
        format!(
            "{:?} {statistics:?} {left:?}",
            result.map_err(|fault| fault.to_string())
        )
    }
}

#[test]
fn random_programs_do_the_same_when_specialised() {
    let mut space = Flat(Ram::new(PAGES + 16).unwrap(), 0);
    let table = space.0.allocate_contiguous(2).unwrap();
    space.1 = table;
    let out = space.0.allocate_contiguous(PAGES).unwrap();
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut before, mut after, mut ended, mut followed) = (0, 0, 0, 0);
    let (mut joined, mut ahead, mut skipped, mut sums) = (0, 0, 0, 0);
    for case in 0..600 {
        let mut plain = Program::new(16, None);
        plain.clauses.clear();
        let seed = random.0 ^ case;
        let mut writer = Writer {
            random: Random(seed | 1),
            program: &mut plain,
            temporaries: Vec::new(),
            out: out as u32,
            table: table as u32,
            stores: 0,
        };
        writer.program();
        let uniforms: Vec<u32> = (0..UNIFORMS).map(|at| random.word() >> (at * 10)).collect();
        let mut fast = plain.clone();
        specialise(&mut fast, &uniforms);
        let count = |program: &Program| {
            (0..plain.clauses.len())
                .map(|at| own_ops(program, at).len())
                .sum::<usize>()
        };
        (before, after) = (before + count(&plain), after + count(&fast));
        joined += fast.clauses.len() - plain.clauses.len();
        let ops = &fast.ops;
        ahead += ops.iter().filter(|op| op.kind == Kind::Ahead).count();
        let done = |op: &&MicroOp| matches!(op.run, Run::Done(_));
        skipped += ops.iter().filter(done).count();
        let of_one = |ops: &&[MicroOp]| {
            matches!(ops[0].run, Run::Several(_)) && ops[1].d == ops[2].d && ops[0].m > 1
        };
        sums += ops.windows(3).filter(of_one).count();
        let mask = match case % 3 {
            0 => u64::MAX,
            1 => u64::from(random.word()) << 16 | 1,
            _ => u64::from(random.word()) << 32 | u64::from(random.word()),
        };
        let mut machine = Machine::new();
        // The first time nothing is known, then a track is recorded and followed, the last time into a page that is not there.
        for time in 0..5 {
            let bytes: Vec<u8> = (0..8192).map(|_| random.word() as u8).collect();
            space.0.write(table, &bytes).unwrap();
            space.1 = if time < 4 { table } else { NOWHERE };
            let run = |machine: &mut Machine, program, by_tracks| {
                space.0.write(out, &[0x5a; PAGES * 4096]).unwrap();
                let (program, lanes) = ((program, &uniforms[..]), (mask, seed));
                let outcome = machine.outcome(program, &space, lanes, by_tracks);
                let mut memory = vec![0; PAGES * 4096];
                space.0.read(out, &mut memory).unwrap();
                (outcome, memory)
            };
            let results = [
                run(&mut Machine::new(), &plain, false),
                run(&mut machine, &fast, true),
            ];
            assert_eq!(results[0].0, results[1].0, "case {case}, time {time}");
            assert!(
                results[0].1 == results[1].1,
                "case {case}, time {time}: memory differs"
            );
            ended += u32::from(time == 0 && results[0].0.starts_with("Ok"));
        }
        followed += machine.followed;
    }
    assert!(followed > 150, "{followed} followed");
    assert!(ended > 150, "{ended} ended");
    assert!(
        joined > 150 && ahead > 100 && skipped > 50,
        "{joined} joined, {ahead} ahead, {skipped} skipped at once"
    );
    if vectors::accumulates() {
        assert!(sums > 50, "{sums} sums");
    }
    assert!(
        after * 10 < before * 9,
        "{before} micro-operations became {after}"
    );
}

/// Each thread keeps an offset in its own storage, takes it back, and copies the word there. With `at`, a word that was loaded is stored in between,
/// at this address and those behind it.
fn keeps_an_offset(table: u64, out: u64, at: Option<u64>) -> Program {
    let mut program = Program::new(16, None);
    program.clauses.clear();
    let mut writer = Writer {
        random: Random(1),
        program: &mut program,
        temporaries: Vec::new(),
        out: out as u32,
        table: table as u32,
        stores: 0,
    };
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
    // The storage has another address.
    space.1 = storage;
    let mut random = Random(7);
    for (at, followed) in [
        (None, 3),
        (Some(storage), 0),
        (Some(EDGE), 0),
        (Some(out), 3),
    ] {
        let program = keeps_an_offset(table, out, at);
        let mut machine = Machine::new();
        machine.dispatch.thread_storage = crate::ThreadStorage {
            base: storage,
            bytes_per_thread: 4,
            threads: LANES as u32,
        };
        for time in 0..5 {
            let words: Vec<u32> = (0..LANES).map(|_| random.below(LANES as u32)).collect();
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
