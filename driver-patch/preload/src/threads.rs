// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that sleep change no memory.

use std::fs;

/// The other threads, with how often each was put to sleep. Equal answers: none ran in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asleep(pub(crate) Vec<(u32, u64)>);

impl Asleep {
    /// `None` if another thread runs, or may.
    pub(crate) fn now() -> Option<Self> {
        // SAFETY: always works.
        let own = unsafe { libc::gettid() };
        let own = u32::try_from(own).ok()?;
        let mut threads = Vec::new();
        for entry in fs::read_dir("/proc/self/task").ok()? {
            let thread: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            if thread != own {
                let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
                threads.push((thread, switches(&status)?));
            }
        }
        threads.sort_unstable();
        Some(Self(threads))
    }
}

/// Context switches; `None` if the thread does not sleep.
fn switches(status: &str) -> Option<u64> {
    let mut asleep = false;
    let (mut switches, mut lines) = (0u64, 0);
    for (name, value) in status.lines().filter_map(|line| line.split_once(':')) {
        match name {
            "State" => asleep = value.trim_start().starts_with('S'),
            "voluntary_ctxt_switches" | "nonvoluntary_ctxt_switches" => {
                switches = switches.wrapping_add(value.trim().parse().ok()?);
                lines += 1;
            }
            _ => {}
        }
    }
    (asleep && lines == 2).then_some(switches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_runs_is_not_asleep() {
        let of = |state: &str| {
            format!(
                "Name:\tapp\nState:\t{state}\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n"
            )
        };
        assert_eq!(switches(&of("S (sleeping)")), Some(9));
        assert_eq!(switches(&of("R (running)")), None);
        assert_eq!(switches(&of("D (disk sleep)")), None);
        assert_eq!(switches("State:\tS (sleeping)\n"), None);
    }

    #[test]
    fn a_thread_that_ran_in_between_is_seen() {
        use std::sync::mpsc::channel;
        let (to, from) = channel::<()>();
        let (answers, answer) = channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: always works.
            answers.send(unsafe { libc::gettid() } as u32).unwrap();
            while from.recv().is_ok() {
                answers.send(0).unwrap();
            }
        });
        let id = answer.recv().unwrap();
        let now = || {
            (0..10_000).find_map(|_| {
                let path = format!("/proc/self/task/{id}/status");
                let found = switches(&fs::read_to_string(path).unwrap());
                found.or_else(|| {
                    std::thread::yield_now();
                    None
                })
            })
        };
        let first = now().unwrap();
        assert_eq!(now(), Some(first));
        to.send(()).unwrap();
        answer.recv().unwrap();
        assert_ne!(now().unwrap(), first);
        drop(to);
        thread.join().unwrap();
    }
}
