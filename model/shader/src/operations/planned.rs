// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores with known addresses.

use std::collections::HashMap;

use gpureplay_memory::{PAGE_SIZE, Page, gather_from};

use super::memory::{align, fetch, put};
use crate::core::{OFFSET, Results};
use crate::rows::{CHUNK, GROUP, LANES, Row, Rows, lanes, repeat, spread};

const MOST_PAGES: usize = 1 << 12;

/// Page number times page size, plus offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u32);

impl Place {
    #[inline(always)]
    fn page(self) -> usize {
        self.0 as usize / PAGE_SIZE
    }

    #[inline(always)]
    fn offset(self) -> usize {
        self.0 as usize % PAGE_SIZE
    }

    #[inline(always)]
    fn of<'p, 's>(self, pages: &'p [Page<'s>]) -> &'p Page<'s> {
        &pages[self.page()]
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pages {
    addresses: Vec<u64>,
    numbers: HashMap<u64, u32>,
}

impl Pages {
    pub(crate) fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        for page in self.addresses.drain(count.min(self.addresses.len())..) {
            self.numbers.remove(&page);
        }
    }

    fn place(&mut self, va: u64, bytes: usize) -> Option<Place> {
        let offset = va & OFFSET;
        let page = va - offset;
        let next = self.addresses.len();
        let known = self.numbers.get(&page).copied();
        if offset as usize > PAGE_SIZE - bytes || known.is_none() && next >= MOST_PAGES {
            return None;
        }
        let number = known.unwrap_or_else(|| {
            self.addresses.push(page);
            self.numbers.insert(page, next as u32);
            next as u32
        });
        Some(Place(number * PAGE_SIZE as u32 + offset as u32))
    }
}

type Loader = fn(&Load, &[Page<'_>], &mut [Box<Row>]);

#[derive(Debug)]
pub(crate) struct Load {
    run: Loader,
    to: u16,
    words: u16,
    places: Box<[u32]>,
    period: usize,
}

pub(crate) struct Wanted<'a> {
    pub(crate) addresses: &'a [u64; LANES],
    pub(crate) mask: u64,
    pub(crate) width: usize,
    pub(crate) bytes: usize,
    pub(crate) row: u16,
}

impl<'a> Wanted<'a> {
    pub(crate) fn active(
        rows: &Rows,
        addresses: &'a [u64; LANES],
        bytes: usize,
        row: u16,
    ) -> Wanted<'a> {
        Wanted {
            addresses,
            mask: rows.mask(),
            width: rows.lanes(),
            bytes,
            row,
        }
    }

    /// Inactive lanes get the first active lane's.
    fn places(&self, pages: &mut Pages) -> Option<[Place; LANES]> {
        let first = *self.addresses.get(self.mask.trailing_zeros() as usize)?;
        let mut before = (first, pages.place(first, self.bytes)?);
        let mut places = [before.1; LANES];
        for lane in lanes(self.mask) {
            let va = self.addresses[lane];
            let (known, place) = before;
            let offset = (va & OFFSET) as usize;
            places[lane] = match (va ^ known) & !OFFSET {
                0 if offset <= PAGE_SIZE - self.bytes => {
                    Place(place.0 & !(OFFSET as u32) | offset as u32)
                }
                _ => pages.place(va, self.bytes)?,
            };
            before = (va, places[lane]);
        }
        Some(places)
    }

    /// First lane, extent and place of consecutive words in a page.
    fn run(&self, places: &[Place; LANES]) -> Option<(usize, usize, Place)> {
        let first = self.mask.trailing_zeros() as usize;
        let end = LANES - self.mask.leading_zeros() as usize;
        let start = *places.get(first)?;
        let follows = |lane: usize| places[lane].0 == start.0 + 4 * (lane - first) as u32;
        let fits = start.offset() + 4 * (end - first) <= PAGE_SIZE;
        let is =
            self.bytes == 4 && start.0.is_multiple_of(4) && fits && lanes(self.mask).all(follows);
        is.then_some((first, end - first, start))
    }
}

impl Load {
    pub(crate) fn plan(wanted: &Wanted<'_>, pages: &mut Pages) -> Option<Load> {
        let all = wanted.places(pages)?;
        let (bytes, width) = (wanted.bytes, wanted.width);
        let used = &all[..width];
        let comes_again = |period: &usize| used.iter().zip(&used[*period..]).all(|(a, b)| a == b);
        let words = bytes.div_ceil(4) as u16;
        let load = |run, places: &[Place], period| Load {
            run,
            to: wanted.row,
            words,
            places: places.iter().map(|place| place.0).collect(),
            period,
        };
        if used.iter().all(|place| *place == used[0]) {
            return Some(load(by_bytes(bytes, Form::Same)?, &all[..1], LANES));
        }
        if let Some((first, count, start)) = wanted.run(&all) {
            let run = [start, Place(first as u32), Place(count as u32)];
            return Some(load(load_run, &run, LANES));
        }
        let firsts = |size: usize| -> Vec<Place> { used.iter().step_by(size).copied().collect() };
        let is_flat = |size: usize| {
            used.chunks(size)
                .all(|some| some.iter().all(|place| *place == some[0]))
        };
        if is_flat(CHUNK) {
            let run = by_bytes(bytes, Form::FlatChunks)?;
            return Some(load(run, &firsts(CHUNK), LANES));
        }
        if is_flat(GROUP) {
            return Some(load(by_bytes(bytes, Form::Flat)?, &firsts(GROUP), LANES));
        }
        let period = [CHUNK, 2 * CHUNK]
            .into_iter()
            .find(|period| *period < width && comes_again(period))
            .unwrap_or(LANES);
        let some = &all[..period.min(width)];
        let is_aligned = some.iter().all(|place| place.0.is_multiple_of(4));
        let run = match bytes {
            4 if is_aligned && some.as_chunks().0.iter().all(is_in_a_page) => gather::<1>,
            8 if is_aligned => gather::<2>,
            16 if is_aligned => gather::<4>,
            _ => by_bytes(bytes, Form::Lanes)?,
        };
        Some(load(run, some, period))
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.places.iter().map(|&place| Place(place))
    }

    #[inline(always)]
    pub(crate) fn run(&self, pages: &[Page<'_>], rows: &mut Rows, results: &mut Results) {
        if let Some(rows) = rows.replaced(self.to, self.words) {
            return (self.run)(self, pages, rows);
        }
        let results = &mut results.0[..usize::from(self.words)];
        (self.run)(self, pages, results);
        for (word, row) in (0..self.words).zip(results) {
            rows.replace(self.to + word, row);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.places)
    }
}

#[derive(Clone, Copy)]
enum Form {
    Same,
    Flat,
    FlatChunks,
    Lanes,
}

fn by_bytes(bytes: usize, form: Form) -> Option<Loader> {
    macro_rules! functions {
        ($($bytes:literal)+) => {
            match (bytes, form) {
                $(
                    ($bytes, Form::Same) => same::<$bytes>,
                    ($bytes, Form::Flat) => flat::<$bytes>,
                    ($bytes, Form::FlatChunks) => flat_chunks::<$bytes>,
                    ($bytes, Form::Lanes) => one_by_one::<$bytes>,
                )+
                _ => return None,
            }
        };
    }
    Some(functions!(1 2 3 4 6 8 12 16))
}

fn is_in_a_page(places: &[Place; CHUNK]) -> bool {
    places.iter().all(|place| place.page() == places[0].page())
}

fn same<const BYTES: usize>(load: &Load, pages: &[Page<'_>], results: &mut [Box<Row>]) {
    let place = Place(load.places[0]);
    let value = fetch::<BYTES, false>(place.of(pages), place.offset());
    for (row, word) in results.iter_mut().zip(value) {
        row.0.fill(word);
    }
}

fn flat<const BYTES: usize>(load: &Load, pages: &[Page<'_>], results: &mut [Box<Row>]) {
    let mut values = [[0; CHUNK]; 4];
    for (group, place) in load.places().enumerate() {
        let value = fetch::<BYTES, false>(place.of(pages), place.offset());
        for (values, word) in values.iter_mut().zip(value) {
            values[group] = word;
        }
    }
    for (row, values) in results.iter_mut().zip(&values) {
        spread(row, values);
    }
}

fn flat_chunks<const BYTES: usize>(load: &Load, pages: &[Page<'_>], results: &mut [Box<Row>]) {
    for (chunk, place) in load.places().enumerate() {
        let value = fetch::<BYTES, false>(place.of(pages), place.offset());
        for (row, word) in results.iter_mut().zip(value) {
            row.0.as_chunks_mut::<CHUNK>().0[chunk] = [word; CHUNK];
        }
    }
}

fn load_run(load: &Load, pages: &[Page<'_>], results: &mut [Box<Row>]) {
    if let ([start, first, count], [to, ..]) = (&*load.places, results) {
        let (start, first, count) = (Place(*start), *first, *count);
        let to = &mut to.0[first as usize..][..count as usize];
        start.of(pages).load_words(start.offset(), to);
    }
}

fn chunks<const N: usize>(rows: [&mut Box<Row>; N], chunk: usize) -> [&mut [u32; CHUNK]; N] {
    rows.map(|row| &mut row.0.as_chunks_mut().0[chunk])
}

fn gather<const WORDS: usize>(load: &Load, pages: &[Page<'_>], results: &mut [Box<Row>]) {
    for (chunk, places) in load.places.as_chunks::<CHUNK>().0.iter().enumerate() {
        match results {
            [a, b, c, d] if WORDS == 4 => gather_from(pages, places, chunks([a, b, c, d], chunk)),
            [a, b] if WORDS == 2 => gather_from(pages, places, chunks([a, b], chunk)),
            [a] if WORDS == 1 => {
                let [to] = chunks([a], chunk);
                Place(places[0]).of(pages).gather_words(places, to);
            }
            _ => {}
        }
    }
    complete(load, results);
}

fn one_by_one<const BYTES: usize>(load: &Load, pages: &[Page<'_>], results: &mut [Box<Row>]) {
    for (lane, place) in load.places().enumerate() {
        let value = fetch::<BYTES, false>(place.of(pages), place.offset());
        for (row, word) in results.iter_mut().zip(value) {
            row.0[lane] = word;
        }
    }
    complete(load, results);
}

fn complete(load: &Load, results: &mut [Box<Row>]) {
    for row in results.iter_mut() {
        match load.period {
            CHUNK => repeat(row),
            LANES => {}
            _ => row.0.copy_within(..LANES / 2, LANES / 2),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Store {
    run: fn(&Store, &[Page<'_>], &Rows),
    from: [u16; 4],
    mask: u64,
    /// Of active lanes; only the first for consecutive words.
    places: Box<[u32]>,
}

impl Store {
    pub(crate) fn plan(wanted: &Wanted<'_>, from: [u16; 4], pages: &mut Pages) -> Option<Store> {
        let all = wanted.places(pages)?;
        let mask = wanted.mask;
        let store = |run, places: &[Place]| Store {
            run,
            from,
            mask,
            places: places.iter().map(|place| place.0).collect(),
        };
        if let Some((_, count, start)) = wanted.run(&all)
            && mask.count_ones() as usize == count
        {
            return Some(store(store_run, &[start]));
        }
        let is_aligned = all
            .iter()
            .all(|place| place.0.is_multiple_of(align(wanted.bytes)));
        macro_rules! functions {
            ($($bytes:literal)+) => {
                match (wanted.bytes, is_aligned) {
                    $(
                        ($bytes, true) => store_lanes::<$bytes, true>,
                        ($bytes, false) => store_lanes::<$bytes, false>,
                    )+
                    _ => return None,
                }
            };
        }
        let in_pages = all.as_chunks().0.iter().all(is_in_a_page);
        if wanted.bytes == 4 && mask == u64::MAX && is_aligned && in_pages {
            return Some(store(scatter, &all));
        }
        let places: Vec<Place> = lanes(mask).map(|lane| all[lane]).collect();
        Some(store(functions!(1 2 3 4 6 8 12 16), &places))
    }

    #[inline(always)]
    pub(crate) fn run(&self, pages: &[Page<'_>], rows: &Rows) {
        (self.run)(self, pages, rows);
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.places)
    }
}

fn store_run(store: &Store, pages: &[Page<'_>], rows: &Rows) {
    let (first, count) = (store.mask.trailing_zeros(), store.mask.count_ones());
    let from = &rows.get(store.from[0]).0[first as usize..][..count as usize];
    let start = Place(store.places[0]);
    start.of(pages).store_words(start.offset(), from);
}

fn scatter(store: &Store, pages: &[Page<'_>], rows: &Rows) {
    let from = rows.get(store.from[0]).0.as_chunks().0;
    for (places, from) in store.places.as_chunks().0.iter().zip(from) {
        Place(places[0]).of(pages).scatter_words(places, from);
    }
}

fn store_lanes<const BYTES: usize, const ALIGNED: bool>(
    store: &Store,
    pages: &[Page<'_>],
    rows: &Rows,
) {
    let from = store.from.map(|row| rows.get(row));
    for (lane, &place) in lanes(store.mask).zip(&store.places) {
        let place = Place(place);
        let value = from.map(|row| row.0[lane]);
        put::<BYTES, ALIGNED>(place.of(pages), place.offset(), value);
    }
}
