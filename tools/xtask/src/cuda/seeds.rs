// SPDX-License-Identifier: MIT OR Apache-2.0
//! Features of the tools that ours replace.

use std::fs;

use super::{
    Bench, Found,
    programs::{build_one_of_ours, nvcc},
    replays::{named, of},
};
use crate::{error::Result, files};
use gpureplay_task::output;

struct Row {
    tool: &'static str,
    feature: &'static str,
    words: String,
    /// If false, it must say why it fails.
    ends_well: bool,
    says: &'static [&'static str],
    /// A file, and its least number of lines.
    writes: Option<(&'static str, usize)>,
}

const LLNL: &str = "LLNL";
const LLVM: &str = "LLVM";
const LOG: &str = "logduration";
const PROBE: &str = "omniprobe";

fn row(tool: &'static str, feature: &'static str, words: impl Into<String>) -> Row {
    Row {
        tool,
        feature,
        words: words.into(),
        ends_well: true,
        says: &[],
        writes: None,
    }
}

impl Row {
    fn says(mut self, says: &'static [&'static str]) -> Self {
        self.says = says;
        self
    }

    fn writes(mut self, file: &'static str, lines: usize) -> Self {
        self.writes = Some((file, lines));
        self
    }

    fn fails(mut self) -> Self {
        self.ends_well = false;
        self
    }
}

fn rows(stride: &str, plane: &str, programs: &str) -> Vec<Row> {
    const RIGHT: &[&str] = &["right, bit for bit"];
    vec![
        row(
            LLNL,
            "named kernels of an executable as it is",
            "record -v -o named --kernel ^plane$ -- ./tunable",
        )
        .says(&["results right"])
        .writes("named/launches/0.toml", 10),
        row(LLNL, "a database of launches", "list seeds").says(&["stride", "plane", "reuse"]),
        row(
            LLNL,
            "other code: PTX",
            format!("run {stride} --image work/kernel.ptx"),
        )
        .says(RIGHT),
        row(
            LLNL,
            "other code: a cubin",
            format!("run {stride} --image same/tunable.cubin"),
        )
        .says(RIGHT),
        row(
            LLNL,
            "launch bounds",
            format!("run {plane} --max-threads 256 --min-blocks 8"),
        )
        .says(RIGHT),
        row(
            LLNL,
            "search of blocks and grids, as CSV",
            format!("tune {stride} --blocks 128..512 --grids 132..1056 --runs 5 --csv grid.csv"),
        )
        .says(&["best: "])
        .writes("grid.csv", 1 + 1 + 12),
        row(
            LLNL,
            "several streams",
            "record -v -o streams-1 --strict -- ./streams",
        )
        .says(&["the hooks saw what CUPTI saw"]),
        row(
            LLVM,
            "repetitions, times, verification of each bit",
            format!("run {stride} --runs 5"),
        )
        .says(&["5 runs", "right, bit for bit"]),
        row(
            LLVM,
            "threads beyond the limit",
            format!("run {stride} --block 2048"),
        )
        .fails()
        .says(&["1024"]),
        row(
            LLVM,
            "teams beyond the limit",
            format!("run {stride} --grid 1,70000"),
        )
        .fails()
        .says(&["65535"]),
        row(
            LLVM,
            "a report: file, kernel, sizes, occurrences, time",
            "list seeds --durations times.json",
        )
        .says(&["launches/0.toml, ", " launches, mean "]),
        row(
            LLVM,
            "memory after the replay as files",
            format!("run {stride} --save-output saved"),
        )
        .says(RIGHT)
        .writes("saved/memory.csv", 3),
        row(
            LLVM,
            "no verification",
            format!("run {stride} --no-verify --runs 3"),
        )
        .says(&["3 runs"]),
        row(
            LOG,
            "durations without a profiler",
            "durations --events -- ./tunable",
        )
        .says(&["stride", "plane"]),
        row(
            LOG,
            "a line for each dispatch, in a file",
            "durations --log log.csv -- ./tunable",
        )
        .writes("log.csv", 1 + 90),
        row(
            LOG,
            "a line for each dispatch, on the console",
            "durations --events --log - -- ./tunable",
        )
        .says(&[",stride,32x1x1,64x1x1,"]),
        row(
            LOG,
            "a kernel of an image in the running program",
            "replace other/tunable.cubin -- ./tunable",
        )
        .fails()
        .says(&["number 1 is wrong"]),
        row(
            LOG,
            "a folder of images as kernel cache",
            "replace other -- ./tunable",
        )
        .fails()
        .says(&["number 1 is wrong"]),
        row(
            LOG,
            "the same where its kernels are right",
            "replace same -- ./tunable",
        )
        .says(&["results right"]),
        row(
            LOG,
            "replaced and timed in one run",
            "replace --durations same -- ./tunable",
        )
        .says(&["results right", "original us", "stride"]),
        row(
            PROBE,
            "own probes at loads, stores and blocks",
            format!("analyse {stride} --what heat --probe {programs}/probe.ptx"),
        )
        .says(&["kinds 16777216 16777216 0 "]),
    ]
}

fn cubins(bench: &Bench) -> Result<()> {
    let text = files::text(bench.programs.join("tunable.cu"))?;
    for (folder, factor) in [("same", "2"), ("other", "3")] {
        let path = bench.work.path().join(folder);
        files::create_dir(&path)?;
        let changed = path.join("tunable.cu");
        let text = text.replace("= 2 * from[i]", &format!("= {factor} * from[i]"));
        files::write(&changed, text)?;
        let mut command = std::process::Command::new("nvcc");
        command.current_dir(&path).args([
            "-O3",
            "-std=c++17",
            "-arch=sm_90",
            "-cubin",
            "tunable.cu",
        ]);
        output(&mut command)?;
    }
    Ok(())
}

pub(super) fn seeds(bench: &Bench) -> Found {
    build_one_of_ours(bench, "tunable.cu", "tunable")?;
    nvcc(bench, "threads.cu", "streams", &[])?;
    cubins(bench)?;
    bench.output("record -o seeds -- ./tunable")?;
    bench.output("durations --json -o times.json -- ./tunable")?;
    let all = named(bench, "seeds")?;
    let (stride, plane) = (of(&all, "stride"), of(&all, "plane"));
    bench.output(&format!("extract {stride} -o work"))?;
    let mut wrong = 0;
    let mut text =
        String::from("| Of | Feature | `gpureplay cuda` | |\n| --- | --- | --- | --- |\n");
    for row in rows(stride, plane, &bench.programs.display().to_string()) {
        let (ended_well, said) = bench.start(&row.words)?;
        let missing = row.says.iter().find(|words| !said.contains(**words));
        let lines = row.writes.map(|(file, least)| {
            let path = bench.work.path().join(file);
            let lines = fs::read_to_string(path).map_or(0, |text| text.lines().count());
            (lines, least)
        });
        let is_good = ended_well == row.ends_well
            && missing.is_none()
            && lines.is_none_or(|(lines, least)| lines >= least);
        if !is_good {
            eprintln!("{}: {missing:?}, lines {lines:?}: {said}", row.words);
        }
        wrong += usize::from(!is_good);
        let folder = bench.programs.display().to_string();
        let words = row.words.replace(&folder, "cuda/programs");
        let result = if is_good { "yes" } else { "no" };
        let row = format!(
            "| {} | {} | `{words}` | {result} |\n",
            row.tool, row.feature
        );
        eprint!("{row}");
        text += &row;
    }
    Ok((text, wrong))
}
