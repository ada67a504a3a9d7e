// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes' counts; a workbench on deficient kernels.

use std::process::Command;

use serde_json::Value;

use super::{
    Bench, Found,
    programs::nvcc,
    replays::{named, of, report, start},
};
use gpureplay_task::{Result, output};

const WARPS: u64 = (1 << 20) / 32;

/// Part of the kernel's name, kind, space, member, value.
const COUNTS: [(&str, &str, &str, &str, u64); 22] = [
    ("coalesced", "load", "memory", "accesses", WARPS),
    ("coalesced", "load", "memory", "sectors", 4 * WARPS),
    ("coalesced", "load", "memory", "lines", WARPS),
    ("coalesced", "store", "memory", "sectors", 4 * WARPS),
    ("coalesced", "store", "memory", "asked", 4 << 20),
    ("strided", "load", "memory", "accesses", WARPS / 32),
    ("strided", "load", "memory", "sectors", WARPS),
    ("strided", "load", "memory", "lines", WARPS),
    ("strided", "store", "memory", "sectors", 4 * WARPS / 32),
    ("transposedILi32", "store", "shared", "rounds", WARPS),
    ("transposedILi32", "store", "shared", "conflicts", 0),
    ("transposedILi32", "load", "shared", "accesses", WARPS),
    ("transposedILi32", "load", "shared", "rounds", 32 * WARPS),
    ("transposedILi32", "load", "shared", "conflicts", 31 * WARPS),
    ("transposedILi33", "load", "shared", "rounds", WARPS),
    ("transposedILi33", "load", "shared", "conflicts", 0),
    ("wide", "store", "shared", "rounds", WARPS),
    ("wide", "load", "shared", "rounds", WARPS),
    ("wide", "load", "shared", "conflicts", 0),
    ("wide", "load", "memory", "sectors", 4 * WARPS),
    ("diverging", "load", "memory", "accesses", 31 * WARPS),
    ("diverging", "load", "memory", "asked", 4 * 496 * WARPS),
];

const RACES: [(&str, &str, Option<&str>); 5] = [
    ("neighboursILb0", "found", Some("read and write")),
    ("neighboursILb1", "clean", None),
    ("unwritten", "found", Some("read before any write")),
    ("transposedILi32", "clean", None),
    ("wide", "clean", None),
];

/// Of Nsight Compute: kernel, metric, kind, space, member.
const METRICS: [(&str, &str, &str, &str, &str); 6] = [
    (
        "coalesced",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "load",
        "memory",
        "sectors",
    ),
    (
        "strided",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "load",
        "memory",
        "sectors",
    ),
    (
        "diverging",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "load",
        "memory",
        "sectors",
    ),
    (
        "transposedILi32",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "load",
        "shared",
        "conflicts",
    ),
    (
        "transposedILi33",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "load",
        "shared",
        "conflicts",
    ),
    (
        "transposedILi32",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "store",
        "shared",
        "conflicts",
    ),
];

fn record(bench: &Bench) -> Result<Vec<(String, String)>> {
    if !bench.work.path().join("counted").exists() {
        nvcc(bench, "inside.cu", "inside", &["-lineinfo"])?;
        bench.output("record -o counted --pick all -- ./inside")?;
    }
    named(bench, "counted")
}

fn sum(report: &Value, kind: &str, part: &str, member: &str) -> u64 {
    let sites = report["sites"].as_array().into_iter().flatten();
    let sites = sites.filter(|site| site["kind"] == kind);
    sites.filter_map(|site| site[part][member].as_u64()).sum()
}

pub(super) fn analyse(bench: &Bench) -> Found {
    let all = record(bench)?;
    let mut wrong = 0;
    let mut reports: Vec<(&str, Value)> = Vec::new();
    let mut text =
        String::from("| Kernel | With probes | Slower | Counted |\n| --- | --- | --: | --- |\n");
    for (launch, kernel) in &all {
        let (_, said) = bench.start(&format!("analyse {launch} --json"))?;
        let report = report(&said);
        let is_right = report["verdict"] == "exact";
        wrong += usize::from(!is_right);
        if !is_right {
            eprintln!("{kernel}: {said}");
        }
        let slower = report["probed_us"]
            .as_f64()
            .zip(report["plain_us"].as_f64());
        let slower = slower.map_or(f64::NAN, |(probed, plain)| probed / plain);
        let counts = COUNTS.iter().filter(|count| kernel.contains(count.0));
        let mut counted = Vec::new();
        for (_, kind, part, member, expected) in counts {
            let found = sum(&report, kind, part, member);
            wrong += usize::from(found != *expected);
            let sign = if found == *expected { "=" } else { "≠" };
            counted.push(format!("{part} {kind} {member} {found} {sign} {expected}"));
        }
        for (_, verdict, what) in RACES.iter().filter(|race| kernel.contains(race.0)) {
            let found = report["races_verdict"].as_str().unwrap_or("none");
            let kind = report["races"][0]["kind"].as_str();
            let lines = report["races"][0]["source_lines"].to_string();
            wrong += usize::from(found != *verdict || kind != *what);
            counted.push(format!("races {found}: {} {lines}", kind.unwrap_or("none")));
        }
        let row = format!(
            "| `{kernel}` | {} | {slower:.0} | {} |\n",
            report["verdict"].as_str().unwrap_or("fails"),
            counted.join("; ")
        );
        eprint!("{row}");
        text += &row;
        reports.push((kernel, report));
    }
    let (table, bad) = metrics(bench, &all, &reports)?;
    text += &table;
    wrong += bad;
    let probe = bench.programs.join("probe.ptx").display().to_string();
    let launch = of(&all, "coalesced");
    let (_, said) = bench.start(&format!("analyse {launch} --what heat --probe {probe}"))?;
    let own = said
        .lines()
        .find(|line| line.trim_start().starts_with("kinds "));
    let is_right = own.is_some_and(|line| line.contains("kinds 1048576 1048576 0 "));
    wrong += usize::from(!is_right);
    text += &format!(
        "\nA probe of one's own counts loads, stores, atomic operations and blocks: {}\n",
        own.unwrap_or(&said).trim()
    );
    Ok((text, wrong))
}

fn metrics(bench: &Bench, all: &[(String, String)], reports: &[(&str, Value)]) -> Found {
    let mut text = String::from(
        "\n| Kernel | Nsight Compute's metric | It says | Probes say |\n| --- | --- | --: | --: |\n",
    );
    let mut wrong = 0;
    for (kernel, metric, kind, part, member) in METRICS {
        let mut ncu = Command::new("timeout");
        ncu.current_dir(bench.work.path())
            .args([
                "120",
                "ncu",
                "--csv",
                "--clock-control",
                "none",
                "--metrics",
                metric,
            ])
            .arg(&bench.command)
            .args(["run", of(all, kernel), "--no-verify"]);
        let (_, said) = start(&mut ncu)?;
        let line = said.lines().rev().find(|line| line.contains(metric));
        let theirs = line.and_then(|line| line.rsplit('"').nth(1));
        let theirs = theirs.and_then(|number| number.replace(',', "").parse::<u64>().ok());
        let report = reports.iter().find(|(name, _)| name.contains(kernel));
        let ours = report.map_or(0, |(_, report)| sum(report, kind, part, member));
        // Hardware adds conflicts that addresses do not cause, as with a write of the same cycle.
        let near = theirs.is_some_and(|theirs| {
            theirs.abs_diff(ours) * 100 <= ours.max(theirs) * 2 + 100 * WARPS / 50
        });
        wrong += usize::from(!near);
        let theirs = theirs.map_or_else(|| "nothing".to_owned(), |theirs| theirs.to_string());
        text += &format!("| `{kernel}` | {metric} | {theirs} | {ours} |\n");
    }
    Ok((text, wrong))
}

/// Whether each may be called right.
const CANDIDATES: [(&str, bool); 7] = [
    ("RIGHT", true),
    ("NOTHING", false),
    ("HALF", false),
    ("TRIPLE", false),
    ("LAST", false),
    ("RESTS", false),
    ("WRONG_END", false),
];

pub(super) fn workbench(bench: &Bench) -> Found {
    let all = record(bench)?;
    let mut text =
        String::from("| Kernel | Verdict | Checks | Speed-up |\n| --- | --- | --- | --: |\n");
    let mut wrong = 0;
    bench.output(&format!("extract {} -o bench", of(&all, "axpy")))?;
    let folder = bench.work.path().join("bench");
    let mut row = |name: &str, said: &str, may_be_right: bool| {
        let report = report(said);
        let is_right = report["verdict"] == "right";
        let bad = is_right != may_be_right;
        let checks = report["checks"].as_array().into_iter().flatten();
        let checks: Vec<String> = checks
            .map(|check| {
                format!(
                    "{} {}",
                    check["what"].as_str().unwrap_or_default(),
                    check["verdict"].as_str().unwrap_or_default()
                )
            })
            .collect();
        if bad {
            eprintln!("{name}: {said}");
        }
        let row = format!(
            "| {name} | {} | {} | {:.2} |\n",
            report["verdict"].as_str().unwrap_or("none"),
            checks.join(", "),
            report["speedup"].as_f64().unwrap_or(f64::NAN)
        );
        eprint!("{row}");
        text += &row;
        usize::from(bad)
    };
    let mut make = Command::new("make");
    let (_, said) = start(make.current_dir(&folder).env("GPUREPLAY", &bench.command))?;
    wrong += row("kernel.ptx, by `make`", &said, true);
    for (name, may_be_right) in CANDIDATES {
        let cubin = format!("{}.cubin", name.to_lowercase());
        nvcc_cubin(bench, name, &cubin)?;
        let mut check = Command::new("sh");
        check
            .current_dir(bench.work.path())
            .args(["bench/check", &cubin]);
        let (_, said) = start(check.env("GPUREPLAY", &bench.command))?;
        wrong += row(&name.to_lowercase(), &said, may_be_right);
    }
    Ok((text, wrong))
}

fn nvcc_cubin(bench: &Bench, which: &str, out: &str) -> Result<String> {
    let mut command = Command::new("nvcc");
    command
        .current_dir(bench.work.path())
        .args(["-O3", "-arch=sm_90", "-cubin", "-o", out])
        .arg(format!("-D{which}"));
    output(command.arg(bench.programs.join("candidates.cu")))
}
