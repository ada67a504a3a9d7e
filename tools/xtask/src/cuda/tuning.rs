// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tuning, and winners in the program.

use std::process::Command;

use serde_json::Value;

use super::{
    Bench, Found,
    programs::build_one_of_ours,
    replays::{named, of, report, start},
};
use gpureplay_task::output;

/// Kernel of tunable.cu, lists, and least speed-up: its own sizes are that far from the best.
const SEARCHES: [(&str, &[&str], f64); 3] = [
    (
        "stride",
        &["--blocks", "64..1024", "--grids", "33..2112"],
        4.0,
    ),
    (
        "plane",
        &["--blocks", "1,32 32,1 8,8 16,16 32,8 32,32 64,4 128,2 256"],
        1.5,
    ),
    ("reuse", &["--carveout=-1,0,50,100"], 1.0),
];

const COMPILED: [(&str, &[&str]); 2] = [
    (
        "plane",
        &[
            "--registers",
            "0,16,24,32",
            "--bounds",
            "0 256 1024,2",
            "--optimisation=-1,1",
        ],
    ),
    ("reuse", &["--image", "slim.cubin"]),
];

/// Tries of each: a tenth of the candidates.
const SAMPLED: [(&str, &[&str], usize); 3] = [
    (
        "stride",
        &["--blocks", "64..1024:64", "--grids", "33..1584:33"],
        60,
    ),
    (
        "plane",
        &[
            "--blocks",
            "1,32 2,32 4,32 8,32 16,32 32,32 1,8 2,8 4,8 8,8 16,8 32,8 64,8 128,8 1,1 8,1 32,1 64,1 128,1 256,1 512,1 1024,1",
            "--carveout=-1,0,50,100",
            "--registers",
            "0,16,32",
        ],
        30,
    ),
    (
        "reuse",
        &[
            "--carveout=-1,0,5,10,15,20,25,30,35,40,45,50,55,60,65,70,75,80,85,90,95,100",
            "--registers",
            "0,16,24,32",
            "--optimisation=-1,1,3",
        ],
        30,
    ),
];

fn told(said: &str, kernel: &str) -> f64 {
    let line = said.lines().find_map(|line| line.strip_prefix(kernel));
    let time = line.and_then(|rest| rest.trim().parse().ok());
    time.unwrap_or(f64::NAN)
}

pub(super) fn tuning(bench: &Bench) -> Found {
    build_one_of_ours(bench, "tunable.cu", "tunable")?;
    bench.output("record -o tunable-1 -- ./tunable")?;
    let all = named(bench, "tunable-1")?;
    let mut wrong = 0;
    let mut text = String::from(
        "| Kernel of `tunable.cu` | Searched | Tried | Right | Recorded, µs | Best, µs | Speed-up | Of |\n| --- | --- | --: | --: | --: | --: | --: | --- |\n",
    );
    let mut slim = Command::new("nvcc");
    slim.current_dir(bench.work.path())
        .args(["-O3", "-std=c++17", "-arch=sm_90", "-cubin"])
        .args(["-maxrregcount", "16", "-o", "slim.cubin"]);
    output(slim.arg(bench.programs.join("tunable.cu")))?;
    let searches =
        SEARCHES.map(|(kernel, lists, least)| (kernel, lists, least, "--tuned tuned.toml"));
    let compiled = COMPILED.map(|(kernel, lists)| (kernel, lists, 1.0, ""));
    for (kernel, lists, least, words) in searches.into_iter().chain(compiled) {
        let words = format!("tune {} --json --runs 10 {words}", of(&all, kernel));
        let (_, said) = start(bench.gpureplay(&words).args(lists))?;
        let (row, is_good) = row(kernel, &lists.join(" "), &report(&said), least);
        if !is_good {
            eprintln!("{kernel}: {said}");
        }
        wrong += usize::from(!is_good);
        eprint!("{row}");
        text += &row;
    }
    for part in [
        together(bench)?,
        triton(bench)?,
        samplers(bench, &all)?,
        replaced(bench)?,
    ] {
        text += &part.0;
        wrong += part.1;
    }
    Ok((text, wrong))
}

fn together(bench: &Bench) -> Found {
    let words =
        "record -o tunable-2 --kernel ^stride$ --pick all --max-per-kernel 2 -- ./tunable two";
    bench.output(words)?;
    let words = "tune tunable-2 --kernel ^stride$ --sampler learn:1 --budget 30 --json --runs 5";
    let lists = ["--blocks", "64..1024:64", "--grids", "33..1584:33"];
    let (_, said) = start(bench.gpureplay(words).args(lists))?;
    let found = report(&said);
    let ways = found["ways"].as_array().map_or(0, Vec::len);
    let speedup = number(&found["speedup"]);
    let best = format!(
        "grid {}, block {}",
        found["best"]["grid"], found["best"]["block"]
    );
    let is_good = ways > 20 && speedup > 4.0;
    if !is_good {
        eprintln!("{said}");
    }
    let text = format!(
        "\n| Two sizes of `stride` together, `--sampler learn:1` | |\n| --- | --- |\n| ways that are right for both | {ways} |\n| times as fast in sum | {speedup:.1} |\n| with | {best} |\n"
    );
    eprint!("{text}");
    Ok((text, usize::from(!is_good)))
}

fn triton(bench: &Bench) -> Found {
    let cache = bench.work.path().join("triton");
    let program = bench.programs.join("triton_warps.py").display().to_string();
    let mut record = bench.gpureplay("record -o triton-1 --kernel ^total$ -- python3");
    let (ran, said) = start(record.arg(program).env("TRITON_CACHE_DIR", &cache))?;
    let mut tune = bench.gpureplay("tune triton-1#0 --triton --json --runs 20");
    let (_, tuned) = start(tune.env("TRITON_CACHE_DIR", &cache))?;
    let found = report(&tuned);
    let tries = found["tries"].as_array().cloned().unwrap_or_default();
    let mut text = String::from(
        "\n| `total` of `triton_warps.py`: threads of a block | Verdict | µs |\n| --: | --- | --: |\n",
    );
    let mut right = 0;
    for one in &tries {
        right += usize::from(one["verdict"] == "exact");
        text += &format!(
            "| {} | {} | {:.1} |\n",
            one["block"][0],
            one["verdict"].as_str().unwrap_or("none"),
            number(&one["median_us"])
        );
    }
    // Variants add in their own order.
    let is_good = ran && tries.len() >= 8 && right >= 3;
    if !is_good {
        eprintln!("{said}\n{tuned}");
    }
    eprint!("{text}");
    Ok((text, usize::from(!is_good)))
}

fn row(kernel: &str, lists: &str, found: &Value, least: f64) -> (String, bool) {
    let tries = found["tries"].as_array().map_or(&[][..], Vec::as_slice);
    let right = tries.iter().filter(|one| one["verdict"] == "exact");
    let recorded = tries.first().map_or(&Value::Null, |one| &one["median_us"]);
    let (recorded, best) = (number(recorded), number(&found["best"]["median_us"]));
    let speedup = number(&found["speedup"]);
    let sizes = |name: &str| found["best"][name].to_string();
    let winner = if found["best"].is_null() {
        "nothing is faster | | |".to_owned()
    } else {
        format!(
            "{best:.1} | {speedup:.2} | grid {}, block {}, carve-out {} |",
            sizes("grid"),
            sizes("block"),
            sizes("carveout")
        )
    };
    let row = format!(
        "| `{kernel}` | `{lists}` | {} | {} | {recorded:.1} | {winner}\n",
        tries.len(),
        right.count()
    );
    let all_right = tries.iter().all(|one| one["verdict"] == "exact");
    (
        row,
        speedup >= least || least <= 1.0 && all_right && !tries.is_empty(),
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn samplers(bench: &Bench, all: &[(String, String)]) -> Found {
    let mut text = String::from(
        "\n| Kernel | Sampler | Tried | Best, µs | Slower than the best of all |\n| --- | --- | --: | --: | --: |\n",
    );
    let mut wrong = 0;
    let words = [
        "all", "learn:1", "learn:2", "learn:3", "random:1", "random:2", "random:3",
    ];
    for (kernel, lists, tries) in SAMPLED {
        let mut best_of_all = f64::NAN;
        for sampler in words {
            let budget = match sampler {
                "all" => String::new(),
                _ => format!("--budget {tries}"),
            };
            let launch = of(all, kernel);
            let words = format!("tune {launch} --json --runs 5 --sampler {sampler} {budget}");
            let (_, said) = start(bench.gpureplay(&words).args(lists))?;
            let found = report(&said);
            let best = number(&found["best"]["median_us"]);
            if sampler == "all" {
                best_of_all = best;
            }
            let slower = 100.0 * (best / best_of_all - 1.0);
            let is_learnt = sampler.starts_with("learn");
            wrong += usize::from(is_learnt && (slower.is_nan() || slower > 10.0));
            let tries = found["tries"].as_array().map_or(0, Vec::len);
            let row = if best.is_nan() {
                format!("| `{kernel}` | {sampler} | {tries} | nothing | |\n")
            } else {
                format!("| `{kernel}` | {sampler} | {tries} | {best:.1} | {slower:.1} % |\n")
            };
            eprint!("{row}");
            text += &row;
        }
    }
    Ok((text, wrong))
}

fn replaced(bench: &Bench) -> Found {
    let (_, alone) = start(Command::new("./tunable").current_dir(bench.work.path()))?;
    let (ran, said) = bench.start("replace --tuned tuned.toml -- ./tunable")?;
    let (timed, table) = bench.start("replace --tuned tuned.toml --durations -- ./tunable")?;
    let mut wrong = usize::from(!ran || !said.contains("results right"));
    wrong += usize::from(!timed || !table.contains("results right"));
    let mut text = String::from(
        "\n| In the running program, µs | Alone | `replace --tuned` | Side by side: original | Replacement |\n| --- | --: | --: | --: | --: |\n",
    );
    for (kernel, _, least) in SEARCHES {
        let end = format!(" {kernel}");
        let mut rows = table.lines().filter(|line| line.ends_with(&end));
        let row = rows.next().unwrap_or_default();
        let side = |at| row.split_whitespace().nth(at)?.parse().ok();
        let [before, after] = [&alone, &said].map(|said| told(said, kernel));
        let [original, other] = [0, 1].map(|at| side(at).unwrap_or(f64::NAN));
        if least > 1.0 {
            wrong += usize::from(is_below(before / after, least / 2.0));
            wrong += usize::from(is_below(original / other, least / 2.0));
        }
        text +=
            &format!("| `{kernel}` | {before:.1} | {after:.1} | {original:.1} | {other:.1} |\n");
    }
    if wrong > 0 {
        eprintln!("{said}\n{table}");
    }
    eprint!("{text}");
    Ok((text, wrong))
}

fn is_below(speed_up: f64, least: f64) -> bool {
    speed_up.is_nan() || speed_up < least
}
