// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole runs.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Bench, Found, programs::nvcc, replays::start};
use crate::{error::Result, files};
use gpureplay_task::output;

const TIMED: usize = 200;
const OTHERS: u32 = 5;
const RESULTS: [&str; 4] = ["out0", "out1", "out2", "out3"];
const REFUSED: [(&str, &str); 5] = [
    ("callback", "comes after the host may have read a result"),
    ("managed", "it uses managed memory"),
    ("capture", "a stream is captured into a graph"),
    ("graph", "a stream is captured into a graph"),
    ("late", "comes after the host may have read a result"),
];

#[derive(Deserialize)]
struct Said {
    launches: usize,
    verdict: Option<String>,
    median_us: Option<f64>,
}

#[derive(Default)]
struct Row {
    name: String,
    launches: usize,
    /// As one graph, one by one.
    recorded: [bool; 2],
    /// Right replays of other inputs, and all: as one graph, one by one.
    others: [(u32, u32); 2],
    /// Launches, and wrong replays without one.
    left_out: (usize, usize),
    /// Microseconds: program, one by one, one graph.
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
            "| {} | {} | {}, {} | {}, {} | {} of {} | {:.2} | {:.2} |\n",
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
        )
    }
}

fn folder(bench: &Bench, name: &str) -> Result<PathBuf> {
    let path = bench.work.path().join(name);
    files::create_dir(&path)?;
    Ok(path)
}

fn same(one: &Path, other: &Path) -> Result<bool> {
    Ok(files::read(one)? == files::read(other)?)
}

fn number(said: &str, word: &str) -> f64 {
    let line = said.lines().find_map(|line| line.strip_prefix(word));
    line.and_then(|text| text.trim().parse().ok())
        .unwrap_or(f64::NAN)
}

fn recorded(bench: &Bench, recording: &str, row: &mut Row) -> Result<()> {
    for (how, words) in ["", "--no-graph"].into_iter().enumerate() {
        let words = format!("run {recording} --json --repetitions {TIMED} {words}");
        let (ran, text) = bench.start(&words)?;
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

fn without_launches(bench: &Bench, recording: &str) -> Result<(usize, usize)> {
    let path = bench.work.path().join(recording).join("runs/0.toml");
    let text = files::text(&path)?;
    let mut parts = text.split("[[operation]]");
    let head = parts.next().unwrap_or_default();
    let operations: Vec<&str> = parts.collect();
    let launches: Vec<usize> = (0..operations.len())
        .filter(|number| operations[*number].contains("do = \"launch\""))
        .collect();
    let (mut tried, mut noticed) = (0, 0);
    for left_out in &launches {
        let rest = operations.iter().enumerate();
        let rest = rest.filter(|(number, _)| number != left_out);
        let rest: String = rest.map(|(_, one)| format!("[[operation]]{one}")).collect();
        files::write(&path, format!("{head}{rest}"))?;
        let (passed, _) = bench.start(&format!("run {recording}"))?;
        tried += 1;
        noticed += usize::from(!passed);
    }
    files::write(&path, text)?;
    Ok((tried, noticed))
}

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
    for result in RESULTS {
        if same(&answers[0].join(result), &answers[1].join(result))? {
            eprintln!("{result} is the same for two seeds");
            return Ok(row);
        }
    }
    let (ran, said) = bench.start("record --run -o region-run -- ./region 1 seed1")?;
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
    row.left_out = without_launches(bench, "region-run")?;
    Ok(row)
}

fn refused(bench: &Bench) -> Found {
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

pub(super) fn runs(bench: &Bench, hecbench: Option<&Path>) -> Found {
    nvcc(bench, "region.cu", "region", &[])?;
    super::embedded::compile(bench)?;
    let mut text = String::from(
        "| Region | Launches | Recorded inputs: graph, one by one | Other inputs, equal to the program's answers bit for bit: graph, one by one | Not right without one launch | A turn one by one, relative to the program's own | As one graph |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut wrong = 0;
    let own = region(bench)?;
    wrong += own.wrong() + (own.left_out.0 - own.left_out.1) + usize::from(own.left_out.0 == 0);
    text += &own.line();
    let (said, missing) = refused(bench)?;
    eprint!("{text}\n{said}");
    text = format!("{text}\n{said}\n");
    if let Some(folder) = hecbench {
        let (table, bad) = super::inputs::of_hecbench(bench, folder)?;
        wrong += bad;
        text += &format!("{table}\n");
    }
    let has_torch = std::process::Command::new("python3")
        .args(["-c", "import torchvision"])
        .output();
    if has_torch.is_ok_and(|run| run.status.success()) {
        let (tables, bad) = super::networks::networks(bench)?;
        wrong += bad;
        text += &tables;
    } else {
        text += "PyTorch with torchvision is not here.\n";
    }
    Ok((text, wrong + missing))
}
