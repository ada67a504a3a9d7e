// SPDX-License-Identifier: MIT OR Apache-2.0
//! A standing attacker: recordings made to be expensive, changed at random, go through the commands in this process. What each command
//! allocates, holds and prints is counted, and must stay within a budget for each byte of the file.
//!
//! `GPUREPLAY_COST_SECONDS` says how long, `GPUREPLAY_COST_SEED` where to begin; a failure names the number of the input.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use gpureplay_format::{
    Access, Builder, ElementType, Recording, RegionKind, SegmentKind, Tensor, TensorKind,
};
use gpureplay_trials::Parts;
use gpureplay_trials::soundness::{Source, mutate};

/// Counts what is allocated: now, at most, and altogether, in bytes; and how often.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls go to the system's allocator as they came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        CALLS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a command may take whatever the file is, and for each byte of the file.
struct Budget {
    words: &'static [&'static str],
    /// Bytes held at once.
    held: (usize, usize),
    /// Allocations: the counter of work.
    calls: (usize, usize),
    /// Bytes printed.
    printed: (usize, usize),
    /// GPU memory that the file declares is held too.
    memory: bool,
}

const MIB: usize = 1 << 20;

const BUDGETS: [Budget; 9] = [
    budget(&["verify"], 0),
    budget(&["verify", "--deep"], 4),
    budget(&["info"], 100),
    budget(&["info", "--json"], 200),
    budget(&["info", "--unverified"], 100),
    budget(&["dump"], 700),
    budget(&["dump", "--unverified"], 700),
    budget(&["disasm"], 100),
    Budget {
        memory: true,
        ..budget(
            &[
                "run",
                "--threads",
                "1",
                "--limit-work",
                "1000000",
                "--retry",
                "2",
            ],
            4,
        )
    },
];

const fn budget(words: &'static [&'static str], printed: usize) -> Budget {
    Budget {
        words,
        held: (32 * MIB, 64),
        calls: (20_000, 16),
        printed: (MIB, printed),
        memory: false,
    }
}

/// What a command took of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    held: usize,
    calls: usize,
    printed: usize,
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A recording with much of something.
fn expensive(state: &mut u64) -> Vec<u8> {
    const JOBS: u64 = 0x200_0000;
    const DATA: u64 = 0x300_0000;
    let state = Cell::new(random(state));
    let few = |most: u64| {
        let mut next = state.get();
        let found = random(&mut next) % most.max(1);
        state.set(next);
        found
    };
    let mut builder = Builder::new(0x7212_0000);
    builder.identity(0, 0xffff_0000, 0x7212_0000);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    let pages = 1 + few(1 << few(17)) as u32;
    builder.region(DATA, pages, Access::READ_WRITE, RegionKind::Data);
    let mut tensors = Vec::new();
    for index in 0..1 + few(1 << few(12)) {
        let kinds = [
            TensorKind::Input,
            TensorKind::Output,
            TensorKind::Intermediate,
        ];
        let (kind, length) = (kinds[few(3) as usize], 1 + few(1 << few(9)) as usize);
        let name = format!("{index}{}", "n".repeat(length));
        let elements = 1 + few(u64::from(pages) << few(12)) as u32;
        let tensor = Tensor::dense(&name, kind, ElementType::U8, &[elements], DATA);
        tensors.push(builder.tensor(tensor));
    }
    for _ in 0..1 + few(1 << few(12)) {
        builder.segment("run", SegmentKind::Run);
        for _ in 0..few(1 << few(6)) {
            let tensor = tensors[few(tensors.len() as u64) as usize];
            match few(4) {
                0 => builder.bind_input(tensor),
                1 => builder.bind_output(tensor),
                2 => builder.fill(DATA, few(u64::from(pages) << 12) as u32, 7),
                _ => {
                    let mut job = [0; 32];
                    // A null job; sometimes it follows itself.
                    job[16] = 1 << 1 | 1;
                    let next = if few(8) == 0 { JOBS } else { 0 };
                    job[24..].copy_from_slice(&u64::to_le_bytes(next));
                    builder.upload(JOBS, &job);
                    builder.submit(1, JOBS, 1000);
                }
            }
        }
    }
    builder.finish().unwrap_or_default()
}

fn memory(file: &[u8]) -> usize {
    let regions = Recording::parse(file).map(|recording| {
        let bytes = recording.regions().iter().map(|region| region.bytes());
        bytes.fold(0u64, u64::saturating_add)
    });
    usize::try_from(regions.unwrap_or(0)).unwrap().min(4 << 30)
}

/// Runs a command on a file, with its output in `output`.
fn cost(words: &[&str], path: &Path, output: &File) -> Cost {
    output.set_len(0).unwrap();
    let words = ["gpureplay"].iter().chain(words);
    let words = words
        .map(OsString::from)
        .chain([path.as_os_str().to_owned()]);
    let (before, calls) = (NOW.load(Relaxed), CALLS.load(Relaxed));
    MOST.store(before, Relaxed);
    let _ = gpureplay_command::execute(words);
    std::io::stdout().flush().unwrap();
    Cost {
        held: MOST.load(Relaxed).saturating_sub(before),
        calls: CALLS.load(Relaxed) - calls,
        printed: output.metadata().unwrap().len() as usize,
    }
}

#[test]
fn no_file_costs_more_than_its_budget() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs(variable("GPUREPLAY_COST_SECONDS").unwrap_or(10));
    let mut number: u64 = variable("GPUREPLAY_COST_SEED").unwrap_or(0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.gpr");
    let file = |name: &str| {
        let path = folder.path().join(name);
        File::options()
            .create(true)
            .append(true)
            .read(true)
            .open(path)
            .unwrap()
    };
    let (output, errors) = (file("out"), file("err"));
    let shipped = gpureplay_trials::shipped::all().unwrap();
    let small: Vec<_> = shipped.iter().filter(|one| one.bytes.len() < MIB).collect();
    let screen = nix::unistd::dup(std::io::stdout()).unwrap();
    let screen_errors = nix::unistd::dup(std::io::stderr()).unwrap();
    nix::unistd::dup2_stdout(output.as_fd()).unwrap();
    nix::unistd::dup2_stderr(errors.as_fd()).unwrap();
    let mut largest: BTreeMap<String, (Cost, [f64; 3])> = BTreeMap::new();
    let mut broken = Vec::new();
    let (began, mut files) = (Instant::now(), 0u64);
    while began.elapsed() < time {
        let mut state = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bytes = match number % 4 {
            0 => small[(random(&mut state) % small.len() as u64) as usize]
                .bytes
                .clone(),
            _ => expensive(&mut state),
        };
        let changes: Vec<u8> = (0..64).map(|_| random(&mut state) as u8).collect();
        let bytes = match (random(&mut state) % 2, Parts::of(&bytes)) {
            (0, Some(mut parts)) => {
                mutate(&mut parts, &mut Source(&changes));
                parts.file()
            }
            _ => bytes,
        };
        std::fs::write(&path, &bytes).unwrap();
        for budget in &BUDGETS {
            let cost = cost(budget.words, &path, &output);
            let declared = if budget.memory { memory(&bytes) } else { 0 };
            let most = |(fixed, each): (usize, usize)| fixed + each * bytes.len();
            let within = cost.held <= most(budget.held) + 2 * declared
                && cost.calls <= most(budget.calls)
                && cost.printed <= most(budget.printed);
            if !within {
                broken.push(format!(
                    "input {number}, {} bytes, {declared} declared, {:?}: {cost:?}",
                    bytes.len(),
                    budget.words
                ));
            }
            let ratio = |value: usize| value as f64 / bytes.len() as f64;
            let (seen, ratios) = largest.entry(budget.words.join(" ")).or_default();
            seen.held = seen.held.max(cost.held);
            seen.calls = seen.calls.max(cost.calls);
            seen.printed = seen.printed.max(cost.printed);
            // What every file costs is no ratio.
            let values = [
                cost.held.saturating_sub(MIB + declared),
                cost.calls.saturating_sub(2000),
                cost.printed.saturating_sub(4096),
            ];
            for (most, value) in ratios.iter_mut().zip(values) {
                *most = most.max(ratio(value));
            }
        }
        errors.set_len(0).unwrap();
        (number, files) = (number + 1, files + 1);
    }
    nix::unistd::dup2_stdout(screen.as_fd()).unwrap();
    nix::unistd::dup2_stderr(screen_errors.as_fd()).unwrap();
    eprintln!("{files} files, up to number {number}");
    for (words, (cost, ratios)) in largest {
        eprintln!("{words}: {cost:?}, for each byte of the file {ratios:.1?}");
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
