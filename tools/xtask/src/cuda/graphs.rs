// SPDX-License-Identifier: MIT OR Apache-2.0
//! Graphs: conditions, and times by events.

use super::{
    Bench, Found,
    programs::{build_one_of_ours, nvcc},
    replays::{durations, right},
};

const DECIDED: [(&str, u64); 6] = [
    ("decides", 0),
    ("in_if", 2),
    ("in_while", 10),
    ("in_first", 0),
    ("in_second", 2),
    ("follows", 0),
];

const REASON: &str = "a node of its graph decides what runs";

pub(super) fn graphs(bench: &Bench) -> Found {
    let (text, wrong) = conditional(bench)?;
    let (more, bad) = timed(bench)?;
    Ok((text + "\n" + &more, wrong + bad))
}

fn conditional(bench: &Bench) -> Found {
    nvcc(bench, "conditional.cu", "conditional", &["-rdc=true"])?;
    let (ran, said) = bench.start("record -v -o conditional-1 --pick all -- ./conditional")?;
    let strict = "record -v --strict -o conditional-2 --pick all -- ./conditional";
    let (passes, strict) = bench.start(strict)?;
    let mut wrong = usize::from(!ran) + usize::from(passes);
    let mut text = String::from(
        "| Kernel of `conditional.cu` | Said | With `--strict` |\n| --- | --- | --- |\n",
    );
    for (kernel, times) in DECIDED {
        let head = format!("[gpureplay] {kernel} is not recorded: ");
        let mut reasons: Vec<&str> = said
            .lines()
            .filter_map(|line| line.strip_prefix(&head))
            .collect();
        reasons.dedup();
        let counted = strict.lines().find_map(|line| {
            let (_, rest) = line.split_once(&format!("{kernel}: the hooks saw "))?;
            Some(format!("the hooks saw {rest}"))
        });
        let expected = (times > 0).then(|| format!("the hooks saw 0 launches, CUPTI {times}"));
        wrong += usize::from(reasons != [REASON]) + usize::from(counted != expected);
        text += &format!(
            "| {kernel} | {} | {} |\n",
            reasons.join("; "),
            counted.unwrap_or_else(|| "counts agree".to_owned())
        );
    }
    let (launches, right) = right(bench, "conditional-1")?;
    wrong += usize::from((launches, right) != (1, 1));
    if wrong > 0 {
        eprintln!("{said}\n{strict}");
    }
    text += &format!(
        "\nThe program's own answers are {}; of its kernels in no graph, {} is recorded and {right} replays right.\n",
        if ran { "right" } else { "wrong" },
        launches
    );
    eprint!("{text}");
    Ok((text, wrong))
}

fn timed(bench: &Bench) -> Found {
    build_one_of_ours(bench, "graphs.cu", "graphs")?;
    let table = |words: &str| {
        let (_, said) = bench.start(&format!("durations --json {words} -- ./graphs"))?;
        Ok::<_, crate::error::Error>(durations(&said))
    };
    let (by_cupti, by_events) = (table("")?, table("--events")?);
    let mut wrong = usize::from(by_cupti.is_empty());
    let mut text = String::from(
        "| Kernel of `graphs.cu` | Times by CUPTI | By events | Mean by CUPTI, µs | By events, µs |\n| --- | --: | --: | --: | --: |\n",
    );
    for row in &by_cupti {
        let mean = |row: &super::replays::Duration| row.total_us / row.occurrences.max(1) as f64;
        let other = by_events.iter().find(|other| {
            (&other.kernel, &other.grid, &other.block) == (&row.kernel, &row.grid, &row.block)
        });
        let times = other.map_or(0, |other| other.occurrences);
        wrong += usize::from(times != row.occurrences);
        text += &format!(
            "| `{}` | {} | {times} | {:.1} | {:.1} |\n",
            row.kernel,
            row.occurrences,
            mean(row),
            other.map_or(f64::NAN, mean)
        );
    }
    eprint!("{text}");
    Ok((text, wrong))
}
