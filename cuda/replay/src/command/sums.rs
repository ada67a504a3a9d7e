// SPDX-License-Identifier: MIT OR Apache-2.0
//! `diff --against recorded`: the first differing operation.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use gpureplay_cuda_launch::recording::{Checked, Recording, Run, UNKNOWN_SUM, Writer};
use serde::Serialize;

use crate::command::attempt::{again, opened};
use crate::command::failure::{Failure, Outcome};
use crate::command::jobs::words;
use crate::command::report::{say, say_json};
use crate::command::target::Target;
use crate::weights::Given;
use crate::{Gpu, How, RunSession};

/// What a replay is compared with.
#[derive(Clone, Copy, ValueEnum)]
enum Other {
    /// The recorded run.
    Recorded,
}

/// How a whole run is compared.
#[derive(Args)]
pub(crate) struct Against {
    /// Replay a whole run, and find the first operation after which memory is not as recorded.
    #[arg(long, value_name = "recorded", conflicts_with = "other")]
    against: Option<Other>,
    /// The file of weights, if it does not lie beside the recording.
    #[arg(long, value_name = "FILE.safetensors", requires = "against")]
    weights: Option<PathBuf>,
    /// Which GPU.
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: i32,
    /// Seconds that one operation may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Print one JSON object.
    #[arg(long, requires = "against")]
    json: bool,
}

/// Members are as for other recordings.
#[derive(Serialize)]
struct Report {
    same: bool,
    chains: u32,
    difference: Option<String>,
    job: Option<String>,
    address: Option<String>,
    writer: Option<()>,
    error: Option<String>,
}

const DIFFERS: &str =
    "a replay gives other outputs than recorded, as if a kernel adds in another order each time";

pub(crate) fn keep(
    recording: &Recording,
    number: u32,
    weights: Option<&Path>,
    gpu: i32,
    time_limit: Duration,
) -> Outcome {
    let mut run = recording.run(number)?;
    let gpu = Gpu::open(gpu)?;
    let mut session = opened(gpu, recording, run.clone(), weights, time_limit)?;
    session.execute(How::Graph)?;
    let mut found = Vec::new();
    if session.is_as_recorded() {
        found = session.sums(u32::MAX)?;
    }
    if !session.is_as_recorded() {
        // A run that had no second turn has no other fault.
        let checked = Checked {
            fault: Some(DIFFERS.into()),
            ..Checked::default()
        };
        run.checked.get_or_insert(checked);
        Writer::create(recording.folder())?.replace_run(number, &run)?;
        return Ok(ExitCode::from(1));
    }
    for (found, known) in found.iter_mut().zip(run.sums()) {
        if *found != known {
            *found = UNKNOWN_SUM;
        }
    }
    run.sums = found.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    Writer::create(recording.folder())?.replace_run(number, &run)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn first_difference(run: &Run, found: &[u64]) -> (Option<usize>, usize) {
    let both = run.sums().zip(found).enumerate();
    let mut known = both.filter(|(_, (known, _))| *known != UNKNOWN_SUM);
    let mut compared = 0;
    let first = known.find(|(_, (known, found))| {
        compared += 1;
        known != *found
    });
    (first.map(|(number, _)| number), compared)
}

impl Against {
    pub(crate) fn execute(&self, target: &Target, recording: &Recording) -> Outcome {
        let number = target.whole(recording, "--against recorded")?;
        let run = recording.run(number)?;
        if run.sums.is_empty() {
            return Err(Failure::Usage(format!(
                "run {number} does not say what memory came to after its operations: no replay gave the recorded outputs when it was recorded"
            )));
        }
        let weights = Given::of(recording, &run, self.weights.as_deref())?;
        if weights.as_ref().is_some_and(|given| given.others() > 0) {
            return Err(Failure::Usage(
                "--weights: with others than recorded, nothing is as recorded".into(),
            ));
        }
        let gpu = Gpu::open(self.gpu)?;
        let time_limit = Duration::from_secs(self.timeout);
        let weights = weights.map(Given::bytes);
        let session = RunSession::open(gpu, recording, run.clone(), weights, time_limit);
        let found = session.map_err(again)?.sums(u32::MAX)?;
        let (first, compared) = first_difference(&run, &found);
        // A missing or extra operation has nothing to compare with.
        let counts = run.sums.len() / 8 == found.len();
        let job = first.and_then(|number| Some(words(&run, run.operations.get(number)?)));
        let difference = match first {
            Some(number) => Some(format!(
                "after operation {number} memory is not as recorded{}",
                layer(&run, number)
            )),
            None if !counts => Some("it has another number of operations than recorded".into()),
            None => None,
        };
        let report = Report {
            same: difference.is_none(),
            chains: u32::try_from(compared).unwrap_or(u32::MAX),
            difference,
            job,
            address: None,
            writer: None,
            error: None,
        };
        if self.json {
            say_json(&report)?;
        } else if let Some(difference) = &report.difference {
            say!("{difference}");
            if let Some(job) = &report.job {
                say!("  {job}");
            }
        } else {
            say!("memory is as recorded after each of {compared} operations");
            let others = found.len() - compared;
            if others > 0 {
                say!("  {others} others leave what differs from replay to replay");
            }
        }
        Ok(ExitCode::from(u8::from(!report.same)))
    }
}

fn layer(run: &Run, number: usize) -> String {
    let layers = run.layers();
    let holds = |layer: &&gpureplay_cuda_launch::recording::Range| {
        (layer.first as usize..layer.end as usize).contains(&number)
    };
    match layers.iter().find(holds) {
        Some(layer) => format!(", in layer {}", layer.name),
        None => String::new(),
    }
}
