// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other programs' share of the machine.

use std::fs;

/// Processor time so far, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Others {
    all: u64,
    /// Of `all`, not idle.
    busy: u64,
    /// Of `busy`, by our ended children.
    ours: u64,
}

impl Others {
    pub(crate) fn now() -> Option<Others> {
        let machine = fs::read_to_string("/proc/stat").ok()?;
        let program = fs::read_to_string("/proc/self/stat").ok()?;
        Others::parse(&machine, &program)
    }

    /// /proc/stat and /proc/self/stat (proc(5)).
    fn parse(machine: &str, program: &str) -> Option<Others> {
        // user, nice, system, idle, iowait, irq, softirq, steal; the first two include the rest.
        let line = machine.lines().next()?.strip_prefix("cpu ")?;
        let ticks = line
            .split_whitespace()
            .take(8)
            .map(|word| word.parse().ok());
        let ticks: Vec<u64> = ticks.collect::<Option<_>>()?;
        let all = ticks.iter().sum();
        let idle = ticks.get(3)?.checked_add(*ticks.get(4)?)?;
        // A name may hold anything and ends at the last bracket; cutime and cstime are fields 16 and 17.
        let (_, fields) = program.rsplit_once(") ")?;
        let mut children = fields
            .split(' ')
            .skip(13)
            .map(|word| word.parse::<u64>().ok());
        Some(Others {
            all,
            busy: all - idle,
            ours: children.next()??.checked_add(children.next()??)?,
        })
    }

    pub(crate) fn until_now(self) -> Option<f64> {
        self.until(Others::now()?)
    }

    fn until(self, end: Others) -> Option<f64> {
        let all = end.all.checked_sub(self.all).filter(|&all| all > 0)?;
        let busy = end.busy.checked_sub(self.busy)?;
        let ours = end.ours.checked_sub(self.ours)?;
        Some(busy.saturating_sub(ours) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::Others;

    #[test]
    fn other_programs_have_what_is_busy_and_not_ours() {
        let program = |user: u32, system: u32| {
            format!("7 (a) b) c) R 1 7 7 0 -1 4194560 10 20 30 40 500 600 {user} {system} 20 0 1")
        };
        let begin = Others::parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1\n", &program(10, 5));
        let end = Others::parse("cpu  150 10 120 980 20 0 0 20 9 9\n", &program(40, 25));
        assert_eq!(begin.unwrap().until(end.unwrap()), Some(50.0 / 300.0));
        assert_eq!(begin.unwrap().until(begin.unwrap()), None);
        assert_eq!(Others::parse("intr 1", &program(1, 1)), None);
        assert_eq!(Others::parse("cpu  1 2 3 4 5 6 7 8", "7 (a"), None);
    }
}
