// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole runs: a region of a program with two streams, and networks of PyTorch.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use serde::Deserialize;

use super::{Bench, programs::nvcc, replays::start};
use crate::error::{Error, Result};
use gpureplay_task::output;

/// Timed runs of a replay.
const TIMED: usize = 200;
/// Other inputs than the recorded ones.
const OTHERS: u32 = 5;
/// What region.cu keeps of its results.
const RESULTS: [&str; 4] = ["out0", "out1", "out2", "out3"];
/// Launches of a network that are left out, one at a time.
const LEFT_OUT: usize = 8;
/// Networks of torch_nets.py.
const NETWORKS: [&str; 3] = ["resnet50", "vit", "unet"];
/// What region.cu does in its region that cannot be recorded, and what is said of it.
const REFUSED: [(&str, &str); 5] = [
    ("callback", "comes after the host may have read a result"),
    ("managed", "it uses managed memory"),
    ("capture", "a stream is captured into a graph"),
    ("graph", "a stream is captured into a graph"),
    ("late", "comes after the host may have read a result"),
];

/// What `run --json` says.
#[derive(Deserialize)]
struct Said {
    launches: usize,
    verdict: Option<String>,
    median_us: Option<f64>,
}

/// A row of the table.
#[derive(Default)]
struct Row {
    name: String,
    launches: usize,
    /// Right with recorded inputs: as one graph, one by one.
    recorded: [bool; 2],
    /// Right with other inputs, of how many: as one graph, one by one.
    others: [(u32, u32); 2],
    /// Launches that were left out, and of how many the result was not right.
    left_out: (usize, usize),
    /// Seconds from the start of a process to its first result: the program's own, a replay's.
    first: Option<[f64; 2]>,
    /// Microseconds of a turn: the program's own, one by one, as one graph.
    turn: [f64; 3],
}

impl Row {
    fn wrong(&self) -> usize {
        let recorded = self.recorded.iter().filter(|right| !**right).count();
        let others = self
            .others
            .iter()
            .map(|(right, of)| of - right)
            .sum::<u32>() as usize;
        recorded + others
    }

    fn line(&self) -> String {
        let right = |right: bool| if right { "right" } else { "WRONG" };
        let of = |(right, of): (u32, u32)| format!("{right} of {of}");
        let [own, launches, graph] = self.turn;
        format!(
            "| {} | {} | {}, {} | {}, {} | {} of {} | {:.2} | {:.2} | {} |\n",
            self.name,
            self.launches,
            right(self.recorded[0]),
            right(self.recorded[1]),
            of(self.others[0]),
            of(self.others[1]),
            self.left_out.1,
            self.left_out.0,
            launches / own,
            graph / own,
            self.first
                .map_or("–".into(), |[own, replay]| format!("{:.3}", replay / own)),
        )
    }
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { what, path, source }
}

/// A new folder in the folder of work.
fn folder(bench: &Bench, name: &str) -> Result<PathBuf> {
    let path = bench.work.path().join(name);
    fs::create_dir(&path).map_err(io("create", &path))?;
    Ok(path)
}

fn same(one: &Path, other: &Path) -> Result<bool> {
    let read = |path: &Path| fs::read(path).map_err(io("read", path));
    Ok(read(one)? == read(other)?)
}

/// The number that a program says after a word.
fn number(said: &str, word: &str) -> f64 {
    let line = said.lines().find_map(|line| line.strip_prefix(word));
    line.and_then(|text| text.trim().parse().ok())
        .unwrap_or(f64::NAN)
}

/// Replays with recorded inputs, both ways, and takes times.
fn recorded(bench: &Bench, recording: &str, row: &mut Row) -> Result<()> {
    for (how, words) in ["", "--no-graph"].into_iter().enumerate() {
        let words = format!("run {recording} --json --repetitions {TIMED} {words}");
        let (ran, text) = start(&mut bench.gpureplay(&words))?;
        let line = text
            .lines()
            .find(|line| line.starts_with('{'))
            .unwrap_or("");
        let Ok(said) = serde_json::from_str::<Said>(line) else {
            eprintln!("{words}: {text}");
            continue;
        };
        row.launches = said.launches;
        row.recorded[how] = ran && said.verdict.as_deref() == Some("exact");
        row.turn[2 - how] = said.median_us.unwrap_or(f64::NAN);
    }
    Ok(())
}

/// Replays without one launch, of `most` that lie evenly among all; says of how many, and how many results were not right.
fn without_launches(bench: &Bench, recording: &str, most: usize) -> Result<(usize, usize)> {
    let path = bench.work.path().join(recording).join("runs/0.toml");
    let text = fs::read_to_string(&path).map_err(io("read", &path))?;
    let mut parts = text.split("[[operation]]");
    let head = parts.next().unwrap_or_default();
    let operations: Vec<&str> = parts.collect();
    let launches: Vec<usize> = (0..operations.len())
        .filter(|number| operations[*number].contains("do = \"launch\""))
        .collect();
    let step = launches.len().div_ceil(most).max(1);
    let (mut tried, mut noticed) = (0, 0);
    for left_out in launches.iter().step_by(step) {
        let rest = operations.iter().enumerate();
        let rest = rest.filter(|(number, _)| number != left_out);
        let rest: String = rest.map(|(_, one)| format!("[[operation]]{one}")).collect();
        fs::write(&path, format!("{head}{rest}")).map_err(io("write", &path))?;
        let (passed, _) = start(&mut bench.gpureplay(&format!("run {recording}")))?;
        tried += 1;
        noticed += usize::from(!passed);
    }
    fs::write(&path, text).map_err(io("write", &path))?;
    Ok((tried, noticed))
}

/// region.cu, compared with its own answers to other seeds.
fn region(bench: &Bench) -> Result<Row> {
    let mut row = Row {
        name:
            "`region.cu`: two streams and the default one, events, variables, a cooperative launch"
                .into(),
        ..Row::default()
    };
    let mut answers = Vec::new();
    for seed in 1..=OTHERS + 1 {
        let path = folder(bench, &format!("seed{seed}"))?;
        let mut program = std::process::Command::new("./region");
        program
            .current_dir(bench.work.path())
            .arg(seed.to_string())
            .arg(&path);
        row.turn[0] = number(&output(&mut program)?, "turn ");
        answers.push(path);
    }
    // Results that do not depend on the inputs would show nothing.
    for result in RESULTS {
        if same(&answers[0].join(result), &answers[1].join(result))? {
            eprintln!("{result} is the same for two seeds");
            return Ok(row);
        }
    }
    let (ran, said) =
        start(&mut bench.gpureplay("record --run -o region-run -- ./region 1 seed1"))?;
    if !ran || !said.contains("run 0 is recorded") {
        eprintln!("{said}");
        return Ok(row);
    }
    recorded(bench, "region-run", &mut row)?;
    for (how, words) in ["", "--no-graph"].into_iter().enumerate() {
        for answer in &answers[1..] {
            let mut replay = bench.gpureplay(&format!("run region-run {words}"));
            for input in ["in0", "in1"] {
                replay
                    .arg("--input")
                    .arg(format!("{input}={}", answer.join(input).display()));
            }
            for result in RESULTS {
                replay
                    .arg("--output")
                    .arg(format!("{result}=found-{result}"));
            }
            let (ran, said) = start(&mut replay)?;
            let mut right = ran;
            for result in RESULTS {
                let found = bench.work.path().join(format!("found-{result}"));
                right = right && same(&found, &answer.join(result))?;
            }
            if !right {
                eprintln!("{said}");
            }
            row.others[how].0 += u32::from(right);
            row.others[how].1 += 1;
        }
    }
    row.left_out = without_launches(bench, "region-run", usize::MAX)?;
    Ok(row)
}

/// A network, compared with PyTorch's own answers in the recorded process.
fn network(bench: &Bench, net: &str) -> Result<Row> {
    let mut row = Row {
        name: format!("PyTorch, {net}"),
        ..Row::default()
    };
    let path = folder(bench, net)?;
    let script = bench.programs.join("torch_nets.py").display().to_string();
    let program = ["python3", &script, net];
    // A process of its own says how long a turn takes without the recorder.
    let mut alone = std::process::Command::new(program[0]);
    alone
        .current_dir(bench.work.path())
        .args(&program[1..])
        .arg(&path)
        .arg("--time");
    let alone = output(&mut alone)?;
    row.turn[0] = number(&alone, "eager ");
    let recording = format!("{net}-run");
    let mut record = bench.gpureplay(&format!("record --run=turn -o {recording} --"));
    let (ran, said) = start(record.args(program).arg(&path))?;
    // Later turns had other inputs, and are reproduced.
    if !ran || !said.contains("run 0: cross-checked") {
        eprintln!("{said}");
        return Ok(row);
    }
    recorded(bench, &recording, &mut row)?;
    for (how, words) in ["", "--no-graph"].into_iter().enumerate() {
        for input in 1..=OTHERS {
            let mut replay = bench.gpureplay(&format!("run {recording} {words}"));
            replay.arg("--input").arg(path.join(format!("x{input}")));
            replay.arg("--output").arg("found-y");
            let began = Instant::now();
            let (ran, said) = start(&mut replay)?;
            let took = began.elapsed().as_secs_f64();
            let least = row.first.map_or(took, |[_, least]| least.min(took));
            row.first = Some([number(&alone, "first "), least]);
            let found = bench.work.path().join("found-y");
            let right = ran && same(&found, &path.join(format!("y{input}")))?;
            if !right {
                eprintln!("{said}");
            }
            row.others[how].0 += u32::from(right);
            row.others[how].1 += 1;
        }
    }
    row.left_out = without_launches(bench, &recording, LEFT_OUT)?;
    Ok(row)
}

/// What a region cannot hold is named, and the program's answers are as ever.
fn refused(bench: &Bench) -> Result<(String, usize)> {
    let path = folder(bench, "refused-answers")?;
    let mut named = 0;
    for (what, reason) in REFUSED {
        let mut record = bench.gpureplay(&format!(
            "record --run -o refused-run -- ./region 1 {} {what}",
            path.display()
        ));
        let (ran, said) = start(&mut record)?;
        let right = ran && said.contains("the run is not recorded: ") && said.contains(reason);
        if !right {
            eprintln!("{what}: {said}");
        }
        named += usize::from(right);
    }
    let text = format!(
        "Of {} things that a region cannot hold, {named} were named, and the program ran to its end.\n",
        REFUSED.len()
    );
    Ok((text, REFUSED.len() - named))
}

/// All of it.
pub(super) fn runs(bench: &Bench) -> Result<(String, usize)> {
    nvcc(bench, "region.cu", "region", &[])?;
    let mut text = String::from(
        "| Region | Launches | Recorded inputs: graph, one by one | Other inputs, equal to the program's answers bit for bit: graph, one by one | Not right without one launch | A turn one by one, relative to the program's own | As one graph | Start of a process to its first result |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut wrong = 0;
    let own = region(bench)?;
    wrong += own.wrong() + (own.left_out.0 - own.left_out.1) + usize::from(own.left_out.0 == 0);
    text += &own.line();
    let has_torch = std::process::Command::new("python3")
        .args(["-c", "import torchvision"])
        .output();
    if has_torch.is_ok_and(|run| run.status.success()) {
        for net in NETWORKS {
            let row = network(bench, net)?;
            wrong += row.wrong() + usize::from(row.others[0].1 == 0);
            text += &row.line();
        }
    } else {
        text += "\nPyTorch with torchvision is not here.\n";
    }
    let (said, missing) = refused(bench)?;
    eprint!("{text}\n{said}");
    Ok((format!("{text}\n{said}"), wrong + missing))
}
