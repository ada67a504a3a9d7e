// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hostile client, and OP-TEE's own tests.

use std::collections::BTreeSet;

use super::{
    rig::{DIGIT, PROBABILITIES, Rig, Share, failed, npy},
    values::pack_recording,
};
use crate::error::Result;

const SECONDS: u32 = 20;
const SECONDS_FULL: u32 = 600;
/// Equal seeds make equal calls, apart from what the other thread changes.
const SEED: u64 = 1;
const XTEST_SAMPLE: &str = "1001 1004 1005 1006";

pub(super) fn hostile(rig: &Rig<'_>) -> Result<String> {
    let share = Share::new()?;
    let seconds = if rig.full { SECONDS_FULL } else { SECONDS };
    let digits = pack_recording(rig, &share, "digits")?;
    share.write("three.bin", &npy(&digits.join("inputs/3.npy"))?)?;
    let script = format!(
        "set -e; cd /share\ngpureplay_tee_hostile digits.pack {seconds} {SEED}\n\
         gpureplay_tee digits.pack -i input:{DIGIT}=three.bin -o probabilities:{PROBABILITIES}=three.out > /dev/null\n\
         gpureplay_tee_memory\n"
    );
    let text = rig.clean(&share, &script)?;
    if share.read("three.out")? != npy(&digits.join("expected/3.npy"))? {
        return Err("a wrong answer afterwards".into());
    }
    let (counts, left) = text.trim().rsplit_once('\n').unwrap_or(("", text.trim()));
    if left != super::leftovers::NOTHING {
        return Err(format!("it left something: {left}").into());
    }
    Ok(format!("{seconds} s, {}", counts.replace('\n', "; ")))
}

/// Part of `regression` uses servers over loopback.
pub(super) fn xtest(rig: &Rig<'_>) -> Result<String> {
    let share = Share::new()?;
    let which = if rig.full {
        "-t regression -l 0"
    } else {
        XTEST_SAMPLE
    };
    let script = format!(
        "busybox ifconfig lo 127.0.0.1 up; xtest {which} > /share/xtest.log 2>&1; echo $? > /share/status; tail -n 12 /share/xtest.log"
    );
    // Applications panic on purpose: messages are no failure.
    let outcome = rig.script(&share, &script)?;
    let log = share.text("xtest.log")?;
    if outcome.clean().is_err() {
        return Err(format!("{}; last lines: {}", failed(&outcome), last(&log)).into());
    }
    let counts: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(" of which ") || line.ends_with("were skipped"))
        .collect();
    let wrong = wrong(&log);
    let passed = counts
        .iter()
        .any(|line| line.ends_with("test cases of which 0 failed"));
    match passed && wrong.is_empty() {
        true => Ok(counts.join(", ")),
        false => Err(format!(
            "{}; failed: {wrong:?}; last lines: {}",
            counts.join(", "),
            last(&log)
        )
        .into()),
    }
}

fn wrong(log: &str) -> BTreeSet<&str> {
    let failed = log.lines().filter_map(|line| {
        let name = line.trim_start().strip_suffix(" FAILED")?;
        name.starts_with("regression_").then_some(name)
    });
    failed.collect()
}

fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().rev().take(12).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_cases_are_named() {
        let log = "  regression_1004 FAILED first error at regression_1000.c:1\n  regression_1005 OK\n  regression_1006 FAILED\n";
        assert_eq!(wrong(log), BTreeSet::from(["regression_1006"]));
    }
}
