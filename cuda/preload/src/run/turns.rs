// SPDX-License-Identifier: MIT OR Apache-2.0
//! First turns are runs; of later ones the second, inputs and outputs are kept.

use std::sync::Mutex;

use gpureplay_cuda_launch::recording::{
    self as recording, Hash, Operation, Run, Turn, Writer, differing, structure,
};

use super::log::{Log, Outcome, Result};
use crate::guard;
use crate::settings::{Record, Region};

struct Known {
    structure: Hash,
    number: u32,
    operations: Vec<Operation>,
    second: Option<Run>,
}

impl Known {
    fn is_complete(&self, settings: &Record) -> bool {
        let second = self.second.as_ref();
        second.is_some_and(|second| second.turns.len() as u64 >= settings.later_turns)
    }
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// Of turns that were found, one that came often enough is the loop's.
pub(super) fn is_complete(settings: &Record) -> bool {
    let known = guard::lock(&KNOWN);
    let mut all = known.iter().map(|known| known.is_complete(settings));
    match settings.run {
        Some(Region::Turn) => all.any(|complete| complete),
        _ => !known.is_empty() && all.all(|complete| complete),
    }
}

pub(super) fn keep(log: Log, settings: &Record) -> Result<String> {
    let told = |error: recording::RecordingError| error.to_string();
    let writer = Writer::sharing(&settings.folder, settings.share.clone()).map_err(told)?;
    let images: Vec<Hash> = log.images.iter().map(|image| image.hash()).collect();
    let inputs: Vec<u64> = log.inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let outputs: Vec<u64> = log.outputs.iter().map(Outcome::size).collect();
    let ports: [&[u64]; 2] = [&inputs, &outputs];
    let structure = structure(&log.kernels, &images, ports, &log.operations);
    let mut known = guard::lock(&KNOWN);
    let Some(known) = known.iter_mut().find(|known| known.structure == structure) else {
        let run = log.run(writer.store(), settings, &[])?;
        let number = writer.add_run(&run).map_err(told)?;
        let mut said = format!(
            "run {number} is recorded: {} launches, {} inputs, {} outputs",
            run.launches(),
            run.inputs.len(),
            run.outputs.len()
        );
        if run.inputs.is_empty() {
            said += "; it takes nothing from the host, so no other inputs can be given: if the program's input comes earlier, record from there (--run=nvtx:NAME, --run=launches=A..B)";
        }
        known.push(Known {
            structure,
            number,
            operations: run.operations,
            second: None,
        });
        return Ok(said);
    };
    let number = known.number;
    if known.is_complete(settings) {
        return Ok(format!("run {number} has all the turns that it needs"));
    }
    let beside = writer.second(number).map_err(told)?;
    let Some(second) = &mut known.second else {
        let run = log.run(beside.store(), settings, &known.operations)?;
        beside.add_run(&run).map_err(told)?;
        known.second = Some(run);
        return Ok(format!("run {number}: a second turn is recorded"));
    };
    let put = |bytes: &[u8]| beside.store().put(bytes).map_err(told);
    let inputs = log.inputs.iter().map(|bytes| put(bytes));
    let outputs = log.outputs.iter().filter_map(|output| match output {
        Outcome::Bytes(bytes) => Some(put(bytes)),
        Outcome::Coming(..) => None,
    });
    let turn = Turn {
        inputs: inputs.collect::<Result<_>>()?,
        outputs: outputs.collect::<Result<_>>()?,
        // Against the second turn, not the first.
        words: differing(&second.operations, &log.operations),
    };
    second.turns.push(turn);
    beside.replace_run(0, second).map_err(told)?;
    let turns = second.turns.len() + 2;
    Ok(format!(
        "run {number}: inputs and outputs of turn {turns} are kept"
    ))
}
