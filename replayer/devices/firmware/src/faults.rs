// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disturbs a step, repeats it, compares states.

use mali_drive::Verified;
use mali_drive::middleware::{FaultKind, Faulty};
use gpureplay_core::{Gpu, Options, Session, Workspace};

use crate::Linked;
use crate::uart::{number, text};

const KINDS: [FaultKind; 4] = [
    FaultKind::FailedJob,
    FaultKind::Memory,
    FaultKind::LostWrite,
    FaultKind::PowerLoss,
];
/// The fault comes in or around the last one.
const RUNS: u32 = 2;

struct Ended {
    states: u64,
    /// From the last run's first call to one past its last.
    calls: (u64, u64),
    /// Runs that failed and were repeated.
    failed: u32,
}

fn trial<G: Gpu>(
    gpu: &mut G,
    verified: Verified<'_>,
    workspace: &mut Workspace,
    linked: &mut Linked<'_>,
    (kind, at): (FaultKind, u64),
) -> Option<Ended> {
    linked.restart();
    let mut faulty = Faulty::new(gpu, kind, at);
    let mut ended = Ended {
        states: 0,
        calls: (0, 0),
        failed: 0,
    };
    let mut session = Session::new(&mut faulty, verified, workspace, Options::default());
    for _ in 0..RUNS {
        ended.calls.0 = session.gpu().calls();
        let mut done = session.run(linked).is_ok();
        if !done {
            ended.failed = ended.failed.wrapping_add(1);
            linked.lost = true;
            done = session.run(linked).is_ok();
        }
        if !done {
            return None;
        }
        linked.keep();
        ended.calls.1 = session.gpu().calls();
    }
    ended.states = linked.checksum();
    session.close().ok()?;
    Some(ended)
}

/// Disturbs a step at multiples of `stride`.
pub fn trials<G: Gpu>(
    gpu: &mut G,
    verified: Verified<'_>,
    workspace: &mut Workspace,
    linked: &mut Linked<'_>,
    stride: u64,
) {
    let mut run = |fault| trial(gpu, verified, workspace, linked, fault);
    let Some(right) = run((FaultKind::Memory, u64::MAX)) else {
        return text("FAILED without a fault\n");
    };
    let (mut tried, mut failed) = (0u32, 0u32);
    for kind in KINDS {
        let mut at = right.calls.0;
        while at < right.calls.1 {
            let ended = run((kind, at));
            match &ended {
                Some(ended) if ended.states == right.states => {
                    failed = failed.wrapping_add(ended.failed);
                }
                _ => {
                    text("DIFFERS ");
                    text(kind.name());
                    text(" at call ");
                    number(at);
                    return text("\n");
                }
            }
            tried = tried.wrapping_add(1);
            at = at.saturating_add(stride);
        }
    }
    text("faults ");
    number(tried.into());
    text(", calls of a step ");
    number(right.calls.1.wrapping_sub(right.calls.0));
    text(", runs that failed ");
    number(failed.into());
    text(", states equal\nDONE\n");
}
