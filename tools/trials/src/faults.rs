// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every fault at every device call: a typed error or the right answer, a clean GPU, a right next run.

use std::collections::BTreeSet;

use gpureplay_core::{Gpu, Limits, NO_ACTION, Options, Workspace};
use gpureplay_format::layout::TensorEntry;
use gpureplay_format::{Action, Recording, TensorKind};
use mali_drive::Session;
use mali_drive::middleware::{FaultKind, Faulty};
use mali_drive::{Verified, verify};

use crate::rig::{Rig, Values, model};
use crate::soundness::{OVERHEAD_US, is_clean};

/// One kind of fault.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Kind.
    pub kind: FaultKind,
    /// Faults that happened.
    pub injected: u64,
    /// Replays with a typed error.
    pub errors: u64,
    /// Right replays.
    pub right: u64,
    /// Longest from fault to error.
    pub longest_us: u64,
}

/// All faults.
#[derive(Clone, Debug)]
pub struct Summary {
    /// By kind.
    pub rows: Vec<Row>,
    /// Of one replay.
    pub calls: u64,
    /// Actions that reach the device.
    pub actions: usize,
    /// Actions with a reported fault.
    pub reported: usize,
    /// Limit from fault to error.
    pub bound_us: u64,
}

/// Injects faults at every `step`-th call.
///
/// # Errors
/// The first fault that was not survived.
pub fn campaign(
    file: &[u8],
    (kinds, step): (&[FaultKind], usize),
    mut progress: impl FnMut(&Row),
) -> Result<Summary, String> {
    let recording = Recording::parse(file).map_err(|error| format!("{error:?}"))?;
    let verified = verify(&recording, &Limits::DEFAULT).map_err(|error| format!("{error:?}"))?;
    let mut rig = Rig::new(model(recording.gpu_id())).map_err(|error| error.to_string())?;
    let mut trial = Trial {
        verified,
        workspace: Box::new(Workspace::new()),
        expected: Values::new(&verified),
        reported: BTreeSet::new(),
        bound_us: longest_wait_us(&recording) + OVERHEAD_US,
    };
    let mut counter = Faulty::new(&mut rig, FaultKind::ReadOnes, u64::MAX);
    let (result, values) = trial.replay(&mut counter);
    let calls = counter.calls();
    result.map_err(|error| format!("without a fault: {error:?}"))?;
    trial.expected = values;
    let mut rows = Vec::new();
    for &kind in kinds {
        let mut row = Row {
            kind,
            injected: 0,
            errors: 0,
            right: 0,
            longest_us: 0,
        };
        for at in (0..calls).step_by(step.max(1)) {
            let told = |error| format!("{} at call {at}: {error}", kind.name());
            if !trial.inject(&mut rig, kind, at, &mut row).map_err(told)? {
                break;
            }
        }
        progress(&row);
        rows.push(row);
    }
    let segments = recording.segments().iter();
    // Runs continue from memory: no states are given, but read.
    let given = |entry: &TensorEntry, read: bool| {
        entry.kind == TensorKind::Input.code()
            || entry.kind == TensorKind::Output.code()
            || entry.kind == TensorKind::State.code() && read
    };
    let reaching = segments
        .flat_map(|segment| recording.segment_actions(segment).flatten())
        .filter(|action| match action {
            Action::Seek { .. } | Action::Write { .. } => false,
            // No weights given, no intermediate tensors read.
            Action::BindInput { tensor } | Action::BindOutput { tensor } => recording
                .tensors()
                .get(*tensor as usize)
                .is_some_and(|entry| given(entry, matches!(action, Action::BindOutput { .. }))),
            _ => true,
        });
    Ok(Summary {
        rows,
        calls,
        actions: reaching.count(),
        reported: trial.reported.len(),
        bound_us: trial.bound_us,
    })
}

struct Trial<'a> {
    verified: Verified<'a>,
    workspace: Box<Workspace>,
    expected: Values,
    reported: BTreeSet<u32>,
    bound_us: u64,
}

impl Trial<'_> {
    fn replay(
        &mut self,
        device: &mut impl Gpu,
    ) -> (Result<(), gpureplay_core::ReplayError>, Values) {
        let mut values = Values::new(&self.verified);
        let options = Options::default();
        let result = Session::open(
            &mut *device,
            self.verified,
            &mut self.workspace,
            options,
            &mut values,
        )
        .and_then(|mut session| {
            session.run(&mut values)?;
            // Too late to spoil the output, so it may fail.
            let _ = session.finish();
            Ok(())
        });
        (result, values)
    }

    fn inject(
        &mut self,
        rig: &mut Rig,
        kind: FaultKind,
        at: u64,
        row: &mut Row,
    ) -> Result<bool, String> {
        let mut faulty = Faulty::new(&mut *rig, kind, at);
        let (result, values) = self.replay(&mut faulty);
        if !faulty.fired() {
            return Ok(false);
        }
        let time = faulty.now_us() - faulty.fired_us();
        row.injected += 1;
        match result {
            Ok(()) if values == self.expected => row.right += 1,
            Ok(()) => return Err("a wrong answer without an error".into()),
            Err(error) => {
                row.errors += 1;
                row.longest_us = row.longest_us.max(time);
                if error.action != NO_ACTION {
                    self.reported.insert(error.action);
                }
                if time > self.bound_us {
                    return Err(format!(
                        "{error:?} after {time} µs, the bound is {} µs",
                        self.bound_us
                    ));
                }
            }
        }
        // Without reset a GPU keeps its pages.
        if kind != FaultKind::NoReset {
            is_clean(rig)?;
        }
        let (again, values) = self.replay(rig);
        if again.is_err() || values != self.expected {
            return Err(format!("the next run is not bit-exact: {again:?}"));
        }
        is_clean(rig)?;
        Ok(true)
    }
}

fn longest_wait_us(recording: &Recording<'_>) -> u64 {
    let segments = recording.segments().iter();
    let actions = segments.flat_map(|segment| recording.segment_actions(segment).flatten());
    let waits = actions.map(|action| match action {
        Action::Submit { timeout_us, .. } => timeout_us,
        _ => 0,
    });
    waits.max().unwrap_or(0).into()
}
