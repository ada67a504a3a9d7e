// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fails a command's device calls by ptrace.
//!
//! Calls are requests of DRM, its fences or kbase, and shared file mappings. A failing call is made with no file,
//! so the driver never sees it, and gets a chosen error.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::process::{Command, Stdio};

use nix::libc::{SYS_ioctl, SYS_mmap, SYS_write, c_long, user_regs_struct};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::sweep::{Event, Sweep};

const NO_FILE: u64 = -1_i64 as u64;
/// Request types, bits 15:8: DRM, its fences, kbase.
const TYPES: [u8; 3] = [b'd', b'>', 0x80];
const SHARED: u64 = 1;
/// Exit status of a Rust panic.
const PANICKED: i32 = 101;
const SIGNALLED: i32 = 128;
/// Waits for a line: tracing starts before the command.
const SHELL: &str = r#"read -r go; exec "$@""#;

struct Call(user_regs_struct);

#[cfg(target_arch = "aarch64")]
impl Call {
    fn number(&self) -> c_long {
        self.0.regs[8] as c_long
    }

    fn argument(&mut self, at: usize) -> &mut u64 {
        &mut self.0.regs[at]
    }

    fn result(&mut self) -> &mut u64 {
        &mut self.0.regs[0]
    }
}

#[cfg(target_arch = "x86_64")]
impl Call {
    fn number(&self) -> c_long {
        self.0.orig_rax as c_long
    }

    fn argument(&mut self, at: usize) -> &mut u64 {
        let all = &mut self.0;
        match at {
            0 => &mut all.rdi,
            1 => &mut all.rsi,
            2 => &mut all.rdx,
            3 => &mut all.r10,
            4 => &mut all.r8,
            _ => &mut all.r9,
        }
    }

    fn result(&mut self) -> &mut u64 {
        &mut self.0.rax
    }
}

impl Call {
    fn device(&mut self) -> Option<(usize, String)> {
        let number = self.number();
        if number == SYS_ioctl {
            let request = *self.argument(1);
            let named = TYPES.contains(&((request >> 8) as u8));
            return named.then(|| (0, format!("request {:#04x}", request & 0xff)));
        }
        let shared = *self.argument(3) & SHARED != 0 && *self.argument(4) as i32 >= 0;
        (number == SYS_mmap && shared).then(|| (4, "mapping".into()))
    }

    fn said(&mut self) -> Option<Event> {
        match (self.number() == SYS_write, *self.argument(0)) {
            (true, 1) => Some(Event::Right),
            (true, 2) => Some(Event::Error),
            _ => None,
        }
    }
}

struct Outcome {
    failed: Vec<String>,
    status: i32,
    said: String,
}

fn run(
    command: &[String],
    errno: i32,
    mut fails: impl FnMut(Event) -> Result<bool, String>,
) -> Result<Outcome, Box<dyn Error>> {
    let mut child = Command::new("sh")
        .args(["-c", SHELL, "sh"])
        .args(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD | ptrace::Options::PTRACE_O_EXITKILL;
    ptrace::seize(pid, options)?;
    ptrace::interrupt(pid)?;
    waitpid(pid, None)?;
    ptrace::syscall(pid, None)?;
    child.stdin.take().ok_or("no input")?.write_all(b"go\n")?;
    let errors = child.stderr.take().ok_or("no errors")?;
    let said = std::thread::spawn(move || {
        let mut text = String::new();
        let mut errors = errors;
        errors.read_to_string(&mut text).map(|_| text)
    });
    let (mut entering, mut failing, mut failed) = (true, false, Vec::new());
    let status = loop {
        let mut signal: Option<Signal> = None;
        match waitpid(pid, None)? {
            WaitStatus::PtraceSyscall(_) => {
                let mut call = Call(ptrace::getregs(pid)?);
                if std::mem::take(&mut failing) {
                    *call.result() = i64::from(-errno) as u64;
                    ptrace::setregs(pid, call.0)?;
                } else if entering && let Some((file, name)) = call.device() {
                    if fails(Event::Call)? {
                        *call.argument(file) = NO_FILE;
                        ptrace::setregs(pid, call.0)?;
                        failing = true;
                        failed.push(name);
                    }
                } else if entering && let Some(event) = call.said() {
                    fails(event)?;
                }
                entering = !entering;
            }
            WaitStatus::Stopped(_, with) => signal = Some(with),
            WaitStatus::Exited(_, status) => break status,
            WaitStatus::Signaled(_, with, _) => break SIGNALLED + with as i32,
            _ => {}
        }
        ptrace::syscall(pid, signal)?;
    };
    let said = said.join().map_err(|_| "its errors were not read")??;
    Ok(Outcome {
        failed,
        status,
        said,
    })
}

fn summary(tried: usize, quiet: usize, errors: BTreeMap<String, Vec<String>>) -> String {
    let mut text = format!("{tried} calls failed one by one, {quiet} times without a word");
    for (error, mut names) in errors {
        let times = names.len();
        names.sort();
        names.dedup();
        let _ = write!(text, "\n  {times} times ({}): {error}", names.join(", "));
    }
    text
}

/// Every `stride`-th call, one per run; counts silent runs, lists errors by call.
///
/// # Errors
/// Ended by a signal, or badly without a word.
pub(crate) fn test(
    (stride, errno): (u32, i32),
    command: &[String],
) -> Result<String, Box<dyn Error>> {
    let (mut tried, mut well) = (0, 0);
    let mut errors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for nth in (0..).step_by(stride.max(1) as usize) {
        let mut calls = 0;
        let outcome = run(command, errno, |event| {
            let fails = event == Event::Call && calls == nth;
            calls += u32::from(event == Event::Call);
            Ok(fails)
        })?;
        let last = outcome.said.trim().lines().last().unwrap_or_default();
        let Some(name) = outcome.failed.into_iter().next() else {
            if outcome.status != 0 || tried == 0 {
                return Err(format!("without a fault: {} {}", outcome.status, outcome.said).into());
            }
            break;
        };
        tried += 1;
        let known = match outcome.status {
            0 => true,
            PANICKED | SIGNALLED.. => false,
            _ => !last.is_empty(),
        };
        if !known {
            let (status, said) = (outcome.status, outcome.said);
            return Err(format!("call {nth}, {name}: ended with {status}: {said}").into());
        }
        match last {
            "" => well += 1,
            error => errors.entry(error.into()).or_default().push(name),
        }
    }
    Ok(summary(tried, well, errors))
}

/// Every `stride`-th call of a run, and of the run after an error, in one process.
///
/// # Errors
/// Ended badly, or an error without a failed call.
pub(crate) fn sweep(
    (stride, errno): (u32, i32),
    command: &[String],
) -> Result<String, Box<dyn Error>> {
    let mut sweep = Sweep::new(stride);
    let outcome = run(command, errno, |event| sweep.fails(event))?;
    if outcome.status != 0 || !sweep.ended() {
        return Err(format!("ended with {}: {}", outcome.status, outcome.said).into());
    }
    let mut errors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let told = sweep.told().iter().zip(outcome.said.lines());
    for (&nth, error) in told {
        let name = outcome.failed.get(nth).cloned().unwrap_or_default();
        errors.entry(error.into()).or_default().push(name);
    }
    let quiet = outcome.failed.len() - sweep.told().len();
    Ok(summary(outcome.failed.len(), quiet, errors))
}
