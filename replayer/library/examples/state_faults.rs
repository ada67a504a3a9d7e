// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disturbs each device call of a step in turn, and retries: states must stay those of an undisturbed step.
//!
//!     state_faults recordings/generate-g52 nano 1 forced=recordings/generate-g52/inputs/forced2.npy
//!
//! Arguments: recording, device (as for `gpureplay run --device`), calls between two faults, input values. The
//! full-system tests run it in the guest. Ends with 1 at the first difference.

use std::error::Error;
use std::ops::Range;
use std::process::ExitCode;

use gpureplay_library::device::{Choice, Fault};
use gpureplay_library::{Device, ModelOptions, Recording, Session, Tensor};
use mali_drive::middleware::FaultKind;

const KINDS: [FaultKind; 4] = [
    FaultKind::FailedJob,
    FaultKind::Memory,
    FaultKind::LostWrite,
    FaultKind::PowerLoss,
];
/// Runs of a trial. The fault comes in or near the last: the number of polls varies.
const RUNS: usize = 2;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Trials<'a> {
    recording: Recording,
    device: Choice,
    inputs: &'a [String],
}

struct Ended {
    states: Vec<(String, Tensor)>,
    calls: Range<u64>,
    failed: u32,
}

impl Trials<'_> {
    fn trial(&self, kind: FaultKind, at: u64) -> Result<Ended> {
        let id = self.recording.verified().recording().gpu_id();
        let device = Device::open(&self.device, id, ModelOptions::default())?;
        let device = device.with_fault(Fault::At(kind, at));
        let mut session = Session::on(self.recording.clone(), device);
        for input in self.inputs {
            let (name, file) = input.split_once('=').ok_or("inputs are NAME=FILE")?;
            session.bind_file(name, file)?;
        }
        let mut ended = Ended {
            states: Vec::new(),
            calls: 0..0,
            failed: 0,
        };
        for _ in 0..RUNS {
            let before = session.states()?;
            ended.calls.start = calls(&mut session)?;
            if session.run().is_err() {
                ended.failed += 1;
                if session.states()? != before {
                    return Err("a run that failed changed a state".into());
                }
                session.run()?;
            }
            ended.calls.end = calls(&mut session)?;
        }
        ended.states = session.states()?;
        session.close()?;
        Ok(ended)
    }
}

fn calls(session: &mut Session) -> Result<u64> {
    let fault = session.device().and_then(|device| device.fault());
    Ok(fault.ok_or("a device without a fault")?.0)
}

fn test(arguments: &[String]) -> Result<String> {
    let [path, device, stride, inputs @ ..] = arguments else {
        return Err("usage: state_faults RECORDING DEVICE STRIDE NAME=FILE.npy...".into());
    };
    let stride: usize = stride.parse()?;
    let trials = Trials {
        recording: Recording::open(path)?,
        device: device.parse()?,
        inputs,
    };
    let right = trials.trial(FaultKind::Memory, u64::MAX)?;
    if right.states.is_empty() {
        return Err(format!("{path} has no states").into());
    }
    let (mut tried, mut failed) = (0, 0);
    for kind in KINDS {
        let before = (tried, failed);
        for at in right.calls.clone().step_by(stride.max(1)) {
            let at_fault = |error: Box<dyn Error>| format!("{} at call {at}: {error}", kind.name());
            let ended = trials.trial(kind, at).map_err(at_fault)?;
            if ended.states != right.states {
                return Err(at_fault("a state differs".into()).into());
            }
            tried += 1;
            failed += ended.failed;
        }
        let (tried, failed) = (tried - before.0, failed - before.1);
        eprintln!("{}: {tried} faults, {failed} runs failed", kind.name());
    }
    let count = right.calls.end - right.calls.start;
    Ok(format!(
        "{path} on {device}: {tried} faults at {count} calls of a step, {failed} runs failed, the states are equal"
    ))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match test(&arguments) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("state_faults: {error}");
            ExitCode::FAILURE
        }
    }
}
