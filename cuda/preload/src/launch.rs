// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches are recorded, timed, replaced or passed on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::asked::{Launch, Sizes, is_capturing};
use crate::functions::{self, Function};
use crate::record::Snapshot;
use crate::report::{CAPTURED, LAUNCHES, RECORDED, refuse};
use crate::settings::{Mode, Pick, Record, settings};
use crate::state::CAPTURES;
use crate::{cupti, durations, gate, record, replace, run, tally};

/// For "the first launch": retries cost time and fail alike.
const TRIES: u64 = 3;

pub(crate) fn launch(
    launch: impl FnOnce() -> Launch,
    function: Handle,
    call: impl Fn(Handle, Option<Sizes>) -> Status,
) -> Status {
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
    let mode = &settings().mode;
    // Graphs' launches are recorded when the graph runs (`graphs.rs`).
    if CAPTURES.load(Ordering::Relaxed) > 0 && !matches!(mode, Mode::Off) {
        let launch = launch();
        if is_capturing(&launch) {
            CAPTURED.fetch_add(1, Ordering::Relaxed);
            let _pass = gate::pass();
            return match mode {
                Mode::Replace(replace) => replace::launch(replace, function, || launch, call),
                _ => call(function, None),
            };
        }
        return counted(function, decided(mode, || launch, function, call));
    }
    counted(function, decided(mode, launch, function, call))
}

fn counted(function: Handle, status: Status) -> Status {
    if tally::is_on()
        && status == Status::SUCCESS
        && let Ok(function) = functions::get(function)
        && function.wanted
    {
        tally::seen(&function.name);
    }
    status
}

fn decided(
    mode: &Mode,
    launch: impl FnOnce() -> Launch,
    function: Handle,
    call: impl Fn(Handle, Option<Sizes>) -> Status,
) -> Status {
    match mode {
        Mode::Off => call(function, None),
        Mode::Replace(replace) => replace::launch(replace, function, launch, call),
        Mode::Durations(_) => {
            if cupti::is_active() {
                return call(function, None);
            }
            durations::launch(&launch(), || call(function, None))
        }
        Mode::Record(_) if run::is_wanted() => run::launch(&launch(), || call(function, None)),
        Mode::Record(settings) => {
            // One relaxed load decides if no filter matches.
            let wanted = if functions::is_unwanted(function) {
                None
            } else {
                wanted(settings, function)
            };
            let Some((known, occurrence)) = wanted else {
                let _pass = gate::enter();
                return call(function, None);
            };
            let call = |function| call(function, None);
            recorded(settings, &launch(), &known, occurrence, call)
        }
    }
}

pub(crate) fn wanted(settings: &Record, handle: Handle) -> Option<(Arc<Function>, u64)> {
    let look = |function: &Arc<Function>| {
        let occurrence = function.counts.launched();
        (function.wanted && picked(settings, function, occurrence))
            .then(|| (Arc::clone(function), occurrence))
    };
    match functions::known(handle, look) {
        Some(answer) => answer,
        None => look(&functions::get(handle).ok()?),
    }
}

fn picked(settings: &Record, function: &Function, occurrence: u64) -> bool {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    if count(&function.counts.recorded) >= settings.most_per_kernel
        || function.counts.hopeless.load(Ordering::Relaxed)
    {
        return false;
    }
    match settings.pick {
        Pick::First => {
            count(&function.counts.recorded) == 0 && count(&function.counts.tried) < TRIES
        }
        Pick::All => true,
        Pick::Number(number) => occurrence == number,
        Pick::Random(one_in) => scatter(occurrence).is_multiple_of(one_in),
    }
}

/// SplitMix64's mixing step: random-looking, repeatable.
fn scatter(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn recorded(
    settings: &Record,
    launch: &Launch,
    function: &Function,
    occurrence: u64,
    call: impl FnOnce(Handle) -> Status,
) -> Status {
    // Waiting would break captures.
    if CAPTURES.load(Ordering::SeqCst) > 0 {
        refuse(&function.name, "a stream is being captured into a graph");
        let _pass = gate::enter();
        return call(launch.function);
    }
    let closed = gate::close();
    // Another thread may have been first.
    if !picked(settings, function, occurrence) || CAPTURES.load(Ordering::SeqCst) > 0 {
        return call(launch.function);
    }
    let (status, snapshot) = taken(settings, launch, function, occurrence, call);
    // Writing needs no GPU or program memory.
    drop(closed);
    if let Some(snapshot) = snapshot {
        written(settings, launch, function, occurrence, snapshot);
    }
    status
}

/// The gate is closed.
pub(crate) fn taken(
    settings: &Record,
    launch: &Launch,
    function: &Function,
    occurrence: u64,
    call: impl FnOnce(Handle) -> Status,
) -> (Status, Option<Snapshot>) {
    if !picked(settings, function, occurrence) {
        return (call(launch.function), None);
    }
    function.counts.tried.fetch_add(1, Ordering::Relaxed);
    let snapshot = match record::before(settings, launch, function) {
        Ok(snapshot) => snapshot,
        Err(reason) => {
            refuse(&function.name, &reason);
            return (call(launch.function), None);
        }
    };
    let status = call(launch.function);
    if status != Status::SUCCESS {
        refuse(&function.name, &format!("the launch fails with {status}"));
        return (status, None);
    }
    let snapshot = snapshot
        .after(settings, function)
        .inspect_err(|reason| refuse(&function.name, reason))
        .ok();
    if snapshot.is_some() {
        function.counts.recorded.fetch_add(1, Ordering::Relaxed);
    }
    (status, snapshot)
}

pub(crate) fn written(
    settings: &Record,
    launch: &Launch,
    function: &Function,
    occurrence: u64,
    snapshot: Snapshot,
) {
    match snapshot.write(settings, launch, function, occurrence) {
        Ok(_) => _ = RECORDED.fetch_add(1, Ordering::Relaxed),
        Err(reason) => refuse(&function.name, &reason),
    }
}
