// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the model says what it noticed, and who watches its jobs.

use std::fmt;
use std::time::Duration;

use mali_facts::registers::JobStatus;
use mali_isa::Identity;
use mali_shader::probe::Analyser;
use mali_shader::{Access, Dispatch, Statistics};

/// How important a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A fault: software will see a failed job or a wrong value.
    Error,
    /// Something that hardware would not mind but that is suspicious or not modelled.
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
    /// The least important level that is of interest.
    fn level(&self) -> Level;

    /// Takes one message; called only for levels of interest.
    fn write(&self, level: Level, message: fmt::Arguments<'_>);
}

/// Forgets everything.
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

/// One job that ended, for tracing.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Job slot it ran on.
    pub slot: u32,
    /// Address space it ran in.
    pub address_space: u32,
    /// Its descriptor.
    pub address: u64,
    /// Its type's name: `COMPUTE`.
    pub kind: &'static str,
    /// How it ended.
    pub status: JobStatus,
    /// Time on the host.
    pub duration: Duration,
    /// What a compute job did, if its descriptors make sense.
    pub compute: Option<ComputeReport>,
}

/// What a compute job did.
#[derive(Clone, Debug)]
pub struct ComputeReport {
    /// Address of the shader.
    pub shader: u64,
    /// Threads of a work group, by dimension.
    pub workgroup_size: [u32; 3],
    /// Work groups, by dimension.
    pub workgroup_count: [u32; 3],
    /// What the shader's code is, if an observer asked for it and the code can be read and decoded.
    pub kernel: Option<Identity>,
    /// Counts from the shader cores; `None` for a job that failed.
    pub statistics: Option<Statistics>,
}

/// Watches jobs as they end.
pub trait Observer: Send + Sync {
    /// A job ended.
    fn job(&self, report: &JobReport);

    /// Whether reports should say what each kernel's code is, which costs time for every job.
    fn wants_kernels(&self) -> bool {
        false
    }

    /// Whether [`Observer::page`] is to be called, which costs time.
    fn wants_pages(&self) -> bool {
        false
    }

    /// The running job reached the page of this address. Each of its threads says so at least once for each page and kind of
    /// access, before [`Observer::job`]; the job's own descriptors are among them.
    fn page(&self, va: u64, access: Access) {
        let _ = (va, access);
    }

    /// A compute job is about to run: who looks into its shader, if somebody does. [`Observer::job`] follows when it has ended.
    fn analyser(&self, address: u64, dispatch: &Dispatch) -> Option<Box<dyn Analyser>> {
        let _ = (address, dispatch);
        None
    }

    /// Memory got bytes that no shader stored: from the host, or from the job manager (a status, the value of a write-value job).
    fn wrote(&self, va: u64, bytes: u64) {
        let _ = (va, bytes);
    }
}
