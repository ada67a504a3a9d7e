// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profilers on a replay; processes with GPUs.

use std::process::Command;

use super::{
    Bench, Found,
    programs::build_suite,
    replays::{launches, start},
};
use gpureplay_task::output;

const LAUNCHES: usize = 2;

pub(super) fn tools(bench: &Bench) -> Found {
    build_suite(bench)?;
    bench.output("record -o tools --pick first -- ./suite 65536")?;
    let command = bench.command.display().to_string();
    let metric = "gpu__time_duration.sum";
    let tools: [(&str, &[&str], &str); 4] = [
        (
            "ncu",
            &["--clock-control", "none", "--metrics", metric],
            metric,
        ),
        (
            "compute-sanitizer",
            &["--tool", "memcheck"],
            "ERROR SUMMARY",
        ),
        (
            "compute-sanitizer",
            &["--tool", "racecheck"],
            "RACECHECK SUMMARY",
        ),
        (
            "compute-sanitizer",
            &["--tool", "initcheck"],
            "ERROR SUMMARY",
        ),
    ];
    let (names, _) = launches(bench, "tools")?;
    let mut text = String::from(
        "| Tool on `gpureplay cuda run DIR#K` | Launches replayed right under it | What it says of the last |\n| --- | --- | --- |\n",
    );
    let mut wrong = 0;
    for (tool, words, mark) in tools {
        let (mut right, mut said) = (0, String::new());
        for name in names.iter().take(LAUNCHES) {
            let mut run = Command::new("timeout");
            run.current_dir(bench.work.path())
                .args(["120", tool])
                .args(words);
            let Ok((ran, text)) = start(run.args([&command, "run", name])) else {
                said = format!("{tool} is not here");
                break;
            };
            right += usize::from(ran && text.contains("right, bit for bit"));
            let line = text.lines().rev().find(|line| line.contains(mark));
            said = line.map_or_else(
                || text.lines().last().unwrap_or("nothing").to_owned(),
                |line| line.split_whitespace().collect::<Vec<_>>().join(" "),
            );
        }
        let all = names.len().min(LAUNCHES);
        wrong += all - right;
        let row = format!(
            "| {tool} {} | {right} of {all} | {} |\n",
            words.join(" "),
            said.replace('|', " ")
        );
        eprint!("{row}");
        text += &row;
    }
    Ok((text, wrong))
}

pub(super) fn ranks(bench: &Bench) -> Found {
    let count =
        output(Command::new("nvidia-smi").args(["--query-gpu=index", "--format=csv,noheader"]))?;
    let count = count.lines().count();
    if count < 2 {
        return Ok((format!("Not run: this machine has {count} GPU.\n"), 0));
    }
    let program = bench.programs.join("ranks.py").display().to_string();
    let mut text = String::from(
        "| `torchrun` with two ranks | Recorded of rank 0, rank 1 | Right on the GPU of its rank | Not recorded |\n| --- | --- | --- | --- |\n",
    );
    let mut wrong = 0;
    for (name, words) in [("all ranks", ""), ("--rank 1", "--rank 1")] {
        let folder = format!("ranks{}", words.replace("--rank ", "-"));
        let mut run = bench.gpureplay(&format!(
            "record -v -o {folder} {words} -- torchrun --standalone --nproc-per-node 2"
        ));
        let (ran, said) = start(run.arg(&program))?;
        if !ran {
            eprintln!("{said}");
        }
        let (launches, _) = launches(bench, &folder)?;
        let (mut of, mut right) = ([0, 0], 0);
        for launch in &launches {
            let (_, info) = bench.start(&format!("info {launch}"))?;
            let rank = usize::from(info.contains("rank 1"));
            of[rank] += 1;
            let (is_right, text) = bench.start(&format!("run {launch} --gpu {rank}"))?;
            right += usize::from(is_right);
            if !is_right {
                eprintln!("{launch}: {text}");
            }
        }
        wrong += launches.len() - right;
        let mut refused: Vec<&str> = said
            .lines()
            .filter_map(|line| line.split(" is not recorded: ").nth(1))
            .collect();
        refused.sort_unstable();
        refused.dedup();
        let refused = if refused.is_empty() {
            "nothing".to_owned()
        } else {
            refused.join("; ")
        };
        let row = format!(
            "| {name} | {}, {} | {right} of {} | {refused} |\n",
            of[0],
            of[1],
            launches.len()
        );
        eprint!("{row}");
        text += &row;
    }
    Ok((text, wrong))
}
