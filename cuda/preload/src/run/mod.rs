// SPDX-License-Identifier: MIT OR Apache-2.0
//! A region, recorded as a whole (`record --run`).
//!
//! Each function makes the program's call and keeps it. The log is locked meanwhile, for the driver's order, but
//! not while the host waits.

mod finish;
mod graphs;
mod launches;
mod log;
mod ranges;
mod turns;
mod watch;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard};

use gpureplay_cuda_launch::abi::{Copy3d, Handle, MemsetNode, Status};
use gpureplay_cuda_launch::recording::{Operation, Rows};

use crate::asked::Launch;
use crate::gate;
use crate::guard;
use crate::memory::Kind;
use crate::say::say;
use crate::settings::{Mode, Record, Region, settings};
use crate::state::{CAPTURES, memory};
pub(crate) use graphs::graph;
use log::{Log, Result};
pub(crate) use ranges::{range_begins, range_ends};
use watch::Watch;

static ACTIVE: AtomicBool = AtomicBool::new(false);
static BEGUN: AtomicBool = AtomicBool::new(false);
static NUMBER: AtomicU64 = AtomicU64::new(0);

static LOG: Mutex<Option<Log>> = Mutex::new(None);

static WATCH: LazyLock<Mutex<Watch>> = LazyLock::new(Mutex::default);

fn watch() -> Option<MutexGuard<'static, Watch>> {
    matches!(wanted(), Some((_, Region::Turn))).then(|| guard::lock(&WATCH))
}

fn watched(words: &[u64], is_launch: bool) {
    let border = watch().and_then(|mut watch| watch.work(words, is_launch));
    let (Some(border), Some((record, _))) = (border, wanted()) else {
        return;
    };
    if border.expected {
        end(record);
    } else {
        abandon(record);
    }
    if border.begins {
        begin(record);
    }
}

/// Takes results that nobody wants: copies must end, and pinned memory go back.
fn abandon(settings: &Record) {
    let _closed = gate::close();
    ACTIVE.store(false, Ordering::SeqCst);
    let log = lock().take();
    if let Some(log) = log {
        let _ = log.outputs_read(settings);
    }
}

fn lock() -> MutexGuard<'static, Option<Log>> {
    guard::lock(&LOG)
}

fn wanted() -> Option<(&'static Record, &'static Region)> {
    match &settings().mode {
        Mode::Record(record) => record.run.as_ref().map(|region| (record, region)),
        _ => None,
    }
}

pub(crate) fn profiler(starts: bool) {
    match wanted() {
        Some((record, Region::Profiler)) if starts => begin(record),
        Some((record, Region::Profiler)) => end(record),
        _ => {}
    }
}

fn begin(settings: &'static Record) {
    let _closed = gate::close();
    BEGUN.store(true, Ordering::SeqCst);
    if ACTIVE.load(Ordering::SeqCst) || turns::is_complete(settings) {
        return;
    }
    if CAPTURES.load(Ordering::SeqCst) > 0 {
        return say("the run is not recorded: a stream is being captured into a graph");
    }
    match Log::begin(settings) {
        Ok(log) => {
            *lock() = Some(log);
            ACTIVE.store(true, Ordering::SeqCst);
        }
        Err(reason) => say(&format!("the run is not recorded: {reason}")),
    }
}

fn end(settings: &Record) {
    let closed = gate::close();
    if !ACTIVE.swap(false, Ordering::SeqCst) {
        return;
    }
    let Some(log) = lock().take() else { return };
    let read = log.outputs_read(settings);
    drop(closed);
    match read.and_then(|log| turns::keep(log, settings)) {
        Ok(said) => say(&said),
        Err(reason) => say(&format!("the run is not recorded: {reason}")),
    }
}

pub(crate) fn at_exit() {
    match wanted() {
        Some((record, Region::Launches(..))) => end(record),
        Some((record, Region::Turn)) if watch().is_some_and(|watch| watch.is_whole()) => {
            end(record)
        }
        Some((record, Region::Turn)) => abandon(record),
        Some((_, Region::Nvtx(name))) if ACTIVE.load(Ordering::SeqCst) => {
            say(&format!(
                "the run is not recorded: the range {name} did not end"
            ));
        }
        Some(_) if ACTIVE.load(Ordering::SeqCst) => {
            say("the run is not recorded: cuProfilerStop was not called");
        }
        _ => {}
    }
    if !BEGUN.load(Ordering::SeqCst) {
        match wanted() {
            Some((_, Region::Profiler)) => {
                say("no run is recorded: cuProfilerStart was not called")
            }
            Some((_, Region::Nvtx(name))) => say(&format!(
                "no run is recorded: no range of NVTX is called {name}"
            )),
            Some((_, Region::Turn)) => {
                say(
                    "no run is recorded: no work was done three times in the same way, each time with a result for the host",
                );
            }
            Some((_, Region::Launches(first, _))) => {
                let number = NUMBER.load(Ordering::SeqCst);
                say(&format!(
                    "no run is recorded: there were {number} launches, and it begins with {first}"
                ));
            }
            None => {}
        }
    }
}

fn with_log(what: impl FnOnce(&mut Log)) {
    if ACTIVE.load(Ordering::Relaxed)
        && let Some(log) = &mut *lock()
    {
        what(log);
    }
}

pub(crate) fn refuse(reason: impl FnOnce() -> String) {
    with_log(|log| log.refuse(reason()));
}

/// Begins a region of launches from 0 with the first work: earlier copies are inputs.
fn begin_with_first() {
    if let Some((record, Region::Launches(0, _))) = wanted()
        && !BEGUN.swap(true, Ordering::SeqCst)
    {
        begin(record);
    }
}

/// A region of launches ends before a change, once its last launch was made and a result perhaps read.
fn work(
    words: &[u64],
    call: impl FnOnce() -> Status,
    keep: impl FnOnce(&mut Log) -> Result<()>,
) -> Status {
    watched(words, false);
    begin_with_first();
    if ACTIVE.load(Ordering::Relaxed)
        && let Some((record, Region::Launches(_, stop))) = wanted()
        && NUMBER.load(Ordering::SeqCst) >= *stop
        && lock().as_ref().is_some_and(Log::is_seen)
    {
        end(record);
    }
    kept(call, keep)
}

/// A failed call did nothing.
fn kept(call: impl FnOnce() -> Status, keep: impl FnOnce(&mut Log) -> Result<()>) -> Status {
    let _pass = gate::pass();
    if !ACTIVE.load(Ordering::Relaxed) {
        return call();
    }
    let mut log = lock();
    let status = call();
    if let (Status::SUCCESS, Some(log)) = (status, &mut *log)
        && let Err(reason) = keep(log)
    {
        log.refuse(reason);
    }
    status
}

pub(crate) fn launch(launch: &Launch, call: impl FnOnce() -> Status) -> Status {
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    let region = wanted();
    if let Some((_, Region::Turn)) = region {
        let sizes = launch
            .sizes
            .grid
            .into_iter()
            .chain(launch.sizes.block)
            .map(u64::from);
        let words: Vec<u64> = [0, launch.function, u64::from(launch.sizes.shared)]
            .into_iter()
            .chain(sizes)
            .collect();
        watched(&words, true);
    }
    if let Some((record, Region::Launches(_, stop))) = region
        && number == *stop
    {
        end(record);
    }
    begin_with_first();
    let status = launched(launch, call);
    if let Some((record, Region::Launches(first, _))) = region
        && number + 1 == *first
    {
        begin(record);
    }
    status
}

fn launched(launch: &Launch, call: impl FnOnce() -> Status) -> Status {
    let _pass = gate::pass();
    if !ACTIVE.load(Ordering::Relaxed) {
        return call();
    }
    let mut log = lock();
    // Variables are read before the launch changes them.
    if let Some(log) = &mut *log
        && let Err(reason) = log.launch(launch)
    {
        log.refuse(reason);
    }
    let status = call();
    if let (Some(log), Err(status)) = (&mut *log, status.check()) {
        log.refuse(format!("a launch fails with {status}"));
    }
    status
}

#[derive(Clone, Copy)]
pub(crate) struct Copied {
    to: u64,
    from: u64,
    size: usize,
    rows: Option<Rows>,
}

impl Copied {
    pub(crate) fn bytes(to: u64, from: u64, size: usize) -> Self {
        Self {
            to,
            from,
            size,
            rows: None,
        }
    }
}

/// `waits`: done at return.
pub(crate) fn to_device(
    copied: Copied,
    stream: Handle,
    waits: bool,
    call: impl FnOnce() -> Status,
) -> Status {
    let words = [1, copied.size as u64];
    work(&words, call, |log| log.input(copied, stream, waits))
}

pub(crate) fn to_host(
    copied: Copied,
    stream: Handle,
    waits: bool,
    call: impl FnOnce() -> Status,
) -> Status {
    let status = kept(call, |log| log.output(copied, stream, waits));
    if let Some(mut watch) = watch() {
        watch.output(waits || memory().at(copied.to).is_none());
    }
    status
}

pub(crate) fn on_device(copied: Copied, stream: Handle, call: impl FnOnce() -> Status) -> Status {
    let words = [2, copied.size as u64];
    work(&words, call, |log| log.copy(copied, stream))
}

pub(crate) fn rows(
    copy: &Copy3d,
    stream: Handle,
    waits: bool,
    call: impl FnOnce() -> Status,
) -> Status {
    match Rows::of(copy) {
        Ok((to, from, size, rows)) => {
            // Too large for memory: the driver refuses.
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let copied = Copied {
                to,
                from,
                size,
                rows,
            };
            either(copied, stream, waits, call)
        }
        Err(reason) => {
            refuse(|| reason.into());
            let _pass = gate::pass();
            call()
        }
    }
}

pub(crate) fn either(
    copied: Copied,
    stream: Handle,
    waits: bool,
    call: impl FnOnce() -> Status,
) -> Status {
    let is_host = |address| {
        let piece = memory().at(address);
        piece.is_none_or(|piece| piece.kind == Kind::Host)
    };
    if watch().is_some() && is_host(copied.to) && !is_host(copied.from) {
        return to_host(copied, stream, waits, call);
    }
    let width = copied.rows.map_or(0, |rows| rows.width);
    work(&[1, copied.size as u64, width], call, |log| {
        match (log.is_device(copied.to), log.is_device(copied.from)) {
            (true, false) => log.input(copied, stream, waits),
            (false, true) => log.output(copied, stream, waits),
            (true, true) => log.copy(copied, stream),
            (false, false) => Err("it copies from host to host".into()),
        }
    })
}

pub(crate) fn set(set: MemsetNode, stream: Handle, call: impl FnOnce() -> Status) -> Status {
    let words = [
        3,
        u64::from(set.element),
        set.width as u64,
        set.height as u64,
    ];
    work(&words, call, |log| log.set(&set, stream))
}

pub(crate) fn record(event: Handle, stream: Handle, call: impl FnOnce() -> Status) -> Status {
    kept(call, |log| log.record(event, stream))
}

pub(crate) fn wait(stream: Handle, event: Handle, call: impl FnOnce() -> Status) -> Status {
    kept(call, |log| log.wait(stream, event))
}

#[derive(Clone, Copy)]
pub(crate) enum HostWait {
    Stream(Handle),
    Event(Handle),
    All,
}

/// An answer "not yet" is no wait.
pub(crate) fn host(wait: HostWait, call: impl FnOnce() -> Status) -> Status {
    // Without gate or log: it may need another thread.
    let status = call();
    if status == Status::SUCCESS {
        told();
        with_log(|log| {
            if let Err(reason) = log.host(wait) {
                log.refuse(reason);
            }
        });
    }
    status
}

/// A host function may tell the program of a result of the stream's earlier work: later requests come after it. It
/// cannot call the driver; host memory that it changes is seen when copied in.
pub(crate) fn tells(stream: Handle, call: impl FnOnce() -> Status) -> Status {
    let status = kept(call, |log| log.host(HostWait::Stream(stream)));
    if status == Status::SUCCESS {
        told();
    }
    status
}

fn told() {
    if let Some(mut watch) = watch() {
        watch.host();
    }
}

pub(crate) fn allocated(address: u64) {
    with_log(|log| {
        if let Some(piece) = memory().at(address) {
            log.allocated(piece);
        }
    });
}

/// All work ends first: a later allocation may get the memory.
pub(crate) fn freed() {
    with_log(|log| log.push(Operation::HostAll {}));
}

/// The handle may be reused.
pub(crate) fn forget_stream(stream: Handle) {
    with_log(|log| log.forget_stream(stream));
}

pub(crate) fn forget_event(event: Handle) {
    with_log(|log| log.forget_event(event));
}

pub(crate) fn is_wanted() -> bool {
    wanted().is_some()
}

fn host_rows(address: u64, size: usize, rows: Option<(Rows, [u64; 2])>) -> Vec<u8> {
    let Some((rows, lie)) = rows else {
        return host_bytes(address, size);
    };
    let width = usize::try_from(rows.width).unwrap_or(0);
    let starts = rows.starts(lie);
    starts
        .flat_map(|start| host_bytes(address + start, width))
        .collect()
}

fn host_bytes(address: u64, size: usize) -> Vec<u8> {
    // SAFETY: the program passed the memory to a copy of as many bytes, which the driver accepted.
    unsafe { std::slice::from_raw_parts(address as *const c_void as *const u8, size) }.to_vec()
}
