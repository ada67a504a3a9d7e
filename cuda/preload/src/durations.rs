// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels' times; by events without CUPTI.
//!
//! Where replacements are timed, launches alternate with the original.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, Mutex};

use gpureplay_cuda_launch::abi::{Handle, Status};
use gpureplay_host::csv;

use crate::asked::{Launch, is_capturing, shown};
use crate::functions;
use crate::guard;
use crate::real::driver;
use crate::report::CAPTURED;
use crate::say::{say, tell};
use crate::settings::{Mode, Replace, settings};

/// At most; reading pending ones waits for the GPU.
const PENDING_PAIRS: usize = 4096;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) kernel: String,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) side: Option<Side>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Original,
    Replacement,
}

/// In microseconds.
#[derive(Clone, Copy)]
struct Times {
    occurrences: u64,
    total: f64,
    least: f64,
    most: f64,
    /// The first launch loads the kernel.
    is_without_first: bool,
}

impl Times {
    const NONE: Self = Self {
        occurrences: 0,
        total: 0.0,
        least: f64::INFINITY,
        most: 0.0,
        is_without_first: false,
    };
}

struct Pair {
    key: Key,
    start: Handle,
    end: Handle,
}

struct State {
    table: BTreeMap<Key, Times>,
    waiting: Vec<Pair>,
    free: Vec<(Handle, Handle)>,
    turns: BTreeMap<Key, u64>,
}

static STATE: Mutex<State> = Mutex::new(State {
    table: BTreeMap::new(),
    waiting: Vec::new(),
    free: Vec::new(),
    turns: BTreeMap::new(),
});

fn add(table: &mut BTreeMap<Key, Times>, key: Key, microseconds: f64) {
    log(&key, microseconds);
    let is_compared = key.side.is_some();
    let times = table.entry(key).or_insert(Times::NONE);
    if is_compared && times.occurrences == 1 && !times.is_without_first {
        *times = Times {
            is_without_first: true,
            ..Times::NONE
        };
    }
    times.occurrences += 1;
    times.total += microseconds;
    times.least = times.least.min(microseconds);
    times.most = times.most.max(microseconds);
}

static LOG: LazyLock<Option<File>> = LazyLock::new(|| {
    let Mode::Durations(durations) = &settings().mode else {
        return None;
    };
    let path = durations.log.as_ref()?;
    let file = OpenOptions::new().append(true).open(path);
    file.inspect_err(|error| say(&format!("{}: {error}", path.display())))
        .ok()
});

/// A line at once: other processes write, too.
fn log(key: &Key, microseconds: f64) {
    let Some(mut file) = LOG.as_ref() else { return };
    let line = csv::line([
        std::process::id().to_string(),
        key.kernel.clone(),
        shown(key.grid),
        shown(key.block),
        format!("{microseconds:.3}"),
    ]);
    let _ = file.write_all(line.as_bytes());
}

pub(crate) fn ran(key: Key, microseconds: f64) {
    add(&mut guard::lock(&STATE).table, key, microseconds);
}

pub(crate) fn launch(launch: &Launch, call: impl FnOnce() -> Status) -> Status {
    let function = functions::get(launch.function)
        .ok()
        .filter(|function| function.wanted);
    let Some(function) = function else {
        return call();
    };
    if is_capturing(launch) {
        CAPTURED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        return call();
    }
    between(launch, || (call(), key(launch, &function.name, None)))
}

fn key(launch: &Launch, kernel: &str, side: Option<Side>) -> Key {
    Key {
        kernel: kernel.to_owned(),
        grid: launch.sizes.grid,
        block: launch.sizes.block,
        side,
    }
}

/// `call` says which side ran.
pub(crate) fn in_turn(
    launch: &Launch,
    kernel: &str,
    call: impl FnOnce(Side) -> (Status, Side),
) -> Status {
    let mut state = guard::lock(&STATE);
    let before = state.turns.entry(key(launch, kernel, None)).or_insert(0);
    let side = match before.is_multiple_of(2) {
        true => Side::Original,
        false => Side::Replacement,
    };
    *before += 1;
    drop(state);
    between(launch, || {
        let (status, ran) = call(side);
        (status, key(launch, kernel, Some(ran)))
    })
}

fn between(launch: &Launch, call: impl FnOnce() -> (Status, Key)) -> Status {
    let Some((start, end)) = events() else {
        return call().0;
    };
    record(launch, start);
    let (status, key) = call();
    record(launch, end);
    let mut state = guard::lock(&STATE);
    if status == Status::SUCCESS {
        state.waiting.push(Pair { key, start, end });
        if state.waiting.len() >= PENDING_PAIRS {
            state.read();
        }
    } else {
        state.free.push((start, end));
    }
    status
}

fn record(launch: &Launch, event: Handle) {
    if let Ok(driver) = driver() {
        // SAFETY: our event, the program's stream. An unrecorded pair gives no time later.
        let _ = unsafe { driver.cuEventRecord(event, launch.stream) };
    }
}

fn events() -> Option<(Handle, Handle)> {
    if let Some(pair) = guard::lock(&STATE).free.pop() {
        return Some(pair);
    }
    let driver = driver().ok()?;
    let (mut start, mut end) = (0, 0);
    // SAFETY: pointers to locals.
    unsafe {
        driver.cuEventCreate(&raw mut start, 0).check().ok()?;
        driver.cuEventCreate(&raw mut end, 0).check().ok()?;
    }
    Some((start, end))
}

impl State {
    fn read(&mut self) {
        let Ok(driver) = driver() else { return };
        for Pair { key, start, end } in std::mem::take(&mut self.waiting) {
            let mut milliseconds = 0f32;
            // SAFETY: events that we made, a pointer to a local.
            let status = unsafe {
                match driver.cuEventSynchronize(end) {
                    Status::SUCCESS => driver.cuEventElapsedTime(&raw mut milliseconds, start, end),
                    failed => failed,
                }
            };
            if status == Status::SUCCESS {
                add(&mut self.table, key, f64::from(milliseconds) * 1e3);
            }
            self.free.push((start, end));
        }
    }
}

pub(crate) fn finish() {
    let folder = match &settings().mode {
        Mode::Durations(durations) => &durations.table,
        Mode::Replace(Replace {
            table: Some(folder),
            ..
        }) => folder,
        _ => return,
    };
    let mut state = guard::lock(&STATE);
    state.read();
    let mut text = String::new();
    for (key, times) in &state.table {
        let side = match key.side {
            None => "",
            Some(Side::Original) => "original\t",
            Some(Side::Replacement) => "replacement\t",
        };
        let _ = writeln!(
            text,
            "{side}{}\t{}\t{}\t{}\t{:.3}\t{:.3}\t{:.3}",
            key.kernel.replace('\t', " "),
            shown(key.grid),
            shown(key.block),
            times.occurrences,
            times.total,
            times.least,
            times.most
        );
    }
    tell(folder, &text);
}
