// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs test programs with a change until one fails.

use std::{
    io::Write,
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use super::{change::Change, reach, tree::Program};
use crate::error::{Error, Result};

const LEAST_PROCESSOR_SECONDS: u64 = 4;
const WAIT_SECONDS: u64 = 300;
/// They run only if quick tests noticed nothing.
const SLOW: [&str; 3] = [
    "limits::bytes_moved_have_a_limit",
    "faults::a_fault_at_every_call_is_survived",
    "soundness::what_verifies_runs_inside_its_own_pages",
];
const ADDRESS_SPACE_KIB: u64 = 8 << 20;
const XCPU: i32 = 24;
const KILL: i32 = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Caught,
    TimedOut,
    Missed,
    /// It needs a build of its own.
    Constant,
}

pub(super) struct Runner {
    /// Quick ones first, with a limit in processor seconds.
    programs: Vec<(Program, u64)>,
    jobs: usize,
}

impl Runner {
    /// Unchanged programs must pass; their times order them.
    pub(super) fn new(programs: Vec<Program>, jobs: Option<usize>) -> Result<Self> {
        let mut timed = Vec::new();
        for program in programs {
            let began = Instant::now();
            if let Err(verdict) = run(&program, 0, &[], 60)? {
                return Err(Error::fell_short(
                    format!("{} without a change ({verdict:?})", program.path.display()),
                    "mend the tests first",
                ));
            }
            timed.push((began.elapsed(), program));
        }
        timed.sort_by_key(|(took, _)| *took);
        let programs = timed
            .into_iter()
            .map(|(took, program)| (program, LEAST_PROCESSOR_SECONDS.max(4 * took.as_secs())))
            .collect();
        let jobs = jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
        Ok(Self { programs, jobs })
    }

    pub(super) fn run(&self, changes: &[&Change]) -> Result<Vec<Verdict>> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(vec![None; changes.len()]);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs)
                .map(|_| {
                    scope.spawn(|| -> Result<()> {
                        loop {
                            let at = next.fetch_add(1, Ordering::Relaxed);
                            let Some(change) = changes.get(at) else {
                                return Ok(());
                            };
                            let verdict = self.judge(change)?;
                            if let Ok(mut results) = results.lock()
                                && let Some(result) = results.get_mut(at)
                            {
                                *result = Some(verdict);
                            }
                            let mut err = std::io::stderr().lock();
                            let _ = writeln!(err, "{verdict:?} {}", change.name);
                        }
                    })
                })
                .collect();
            for worker in workers {
                worker
                    .join()
                    .map_err(|_| Error::Usage("a worker ended".into()))??;
            }
            Ok::<_, Error>(())
        })?;
        let results = results.into_inner().unwrap_or_default();
        Ok(results
            .into_iter()
            .map(|result| result.unwrap_or(Verdict::Missed))
            .collect())
    }

    pub(super) fn alone(programs: Vec<Program>, change: &Change) -> Result<Verdict> {
        let programs = programs.into_iter().map(|program| (program, 60));
        let runner = Self {
            programs: programs.collect(),
            jobs: 1,
        };
        runner.judge(change)
    }

    fn judge(&self, change: &Change) -> Result<Verdict> {
        let reach = reach(&change.package);
        let skipped = SLOW.map(|name| format!("--skip={name}"));
        let mut slow = SLOW.map(str::to_owned).to_vec();
        slow.push("--exact".into());
        for tests in [&skipped[..], &slow] {
            for (program, seconds) in &self.programs {
                if reach.contains(&program.package.as_str())
                    && let Err(verdict) = run(program, change.number, tests, *seconds)?
                {
                    return Ok(verdict);
                }
            }
        }
        Ok(Verdict::Missed)
    }
}

fn run(
    program: &Program,
    number: u32,
    tests: &[String],
    seconds: u64,
) -> Result<std::result::Result<(), Verdict>> {
    // Independent of the machine's load.
    let limits = format!(
        "ulimit -c 0; ulimit -t {seconds}; ulimit -v {ADDRESS_SPACE_KIB}; exec timeout -s KILL {WAIT_SECONDS} \"$0\" -q \"$@\""
    );
    let status = Command::new("sh")
        .args(["-c", &limits])
        .arg(&program.path)
        .args(tests)
        .current_dir(&program.folder)
        .env("GPUREPLAY_MUTATION", number.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(Error::start("sh"))?;
    Ok(match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (_, Some(XCPU | KILL)) => Err(Verdict::TimedOut),
        _ => Err(Verdict::Caught),
    })
}
