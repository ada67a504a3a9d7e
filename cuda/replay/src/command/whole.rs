// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run` of a whole run.

mod info;
mod part;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use crate::{Gpu, How, RunSession, Times};
use clap::Args;
use gpureplay_cuda_launch::recording::{Checked, Hash, Port, Recording, Run};
use serde::Serialize;

use crate::command::attempt::again;
use crate::command::check;
use crate::command::failure::{self, Failure, Outcome, written};
use crate::command::report::{note, say, say_json};
use crate::command::state;
use crate::number::shown;
use crate::weights;
pub(crate) use info::{info, line};
use part::Layers;

/// Inputs and outputs of a whole run.
#[derive(Args)]
pub(crate) struct Whole {
    /// Other bytes for an input of a whole run; FILE alone where it has one input. May be given again.
    #[arg(long, value_name = "NAME=FILE")]
    input: Vec<Given>,
    /// Where to write an output of a whole run; FILE alone where it has one output. May be given again.
    #[arg(long, value_name = "NAME=FILE")]
    output: Vec<Given>,
    /// A number that the program's host computed, for a whole run: an integer, or a number with a point for 32-bit floats. May be
    /// given again.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<Setting>,
    /// The file of weights of a whole run, if not beside the recording; or another one of the same tensors.
    #[arg(long, value_name = "FILE.safetensors")]
    weights: Option<PathBuf>,
    /// Begin a whole run with memory that --state-out wrote.
    #[arg(long, value_name = "FILE.safetensors")]
    state_in: Option<PathBuf>,
    /// Write memory that a whole run leaves: what is not as recorded, for --state-in.
    #[arg(long, value_name = "FILE.safetensors")]
    state_out: Option<PathBuf>,
    /// Do a whole run N times; each continues from the memory that the one before left.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Run a whole run although it does not hold for other inputs.
    #[arg(long)]
    unchecked: bool,
    /// Give the GPU the operations of a whole run one by one; otherwise as one graph.
    #[arg(long)]
    no_graph: bool,
    #[command(flatten)]
    layers: Layers,
}

#[derive(Clone, Debug)]
struct Given(String);

impl FromStr for Given {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl Given {
    fn of(&self, option: &str, ports: &[Port]) -> Result<(usize, PathBuf), Failure> {
        if let Some((name, path)) = self.0.split_once('=')
            && let Some(number) = ports.iter().position(|port| port.name == name)
        {
            return Ok((number, path.into()));
        }
        if ports.len() == 1 && !self.0.contains('=') {
            return Ok((0, PathBuf::from(&self.0)));
        }
        if ports.is_empty() {
            return Err(Failure::Usage(format!(
                "{option} {}: the run has none: in what was recorded the host copies nothing there; record a larger region",
                self.0
            )));
        }
        let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
        Err(Failure::Usage(format!(
            "{option} {}: say NAME=FILE with a name of the run: {}",
            self.0,
            names.join(", ")
        )))
    }
}

#[derive(Clone, Debug)]
struct Setting(String, u32);

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once('=').ok_or("is not NAME=VALUE")?;
        let word = if let Ok(value) = value.parse::<u32>() {
            value
        } else if let Ok(value) = value.parse::<i32>() {
            value.cast_unsigned()
        } else if let Ok(value) = value.parse::<f32>() {
            value.to_bits()
        } else {
            return Err(format!("{value:?} is no number of 32 bits"));
        };
        Ok(Self(name.to_owned(), word))
    }
}

pub(crate) struct Options {
    pub(crate) gpu: i32,
    pub(crate) time_limit: u64,
    pub(crate) repetitions: u32,
    pub(crate) json: bool,
}

/// What a replay of a whole run showed, for `--json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct WholeReport {
    run: u32,
    launches: usize,
    graph: bool,
    /// `exact`, `differs` or `inconclusive`; nothing with other inputs than the recorded ones.
    verdict: Option<&'static str>,
    /// Names of outputs that are not as recorded.
    differing: Vec<String>,
    /// Later turns that were kept, and how many of them this replay reproduced; nothing with other inputs.
    turns: Option<[usize; 2]>,
    /// Whether the run is known to hold for other inputs, or why not.
    checked: String,
    /// Of N runs; nothing if none was timed.
    runs: Option<usize>,
    /// The run in the middle, in microseconds, copies of inputs and outputs included.
    median_us: Option<f64>,
    /// The shortest run, in microseconds.
    least_us: Option<f64>,
}

impl Whole {
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            (!self.input.is_empty(), "--input"),
            (!self.output.is_empty(), "--output"),
            (self.no_graph, "--no-graph"),
            (!self.set.is_empty(), "--set"),
            (self.unchecked, "--unchecked"),
            (self.weights.is_some(), "--weights"),
            (self.state_in.is_some(), "--state-in"),
            (self.state_out.is_some(), "--state-out"),
            (self.repeat > 1, "--repeat"),
        ]
        .into_iter()
        .find_map(|(given, option)| given.then_some(option))
        .or_else(|| self.layers.given())
    }

    fn is_other(&self) -> bool {
        !self.input.is_empty() || !self.set.is_empty() || self.state_in.is_some() || self.repeat > 1
    }

    /// With other inputs than recorded, all numbers must be given.
    fn words(&self, run: &Run) -> Result<Vec<(usize, u32)>, Failure> {
        let mut words = Vec::new();
        for Setting(name, word) in &self.set {
            let number = run.numbers.iter().position(|number| number.name == *name);
            words.push((
                number.ok_or_else(|| {
                    Failure::Usage(format!("--set {name}: the run has no such number"))
                })?,
                *word,
            ));
        }
        if !self.is_other() || self.unchecked {
            return Ok(words);
        }
        if let Some(Checked {
            fault: Some(fault), ..
        }) = &run.checked
        {
            return Err(Failure::Usage(format!(
                "the run does not hold for other inputs: {fault}; --unchecked runs it anyway"
            )));
        }
        for (at, number) in run.numbers.iter().enumerate() {
            if words.iter().all(|(given, _)| *given != at) {
                return Err(Failure::Usage(format!(
                    "{} is a number that the program computes, {} when it was recorded: say --set {}=VALUE, or --unchecked to keep it",
                    number.name,
                    shown(run.number(number, None)),
                    number.name
                )));
            }
        }
        Ok(words)
    }

    pub(crate) fn execute(
        &self,
        recording: &Recording,
        (number, run): (u32, Run),
        options: &Options,
    ) -> Outcome {
        let mut inputs = Vec::new();
        for given in &self.input {
            let (port, path) = given.of("--input", &run.inputs)?;
            inputs.push((port, read(&path, &run.inputs[port])?));
        }
        let outputs = self.output.iter();
        let outputs = outputs.map(|given| given.of("--output", &run.outputs));
        let outputs: Vec<_> = outputs.collect::<Result<_, _>>()?;
        let words = self.words(&run)?;
        let part = self.layers.of(&run)?;
        let how = if self.no_graph {
            How::Launches
        } else {
            How::Graph
        };
        let gpu = Gpu::open_alone(options.gpu, &run)?;
        if gpu.info().capability != run.device.capability {
            note!(
                "recorded on {}, replayed on {}",
                run.device.name,
                gpu.info().name
            );
        }
        let time_limit = Duration::from_secs(options.time_limit);
        let weights = weights::Given::of(recording, &run, self.weights.as_deref())?;
        let others = weights.as_ref().map_or(0, weights::Given::others);
        if others > 0 {
            note!(
                "{others} tensors of the weights are others than recorded; what the program computed from weights before the run is as recorded"
            );
        }
        let weights = weights.map(weights::Given::bytes);
        let mut session =
            RunSession::open(gpu, recording, run, weights, time_limit).map_err(again)?;
        if session.rewritten() > 0 {
            note!("{} pointers to variables rewritten", session.rewritten());
        }
        let recorded = !self.is_other() && others == 0;
        let held = recorded && part.is_none() && session.is_right_without_launches()?;
        for (port, bytes) in &inputs {
            session.set_input(*port, bytes)?;
        }
        for (number, word) in &words {
            session.set_number(*number, *word);
        }
        if let Some(path) = &self.state_in {
            session.set_state(&state::read(path, session.run())?)?;
        }
        if let Some(part) = part {
            let wanted = (&*outputs, self.state_out.as_deref(), options.json);
            return part.execute(&mut session, number, recorded, wanted);
        }
        for _ in 0..self.repeat {
            session.execute(how)?;
        }
        let ports = session.run().outputs.iter().enumerate();
        let differing: Vec<String> = ports
            .filter(|(port, _)| recorded && session.output(*port) != session.recorded_output(*port))
            .map(|(_, port)| port.name.clone())
            .collect();
        write(&session, &outputs, self.state_out.as_deref())?;
        // Before turns change memory.
        let times = match options.repetitions {
            0 => Times::default(),
            runs => session.time(how, runs)?,
        };
        let mut turns = None;
        if recorded && !session.run().turns.is_empty() {
            let kept = session.run().turns.clone();
            if options.repetitions > 0 {
                session.restore()?;
                session.execute(how)?;
            }
            let right = session.reproduces(recording.store(), &kept, how)?;
            turns = Some([kept.len(), right]);
        }
        let verdict = match (recorded, differing.is_empty()) {
            (false, _) => None,
            (true, false) => Some("differs"),
            (true, true) if turns.is_some_and(|[kept, right]| right < kept) => Some("differs"),
            // Memory held the outputs already, and no later turn has others.
            (true, true) if held && !proven(session.run(), turns) => Some("inconclusive"),
            (true, true) => Some("exact"),
        };
        let timed = times.runs() > 0;
        let report = WholeReport {
            run: number,
            launches: session.run().launches(),
            graph: how == How::Graph,
            verdict,
            differing,
            turns,
            checked: check::state(session.run()),
            runs: timed.then(|| times.runs()),
            median_us: timed.then(|| times.median()),
            least_us: timed.then(|| times.least()),
        };
        if options.json {
            say_json(&report)?;
        } else {
            report.print(&session, &times)?;
        }
        Ok(ExitCode::from(u8::from(matches!(
            verdict,
            Some("differs" | "inconclusive")
        ))))
    }
}

fn proven(run: &Run, turns: Option<[usize; 2]>) -> bool {
    let right = turns.map_or(0, |[_, right]| right);
    let recorded: Vec<Hash> = run.outputs.iter().map(|port| port.contents).collect();
    let mut right = run.turns.iter().take(right);
    right.any(|turn| turn.outputs != recorded)
}

impl WholeReport {
    fn print(&self, session: &RunSession, times: &Times) -> Result<(), Failure> {
        let how = if self.graph {
            "as one graph"
        } else {
            "one by one"
        };
        say!("run {}: {} launches, {how}", self.run, self.launches);
        if times.runs() > 0 {
            say!("  {} runs: {times}", times.runs());
        }
        let outputs = session.run().outputs.len();
        match self.verdict {
            None => {
                say!(
                    "  other inputs, weights or memory than recorded: {outputs} outputs, not compared"
                )
            }
            Some("exact") => say!("  {outputs} outputs as recorded, bit for bit"),
            Some("differs") if self.differing.is_empty() => {
                say!("  a later turn is not as recorded");
            }
            Some("inconclusive") => say!(
                "  {outputs} outputs as recorded, but memory held them already: this proves nothing; record a turn after one with another input"
            ),
            Some(_) => say!("  not as recorded: {}", self.differing.join(", ")),
        }
        if let Some([kept, right]) = self.turns {
            say!("  {right} of {kept} later turns as the program's");
        }
        if self.turns.is_none() {
            say!("  {}", self.checked);
        }
        Ok(())
    }
}

fn write(
    session: &RunSession,
    outputs: &[(usize, PathBuf)],
    state: Option<&Path>,
) -> Result<(), Failure> {
    for (port, path) in outputs {
        gpureplay_host::write_atomic(path, session.output(*port)).map_err(written(path))?;
    }
    match state {
        Some(path) => state::write(path, session.run(), &session.state()?),
        None => Ok(()),
    }
}

fn read(path: &Path, port: &Port) -> Result<Vec<u8>, Failure> {
    let found = failure::read(path, port.size)?;
    if found.len() as u64 != port.size {
        return Err(Failure::Usage(format!(
            "{}: has {} bytes; the input {} has {}",
            path.display(),
            found.len(),
            port.name,
            port.size
        )));
    }
    Ok(found)
}
