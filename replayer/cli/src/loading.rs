// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a recording is read and verified, beside reading its file alone.

use std::path::Path;
use std::time::Instant;

use gpureplay_library::Files;
use serde::Serialize;

use crate::Result;
use crate::failure::Failure;

/// Both are done this often, in turns; what other work on the machine adds is not in the fastest.
const ROUNDS: usize = 20;

/// Fastest of some rounds, in seconds; the file is in the page cache.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Loading {
    /// The file into memory.
    pub(crate) read_seconds: f64,
    /// The file into memory, its checksums and every rule.
    pub(crate) load_seconds: f64,
}

impl Loading {
    /// Reads and loads a recording, in turns.
    ///
    /// # Errors
    /// The recording cannot be read, or is refused.
    pub(crate) fn measure(file: &Path) -> Result<Self> {
        let mut fastest = Self {
            read_seconds: f64::INFINITY,
            load_seconds: f64::INFINITY,
        };
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let bytes = std::fs::read(file)
                .map_err(|error| Failure::Recording(format!("{}: {error}", file.display())))?;
            let taken = started.elapsed().as_secs_f64();
            drop(bytes);
            fastest.read_seconds = fastest.read_seconds.min(taken);
            let started = Instant::now();
            let files = Files::read(file)?;
            files.verify()?;
            let taken = started.elapsed().as_secs_f64();
            fastest.load_seconds = fastest.load_seconds.min(taken);
        }
        Ok(fastest)
    }

    /// Speed of loading as a part of the speed of reading.
    pub(crate) fn speed(&self) -> f64 {
        self.read_seconds / self.load_seconds
    }
}
