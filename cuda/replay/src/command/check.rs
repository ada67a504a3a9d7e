// SPDX-License-Identifier: MIT OR Apache-2.0
//! `check`: whether a whole run holds for other turns.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use crate::{Crossing, Gpu, Held, How, RunSession, cross};
use clap::Args;
use gpureplay_cuda_launch::recording::{
    Checked, Hash, Number, Operation, Recording, Run, Store, Turn, Writer,
};

use crate::command::attempt::{again, this_program};
use crate::command::failure::{Failure, Outcome, file};
use crate::command::report::{note, say};
use crate::command::target::Target;
use crate::command::trim::trim;
use crate::number::shown;

/// Compare a whole run with later turns on the GPU
///
/// The turns were recorded with it. `record --run` does so at its end.
#[derive(Args)]
pub(crate) struct Check {
    /// The whole run, DIR#runK; DIR where it holds one.
    #[arg(value_name = "DIR")]
    target: Target,
    /// Which GPU.
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: i32,
    /// Seconds that one replay may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Compare, and leave the run's own replay to another process.
    #[arg(long, hide = true)]
    compare: bool,
    /// Leave out memory that the run writes before it reads it.
    #[arg(long, hide = true, conflicts_with = "compare")]
    trim: bool,
    /// Keep what memory comes to after each operation, or forget what another process says otherwise.
    #[arg(long, hide = true, conflicts_with_all = ["compare", "trim"])]
    sums: bool,
    /// The file of the run's weights, if it does not lie beside the recording.
    #[arg(long, value_name = "FILE.safetensors")]
    weights: Option<PathBuf>,
}

const PENDING: &str = "its own replay has not ended";

/// Checks runs in other processes: failures end nothing here.
pub(crate) fn after_recording(folder: &Path, weights: Option<&Path>) {
    let Ok(recording) = Recording::open(folder) else {
        return;
    };
    for number in recording.runs().unwrap_or_default() {
        let mut target = folder.as_os_str().to_owned();
        target.push(format!("#run{number}"));
        let ended = |words: &[&str]| {
            let words = words.iter().map(OsStr::new);
            let mut check = itself(words.chain([&*target])).ok()?;
            check.args(of_weights(weights));
            let status = check.stdout(Stdio::from(std::io::stderr())).status();
            status.ok()?.code()
        };
        if matches!(recording.second(number), Ok(Some(_)))
            && !matches!(ended(&["check"]), Some(0 | 1))
        {
            note!("run {number} was not compared with its second turn");
        }
        // Twice: sums that differ between two processes are forgotten, and no error.
        let kept = [(); 2].map(|()| ended(&["check", "--sums"]));
        if kept.contains(&Some(1)) {
            note!("run {number}: a replay gives other outputs than recorded");
        } else if kept != [Some(0); 2] {
            note!("run {number}: what memory comes to after each operation is not known");
        }
    }
}

fn of_weights(weights: Option<&Path>) -> Vec<&OsStr> {
    let words = weights.map(|path| [OsStr::new("--weights"), path.as_os_str()]);
    words.into_iter().flatten().collect()
}

fn itself<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> Result<Command, Failure> {
    let program = this_program()?;
    let name = program.file_name().unwrap_or_default();
    let alone = name.to_string_lossy().starts_with("gpureplay-cuda");
    let mut command = Command::new(&program);
    command.args((!alone).then_some("cuda")).args(words);
    Ok(command)
}

impl Check {
    pub(crate) fn execute(&self) -> Outcome {
        if self.compare {
            return self.compare();
        }
        let recording = self.target.recording()?;
        let number = self.target.whole(&recording, "check")?;
        let time_limit = Duration::from_secs(self.timeout);
        if self.sums {
            let weights = self.weights.as_deref();
            return crate::command::sums::keep(&recording, number, weights, self.gpu, time_limit);
        }
        if self.trim {
            let weights = self.weights.as_deref();
            return trim(&self.target.folder, number, weights, self.gpu, time_limit)
                .map(|()| ExitCode::SUCCESS);
        }
        let child = |words: &[&str]| {
            let mut target = self.target.folder.as_os_str().to_owned();
            target.push(format!("#run{number}"));
            let mut child = itself(words.iter().map(OsStr::new).chain([target.as_os_str()]))?;
            child.args(["--gpu", &self.gpu.to_string()]);
            child.args(["--timeout", &self.timeout.to_string()]);
            child.args(of_weights(self.weights.as_deref()));
            Ok::<_, Failure>(child)
        };
        let failed = |error| file(Path::new("/proc/self/exe"))(error);
        let compared = child(&["check", "--compare"])?.status().map_err(failed)?;
        if !compared.success() {
            let code = compared.code().and_then(|code| u8::try_from(code).ok());
            return Ok(ExitCode::from(code.unwrap_or(5)));
        }
        let mut run = recording.run(number)?;
        if let Some(checked) = &mut run.checked
            && checked.fault.as_deref() == Some(PENDING)
        {
            // A process has one run in memory.
            let replayed = child(&["run", "--json"])?.stderr(Stdio::inherit()).output();
            let replayed = replayed.map_err(failed)?.stdout;
            checked.fault = fault(&replayed, checked.others).map(str::to_owned);
            Writer::create(&self.target.folder)?.replace_run(number, &run)?;
        }
        say!("run {number}: {}", state(&run));
        let others = run.checked.as_ref().map_or(0, |checked| checked.others);
        let holds = run.checked.is_some_and(|checked| checked.fault.is_none());
        if holds {
            let whole = recording.run(number)?;
            let trimmed = child(&["check", "--trim"])?.status().map_err(failed)?;
            let replayed = child(&["run", "--json"])?.stderr(Stdio::inherit()).output();
            let replayed = replayed.map_err(failed)?.stdout;
            if !trimmed.success() || fault(&replayed, others).is_some() {
                note!("run {number}: images and memory are kept whole");
                Writer::create(&self.target.folder)?.replace_run(number, &whole)?;
            }
            recording.sweep()?;
        }
        Ok(ExitCode::from(u8::from(!holds)))
    }

    fn compare(&self) -> Outcome {
        let recording = self.target.recording()?;
        let number = self.target.whole(&recording, "check")?;
        let mut run = recording.run(number)?;
        let Some(beside) = recording.second(number)? else {
            return Err(Failure::Usage(format!(
                "run {number} has no second turn that it was not compared with; record two regions of the same work"
            )));
        };
        let second = beside.run(0)?;
        if run.structure() != second.structure() {
            return Err(Failure::Usage(format!(
                "run {number}: its second turn is no turn of the same work"
            )));
        }
        let gpu = Gpu::open_alone(self.gpu, &second)?;
        let time_limit = Duration::from_secs(self.timeout);
        let mut session =
            RunSession::open(gpu, &beside, second.clone(), None, time_limit).map_err(again)?;
        let crossing = cross(&mut session, &run.operations)?;
        let mut checked = Checked::default();
        match &crossing {
            None => {
                checked.fault = Some("the second turn does not repeat: a replay of it gives other outputs than the program, or others each time".into());
            }
            Some(crossing) => {
                let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
                checked.words = count(crossing.words);
                checked.addresses = count(crossing.addresses);
                checked.fault = crossing.slots.first().map(|slot| {
                    format!(
                        "outputs depend on an address that the program chooses: {}",
                        place(&run, slot)
                    )
                });
            }
        }
        if let (Some(crossing), None) = (&crossing, &checked.fault) {
            let numbers = crossing.numbers.iter().enumerate();
            let numbers = numbers.map(|(number, held)| Number {
                name: format!("host{number}"),
                places: held.places.clone(),
            });
            run.numbers = numbers.collect();
            session.adopt(run.operations.clone(), run.numbers.clone())?;
            let turns = turns(&run, &second);
            let right = session.reproduces(beside.store(), &turns, How::Graph)?;
            if right < turns.len() {
                checked.fault = Some(format!("turn {} is not reproduced", right + 2));
            } else {
                run.turns = turns;
                checked.fault = Some(PENDING.into());
            }
            let recorded: Vec<Hash> = run.inputs.iter().map(|port| port.contents).collect();
            let others = run.turns.iter().filter(|turn| turn.inputs != recorded);
            checked.others = u32::try_from(others.count()).unwrap_or(u32::MAX);
        }
        run.checked = Some(checked);
        let writer = Writer::create(&self.target.folder)?;
        keep(&run, beside.store(), writer.store())?;
        writer.replace_run(number, &run)?;
        recording.remove_second(number)?;
        if let Some(crossing) = &crossing {
            report(number, &run, crossing)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `others` turns had other inputs.
fn fault(replayed: &[u8], others: u32) -> Option<&'static str> {
    let report: serde_json::Value = serde_json::from_slice(replayed).unwrap_or_default();
    let outputs_differ = report["differing"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    match report["verdict"].as_str() {
        Some("exact") => None,
        // The recorded inputs are no evidence.
        Some("inconclusive") if others == 0 => None,
        Some("inconclusive") => Some(
            "memory held its outputs before it began, and other inputs give no others: a replay shows nothing",
        ),
        Some("differs") if outputs_differ => {
            Some("a replay of it gives other outputs than the program")
        }
        Some("differs") => Some("from its own memory, it does not reproduce the later turns"),
        _ => Some("a replay of it fails"),
    }
}

fn turns(run: &Run, second: &Run) -> Vec<Turn> {
    let ports = |ports: &[gpureplay_cuda_launch::recording::Port]| {
        ports.iter().map(|port| port.contents).collect::<Vec<_>>()
    };
    let one = Turn {
        inputs: ports(&second.inputs),
        outputs: ports(&second.outputs),
        words: Vec::new(),
    };
    let all = std::iter::once(one).chain(second.turns.iter().cloned());
    all.map(|turn| {
        let words = run.numbers.iter().map(|number| {
            let [operation, offset] = number.places[0];
            [operation, offset, second.number(number, Some(&turn))]
        });
        Turn {
            words: words.collect(),
            ..turn
        }
    })
    .collect()
}

fn keep(run: &Run, from: &Store, to: &Store) -> Result<(), Failure> {
    for turn in &run.turns {
        let inputs = turn.inputs.iter().zip(&run.inputs);
        for (hash, port) in inputs.chain(turn.outputs.iter().zip(&run.outputs)) {
            to.put(&from.get(*hash, port.size)?)?;
        }
    }
    Ok(())
}

fn place(run: &Run, held: &Held) -> String {
    let [operation, offset] = held.places.first().copied().unwrap_or_default();
    let what = match run.operations.get(operation as usize) {
        Some(Operation::Launch { kernel, .. }) => run
            .kernels
            .get(*kernel as usize)
            .map_or_else(String::new, |kernel| {
                format!("{}, byte {offset} of its parameters", kernel.name)
            }),
        _ => format!("operation {operation}, a copy or memset"),
    };
    let shown = |value: &u64| match u32::try_from(*value) {
        Ok(word) => shown(word),
        Err(_) => format!("{value:#x}"),
    };
    let values: Vec<String> = held.values.iter().map(shown).collect();
    format!("{what}: {}", values.join(", then "))
}

fn report(number: u32, run: &Run, crossing: &Crossing) -> Result<(), Failure> {
    say!(
        "run {number}: a second turn differs in {} words and {} addresses; {} replays",
        crossing.words,
        crossing.addresses,
        crossing.trials
    );
    for (name, held) in run.numbers.iter().zip(&crossing.numbers) {
        say!("  {}: {}", name.name, place(run, held));
    }
    if crossing.noisy > 0 {
        say!(
            "  {} pieces of memory differ from replay to replay, and were not compared",
            crossing.noisy
        );
    }
    Ok(())
}

fn unvaried(run: &Run) -> String {
    let inputs = run.inputs.iter().enumerate();
    let same = inputs.filter(|(at, port)| {
        let mut turns = run.turns.iter();
        turns.all(|turn| turn.inputs.get(*at) == Some(&port.contents))
    });
    let names: Vec<&str> = same.map(|(_, port)| &*port.name).collect();
    match names.as_slice() {
        [] => String::new(),
        [name] => {
            format!("; {name} is the same in all turns, so another one is not cross-checked")
        }
        names => format!(
            "; {} are the same in all turns, so others are not cross-checked",
            names.join(", ")
        ),
    }
}

pub(crate) fn state(run: &Run) -> String {
    let turns = run.turns.len();
    match &run.checked {
        None => "not cross-checked: no second turn was recorded".into(),
        Some(Checked {
            fault: Some(fault), ..
        }) => format!("does not hold for other inputs: {fault}"),
        Some(checked) if checked.others == 0 && !run.inputs.is_empty() => {
            format!(
                "not cross-checked: {turns} later turns are reproduced, all of the recorded inputs"
            )
        }
        Some(checked) => format!(
            "cross-checked: {turns} later turns are reproduced, {} of other inputs{}{}",
            checked.others,
            unvaried(run),
            match run.numbers.len() {
                0 => String::new(),
                count => format!("; {count} numbers of the host are given by --set"),
            }
        ),
    }
}
