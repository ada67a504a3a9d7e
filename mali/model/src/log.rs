// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model's messages.

use std::fmt;

/// Message's importance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Software sees a failed job or wrong value.
    Error,
    /// Suspicious or not modelled.
    Warning,
    /// Resets, power, jobs.
    Info,
    /// Every step.
    Debug,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
            Level::Debug => "debug",
        })
    }
}

/// Takes the model's messages.
pub trait Log: Send + Sync {
    /// Least level of interest.
    fn level(&self) -> Level;

    /// Only for levels of interest.
    fn write(&self, level: Level, message: fmt::Arguments<'_>);
}

/// Log that drops everything.
#[derive(Debug, Default)]
pub struct NoLog;

impl Log for NoLog {
    fn level(&self) -> Level {
        Level::Error
    }

    fn write(&self, _: Level, _: fmt::Arguments<'_>) {}
}

macro_rules! log {
    ($log:expr, $level:ident, $($message:tt)*) => {{
        let log: &dyn $crate::log::Log = &*$log;
        if $crate::log::Level::$level <= log.level() {
            log.write($crate::log::Level::$level, format_args!($($message)*));
        }
    }};
}
pub(crate) use log;
