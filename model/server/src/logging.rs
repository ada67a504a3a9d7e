// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs: messages, and register accesses.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use mali_model::{Level, Log, register_name};

pub(crate) struct Messages {
    level: Level,
    start: Instant,
    output: Mutex<Box<dyn Write + Send>>,
}

impl Messages {
    pub(crate) fn new(path: Option<&Path>, level: Level) -> io::Result<Messages> {
        let output: Box<dyn Write + Send> = match path {
            Some(path) => Box::new(File::create(path)?),
            None => Box::new(io::stderr()),
        };
        Ok(Messages {
            level,
            start: Instant::now(),
            output: Mutex::new(output),
        })
    }
}

impl Log for Messages {
    fn level(&self) -> Level {
        self.level
    }

    fn write(&self, level: Level, message: fmt::Arguments<'_>) {
        if level > self.level {
            return;
        }
        let time = self.start.elapsed().as_secs_f64();
        let line = format!("{time:12.6} {level:7} {message}\n");
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // Must not end a guest.
        let _ = output.write_all(line.as_bytes());
    }
}

/// One line each: `W 0x0030 0x00000001 GPU_CMD`.
pub(crate) struct RegisterLog {
    file: File,
}

impl RegisterLog {
    pub(crate) fn new(path: &Path) -> io::Result<RegisterLog> {
        Ok(RegisterLog {
            file: File::create(path)?,
        })
    }

    /// At once: a killed server leaves a whole log.
    pub(crate) fn access(&mut self, direction: char, offset: u32, value: u32) {
        let name = register_name(offset);
        let name = name.as_deref().unwrap_or("-");
        let line = format!("{direction} {offset:#06x} {value:#010x} {name}\n");
        let _ = self.file.write_all(line.as_bytes());
    }
}
