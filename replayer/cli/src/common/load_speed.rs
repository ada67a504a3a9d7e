// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed of loading, compared with reading the file.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use gpureplay_host::statistics::Sorted;
use gpureplay_library::{Files, shown};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::Result;
use crate::common::failure::Failure;

const MOST_ROUNDS: usize = 200;
const ENOUGH: Duration = Duration::from_secs(3);

/// Files stay loaded, so that each round gets new memory: half of what reading costs is the kernel finding it. This
/// much ends the measurement.
const KEPT: usize = 64 << 20;
const LEAST_ROUNDS: usize = 3;
/// The C library's allocator returns larger freed buffers to the kernel (`M_MMAP_THRESHOLD`).
const ALWAYS_NEW: usize = 32 << 20;

/// Medians of some rounds, in seconds of this thread's CPU time; the file is in the page cache. Other work on the machine is not counted.
/// Not the fastest: a virtual machine's kernel takes time that the host gave to others off such clocks, by an estimate.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Loading {
    /// The file into memory.
    pub(crate) read_seconds: f64,
    /// The file into memory, its checksums and every rule.
    pub(crate) load_seconds: f64,
}

impl Loading {
    pub(crate) fn measure(file: &Path) -> Result<Self> {
        let (mut reads, mut loads) = (Vec::new(), Vec::new());
        let begun = Instant::now();
        let (mut kept, mut kept_bytes) = (Vec::new(), 0);
        for round in 0..MOST_ROUNDS {
            if round >= LEAST_ROUNDS && (begun.elapsed() > ENOUGH || kept_bytes > KEPT) {
                break;
            }
            let started = thread_cpu_time()?;
            read_into_new_memory(file)
                .map_err(|error| Failure::Recording(format!("{}: {error}", shown(file))))?;
            reads.push((thread_cpu_time()? - started).as_secs_f64());
            let started = thread_cpu_time()?;
            let files = Files::read(file)?;
            files.verify(&files.view()?)?;
            let taken = (thread_cpu_time()? - started).as_secs_f64();
            loads.push(taken);
            kept_bytes += files.bytes.len();
            let reused = files.bytes.len() <= ALWAYS_NEW;
            kept.extend(reused.then_some(files.bytes));
        }
        Ok(Self {
            read_seconds: median(reads),
            load_seconds: median(loads),
        })
    }

    pub(crate) fn speed(&self) -> f64 {
        self.read_seconds / self.load_seconds
    }
}

fn read_into_new_memory(path: &Path) -> std::io::Result<usize> {
    let mut file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
    // Only written pages become memory.
    let mut bytes = Vec::with_capacity(length.saturating_add(1).max(ALWAYS_NEW + 1));
    file.read_to_end(&mut bytes)
}

fn median(seconds: Vec<f64>) -> f64 {
    Sorted::new(seconds).median().unwrap_or_default()
}

fn thread_cpu_time() -> Result<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map(Duration::from)
        .map_err(|error| Failure::Device(format!("the thread's clock: {error}")))
}
