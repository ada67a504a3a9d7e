// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races: accesses of threads to a byte, one of which writes, that nothing orders.
//!
//! Barriers order threads of a work group; atomic operations do not race with each other. Per word (or byte) it
//! keeps the last writer, two readers, and a reader of an earlier work group: enough to notice a race, not to list
//! all pairs. With barriers, work groups must come one after the other.

use std::collections::{BTreeMap, HashMap, HashSet};

use gpureplay_shader::probe::{Access, AccessKind, Place, Storages};

use crate::pages::{PAGE, Pages};
use crate::pattern::Pattern;
use crate::report::RaceKind;

const MOST_PAGES: usize = 1 << 16;
/// Bytes: 8 KiB for a page that one thread reads a word of, 36 KiB with all, four times that by bytes.
const MOST_BYTES: usize = 256 << 20;

const MOST_ATOMICS: usize = 1 << 20;

const WORDS: usize = PAGE as usize / 4;

const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) thread: u32,
    site: u16,
    epoch: u16,
}

impl Who {
    const NOBODY: Who = Who {
        thread: NOBODY,
        site: 0,
        epoch: 0,
    };

    #[inline]
    fn is_somebody(self) -> bool {
        self.thread != NOBODY
    }
}

#[derive(Clone, Copy)]
struct Cell {
    writer: Who,
    readers: [Who; 2],
    earlier: Who,
    value: u32,
}

impl Cell {
    const NONE: Cell = Cell {
        writer: Who::NOBODY,
        readers: [Who::NOBODY; 2],
        earlier: Who::NOBODY,
        value: 0,
    };
}

/// Cells of a page by columns; only used columns take memory.
#[derive(Default)]
struct Cells<const N: usize> {
    writers: Column<Who>,
    readers: [Column<Who>; 2],
    earlier: Column<Who>,
    values: Column<u32>,
}

type Column<T> = Option<Box<[T]>>;

fn put<T: Copy + PartialEq>(
    column: &mut Column<T>,
    length: usize,
    none: T,
    at: usize,
    value: T,
    room: &mut usize,
) -> bool {
    let column = match column {
        Some(column) => column,
        None if value == none => return true,
        None => {
            let Some(left) = room.checked_sub(length * size_of::<T>()) else {
                return false;
            };
            *room = left;
            column.insert(vec![none; length].into())
        }
    };
    column[at] = value;
    true
}

impl<const N: usize> Cells<N> {
    #[inline]
    fn get(&self, at: usize) -> Cell {
        let who = |column: &Column<Who>| column.as_ref().map_or(Who::NOBODY, |column| column[at]);
        Cell {
            writer: who(&self.writers),
            readers: [who(&self.readers[0]), who(&self.readers[1])],
            earlier: who(&self.earlier),
            value: self.values.as_ref().map_or(0, |column| column[at]),
        }
    }

    /// Takes memory from `room`; false: not enough.
    #[inline]
    fn set(&mut self, at: usize, cell: &Cell, room: &mut usize) -> bool {
        let [first, second] = &mut self.readers;
        put(&mut self.writers, N, Who::NOBODY, at, cell.writer, room)
            && put(&mut self.values, N, 0, at, cell.value, room)
            && put(first, N, Who::NOBODY, at, cell.readers[0], room)
            && put(second, N, Who::NOBODY, at, cell.readers[1], room)
            && put(&mut self.earlier, N, Who::NOBODY, at, cell.earlier, room)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pair {
    /// Clause whose access came first.
    first: u16,
    second: u16,
    pub(crate) kind: RaceKind,
    pub(crate) place: Place2,
    pub(crate) across: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place2 {
    Global,
    Group,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) times: u64,
    pub(crate) address: u64,
    pub(crate) threads: [u32; 2],
}

pub(crate) struct Races {
    words: Pages<Cells<WORDS>>,
    bytes: Pages<Cells<{ PAGE as usize }>>,
    /// Bytes left for both.
    room: usize,
    by_byte: HashMap<u64, ()>,
    /// The last two threads, by word's address with a bit for group storage.
    atomics: HashMap<u64, [Who; 2]>,
    storages: Storages,
    size: u32,
    barriers: bool,
    clauses: Vec<u64>,
    /// Clauses that store what is not known, such as texels. Each clause has one access.
    unknown: HashSet<u16>,
    found: BTreeMap<Pair, Found>,
    pub(crate) stopped: Option<&'static str>,
}

impl Races {
    pub(crate) fn new(storages: Storages, workgroup: u32, threads: u128) -> Races {
        Races {
            words: Pages::new(MOST_PAGES),
            bytes: Pages::new(MOST_PAGES),
            room: MOST_BYTES,
            by_byte: HashMap::new(),
            atomics: HashMap::new(),
            storages,
            size: workgroup.max(1),
            barriers: false,
            clauses: Vec::new(),
            unknown: HashSet::new(),
            found: BTreeMap::new(),
            stopped: (threads >= u128::from(NOBODY))
                .then_some("races: the job has more threads than are told apart"),
        }
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = ([u64; 2], &Pair, &Found)> {
        let clause = |number: u16| self.clauses.get(usize::from(number)).copied().unwrap_or(0);
        let found = self.found.iter();
        found.map(move |(pair, found)| ([clause(pair.first), clause(pair.second)], pair, found))
    }

    pub(crate) fn access(&mut self, access: &Access<'_>, pattern: Pattern) {
        let visit = &access.visit;
        let lanes = &visit.lanes;
        self.barriers |= lanes.barriers > 0;
        let (Ok(site), Ok(epoch)) = (u16::try_from(visit.number), u16::try_from(lanes.barriers))
        else {
            self.stopped =
                Some("races: the shader has more clauses or barriers than are told apart");
            return;
        };
        if self.stopped.is_some() {
            return;
        }
        let number = usize::from(site);
        if number >= self.clauses.len() {
            self.clauses.resize(number + 1, 0);
        }
        self.clauses[number] = visit.site.clause;
        let mut left = match (pattern, access.kind) {
            // Two that read the same suffice.
            (Pattern::Uniform(at), AccessKind::Load)
                if self.storages.place(at) == Place::Global =>
            {
                2
            }
            _ => 64,
        };
        for lane in lanes.iter() {
            if left == 0 {
                break;
            }
            left -= 1;
            let who = Who {
                thread: lanes.thread(lane) as u32,
                site,
                epoch,
            };
            let at = access.address(lane);
            let value = match access.kind {
                AccessKind::Store => access.value(lane),
                _ => None,
            };
            self.lane(who, at, access.bytes, access.kind, value);
        }
    }

    fn lane(&mut self, who: Who, at: u64, bytes: u32, kind: AccessKind, value: Option<[u8; 16]>) {
        if kind == AccessKind::Store && value.is_none() {
            self.unknown.insert(who.site);
        }
        let group = self.storages.place(at) == Place::Group;
        let whole = at.is_multiple_of(4) && bytes.is_multiple_of(4);
        let end = at.wrapping_add(bytes.into());
        let mut next = at;
        while next != end {
            let page = next / PAGE;
            let offset = (next % PAGE) as usize;
            let by_byte = !self.by_byte.is_empty() && self.by_byte.contains_key(&page);
            if !whole && !by_byte {
                self.divide(page);
            }
            let done = (next - at) as usize;
            let step = if whole && !by_byte { 4 } else { 1 };
            let new = value.map(|bytes| {
                let byte = |n: usize| u32::from(bytes.get(done + n).copied().unwrap_or(0));
                (0..step).fold(0, |word, n| word | byte(n) << (8 * n))
            });
            let context = Context {
                size: self.size,
                barriers: self.barriers,
                group,
            };
            let room = &mut self.room;
            let checked = if step == 4 {
                let cells = self.words.page(page);
                cells.and_then(|cells| context.visit(cells, offset / 4, who, kind, new, room))
            } else {
                let cells = self.bytes.page(page);
                cells.and_then(|cells| context.visit(cells, offset, who, kind, new, room))
            };
            let Some((race, other)) = checked else {
                self.stopped = Some("races: the job reaches more memory than is kept");
                return;
            };
            if let Some(race) = race {
                let race = match race {
                    RaceKind::SameValue if self.unknown.contains(&other.site) => {
                        RaceKind::WriteWrite
                    }
                    race => race,
                };
                self.report(race, [other, who], next, group);
            }
            if kind == AccessKind::Atomic || !self.atomics.is_empty() {
                self.atomic(who, next, kind, context);
            }
            next = next.wrapping_add(step as u64);
        }
    }

    #[cold]
    fn divide(&mut self, page: u64) {
        let Some(bytes) = self.bytes.page(page) else {
            return;
        };
        self.by_byte.insert(page, ());
        let Some(words) = self.words.page(page) else {
            return;
        };
        for at in 0..PAGE as usize {
            let mut cell = words.get(at / 4);
            cell.value = cell.value >> (8 * (at % 4)) & 0xff;
            if !bytes.set(at, &cell, &mut self.room) {
                self.stopped = Some("races: the job reaches more memory than is kept");
                return;
            }
        }
    }

    fn atomic(&mut self, who: Who, at: u64, kind: AccessKind, context: Context) {
        let word = at & !3;
        if kind != AccessKind::Atomic {
            let Some(known) = self.atomics.get_mut(&word) else {
                return;
            };
            if context.group && known[0].is_somebody() && !context.same_group(known[0], who) {
                *known = [Who::NOBODY; 2];
            }
            let other = known.iter().find(|other| context.race(**other, who));
            if let Some(&other) = other {
                self.report(RaceKind::Atomic, [other, who], at, context.group);
            }
            return;
        }
        if self.atomics.len() >= MOST_ATOMICS && !self.atomics.contains_key(&word) {
            self.stopped = Some("races: the job has atomic operations on more words than are kept");
            return;
        }
        let known = self.atomics.entry(word).or_insert([Who::NOBODY; 2]);
        if context.group && known[0].is_somebody() && !context.same_group(known[0], who) {
            *known = [Who::NOBODY; 2];
        }
        match known {
            [first, _] if !first.is_somebody() || first.thread == who.thread => *first = who,
            [_, second] => *second = who,
        }
    }

    #[cold]
    fn report(&mut self, kind: RaceKind, [first, second]: [Who; 2], address: u64, group: bool) {
        let pair = Pair {
            first: first.site,
            second: second.site,
            kind,
            place: if group { Place2::Group } else { Place2::Global },
            across: first.thread / self.size != second.thread / self.size,
        };
        let found = self.found.entry(pair).or_insert(Found {
            times: 0,
            address,
            threads: [first.thread, second.thread],
        });
        found.times += 1;
    }
}

#[derive(Clone, Copy)]
struct Context {
    size: u32,
    barriers: bool,
    group: bool,
}

impl Context {
    #[inline]
    fn same_group(self, a: Who, b: Who) -> bool {
        a.thread / self.size == b.thread / self.size
    }

    #[inline]
    fn race(self, before: Who, now: Who) -> bool {
        before.is_somebody()
            && before.thread != now.thread
            && (before.epoch == now.epoch || !self.same_group(before, now))
    }

    #[inline]
    fn visit<const N: usize>(
        self,
        cells: &mut Cells<N>,
        at: usize,
        who: Who,
        kind: AccessKind,
        value: Option<u32>,
        room: &mut usize,
    ) -> Option<(Option<RaceKind>, Who)> {
        let mut cell = cells.get(at);
        let found = self.check(&mut cell, who, kind, value);
        cells.set(at, &cell, room).then_some(found)
    }

    /// Remembers the access; returns race and other party.
    #[inline]
    fn check(
        self,
        cell: &mut Cell,
        who: Who,
        kind: AccessKind,
        value: Option<u32>,
    ) -> (Option<RaceKind>, Who) {
        if self.group {
            let somebody = [cell.writer, cell.readers[0]];
            let last = somebody.into_iter().find(|one| one.is_somebody());
            if last.is_some_and(|last| !self.same_group(last, who)) {
                *cell = Cell::NONE;
            }
        }
        let writer = cell.writer;
        if kind == AccessKind::Load {
            let race = self.race(writer, who).then_some(RaceKind::ReadWrite);
            self.reads(cell, who);
            return (race, writer);
        }
        let mut found = (None, Who::NOBODY);
        let readers = [cell.readers[0], cell.readers[1], cell.earlier];
        if let Some(reader) = readers.into_iter().find(|reader| self.race(*reader, who)) {
            found = (Some(RaceKind::ReadWrite), reader);
        }
        if kind == AccessKind::Atomic {
            if self.race(writer, who) {
                found = (Some(RaceKind::Atomic), writer);
            }
            if found.0.is_some() {
                found.0 = Some(RaceKind::Atomic);
            }
            return found;
        }
        if self.race(writer, who) {
            let same = value == Some(cell.value);
            let race = match same {
                true => RaceKind::SameValue,
                false => RaceKind::WriteWrite,
            };
            if !same || found.0.is_none() {
                found = (Some(race), writer);
            }
        }
        cell.writer = who;
        cell.value = value.unwrap_or(!0);
        found
    }

    #[inline]
    fn reads(self, cell: &mut Cell, who: Who) {
        let [first, second] = cell.readers;
        if first.thread == who.thread || !first.is_somebody() {
            cell.readers[0] = who;
        } else if second.thread == who.thread || !second.is_somebody() {
            cell.readers[1] = who;
        } else if self.barriers {
            // What is older than the barrier matters to later work groups: one reader suffices.
            let old = |other: Who| other.epoch != who.epoch || !self.same_group(other, who);
            if old(first) {
                if !self.same_group(first, who) {
                    cell.earlier = first;
                }
                cell.readers[0] = who;
            } else if old(second) {
                if !self.same_group(second, who) {
                    cell.earlier = second;
                }
                cell.readers[1] = who;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: Who = Who {
        thread: 3,
        site: 0,
        epoch: 0,
    };

    fn races(words: u64, kinds: &[AccessKind]) -> Races {
        let mut races = Races::new(Storages::default(), 64, 1 << 20);
        for word in 0..words {
            for kind in kinds {
                races.lane(READER, 4 * word, 4, *kind, None);
            }
        }
        races
    }

    #[test]
    fn memory_is_taken_for_what_is_touched() {
        let bytes = |races: &Races| MOST_BYTES - races.room;
        let pages = 300;
        let words = pages as u64 * WORDS as u64;
        let read = races(words, &[AccessKind::Load]);
        assert_eq!(bytes(&read), pages * 8192);
        let written = races(words, &[AccessKind::Store]);
        assert_eq!(bytes(&written), pages * 12288);
        let both = races(words, &[AccessKind::Load, AccessKind::Store]);
        assert_eq!(bytes(&both), pages * 20480);
        assert!(both.stopped.is_none());
    }

    #[test]
    fn memory_has_a_limit() {
        let mut races = races(1, &[AccessKind::Load]);
        let most = (MOST_BYTES / 12288) as u64;
        for page in 1..most {
            races.lane(READER, page * PAGE, 4, AccessKind::Store, None);
            assert_eq!(races.stopped, None, "{page}");
        }
        for page in most..most + 2 {
            races.lane(READER, page * PAGE, 4, AccessKind::Store, None);
        }
        let told = races.stopped.unwrap_or_default();
        assert!(told.contains("more memory than is kept"), "{told}");
    }

    #[test]
    fn an_unknown_value_equals_none() {
        let writer = |thread, site| Who {
            thread,
            site,
            epoch: 0,
        };
        let kinds = |first: Option<[u8; 16]>| -> Vec<RaceKind> {
            let mut races = Races::new(Storages::default(), 64, 1 << 20);
            races.lane(writer(1, 0), 64, 4, AccessKind::Store, first);
            races.lane(writer(2, 1), 64, 4, AccessKind::Store, Some([0xff; 16]));
            races.pairs().map(|(_, pair, _)| pair.kind).collect()
        };
        assert_eq!(kinds(Some([0xff; 16])), [RaceKind::SameValue]);
        assert_eq!(kinds(Some([1; 16])), [RaceKind::WriteWrite]);
        assert_eq!(kinds(None), [RaceKind::WriteWrite]);
    }
}
