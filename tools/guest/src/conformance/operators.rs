// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest operators`: Arm Compute Library against NumPy.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use gpureplay_task::measured::{self, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    build::payload,
    error::{Error, Result},
    files,
    folder::Folder,
    run::driver::Driver,
    run::session::{self, End, Options},
};

/// Runs Arm Compute Library's operators in the guest and compares their results with NumPy.
///
/// Cases follow from a seed; one program runs all. Each result is kept in target/guest/operators-GPU: --resume goes
/// on with a run that was ended.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 when every case was run and is right, or wrong for a cause in tools/guest/operators/causes.toml; 1 otherwise.

Examples:
  cargo xtask guest operators --write-doc
  cargo xtask guest operators --gpu g72 --seed 2
  cargo xtask guest operators --gpu g72 --resume
  cargo xtask guest operators --every 8 --json")]
pub(crate) struct Operators {
    /// Which GPU the model is.
    #[arg(long, default_value = "g52", value_name = "NAME")]
    gpu: String,
    /// Seed of shapes and values.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Only each N-th case.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Seconds until the run is given up.
    #[arg(long, default_value_t = 7200, value_name = "SECONDS")]
    timeout: u64,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
    /// Keep the results in measurements/operators-GPU.json.
    #[arg(long)]
    write_doc: bool,
    /// Go on with the last run on this GPU: run only the cases that have no result yet.
    #[arg(long, conflicts_with_all = ["seed", "every", "from"])]
    resume: bool,
    /// Run nothing: compare what an earlier run left in this folder.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Use programs and model server as they are.
    #[arg(long)]
    no_build: bool,
}

impl Operators {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        let causes = Causes::read(&folder)?;
        let results = match &self.from {
            Some(dir) => compare(&folder, dir)?,
            None => {
                folder.require_built()?;
                if !self.no_build {
                    payload::prepare(&folder, Driver::Stock)?;
                }
                let dir = folder.local.join(format!("operators-{}", self.gpu));
                if !self.resume {
                    if dir.exists() {
                        fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
                    }
                    files::create_dir(&dir)?;
                    generate(&folder, &dir, self.seed, self.every)?;
                }
                eprintln!("results: {}", dir.display());
                run(&folder, &dir, &self.gpu, self.timeout)?
            }
        };
        if self.write_doc {
            let name = format!("operators-{}", self.gpu);
            measured::keep(&name, &tables(&results, &causes))?;
        }
        if self.json {
            println!("{}", json!({ "gpu": self.gpu, "cases": results }));
        } else {
            print!("{}", text(&results, &causes));
        }
        let all_run = !results.is_empty() && count(&results, Verdict::Unrun) == 0;
        let good = unexplained(&results, &causes).is_empty() && all_run;
        Ok(ExitCode::from(u8::from(!good)))
    }
}

pub(crate) fn run_subset(folder: &Folder, gpu: &str) -> Result<(usize, Vec<String>)> {
    let causes = Causes::read(folder)?;
    let work = files::temporary()?;
    generate(folder, work.path(), 1, 8)?;
    let results = run(folder, work.path(), gpu, 900)?;
    let mut open = unexplained(&results, &causes);
    match count(&results, Verdict::Unrun) {
        0 => {}
        left => open.push(format!("{left} cases were not run")),
    }
    Ok((right(&results), open))
}

#[derive(Debug, Serialize, Deserialize)]
struct Judged {
    operator: String,
    r#type: String,
    result: Verdict,
    case: String,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Right,
    Wrong,
    Refused,
    Error,
    Crash,
    Unrun,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Right => "right",
            Verdict::Wrong => "wrong",
            Verdict::Refused => "refused",
            Verdict::Error => "error",
            Verdict::Crash => "crash",
            Verdict::Unrun => "not run",
        }
    }

    fn is_bad(self) -> bool {
        matches!(self, Verdict::Wrong | Verdict::Error | Verdict::Crash)
    }
}

/// Explains cases whose line has all `words`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cause {
    words: Vec<String>,
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Causes {
    cause: Vec<Cause>,
}

impl Causes {
    fn read(folder: &Folder) -> Result<Causes> {
        files::from_toml(folder.recipe().join("operators/causes.toml"))
    }

    fn of(&self, case: &str) -> Option<&str> {
        let has = |word: &String| case.contains(word.as_str());
        self.cause
            .iter()
            .find(|cause| cause.words.iter().all(has))
            .map(|cause| cause.why.as_str())
    }
}

fn generate(folder: &Folder, dir: &Path, seed: u32, every: u32) -> Result<()> {
    let (seed, every) = (seed.to_string(), every.to_string());
    payload::python(
        folder,
        &folder.recipe().join("operators/operators.py"),
        &[
            "generate".as_ref(),
            "--seed".as_ref(),
            seed.as_ref(),
            "--every".as_ref(),
            every.as_ref(),
            dir.as_os_str(),
        ],
    )
}

fn run(folder: &Folder, dir: &Path, gpu: &str, timeout: u64) -> Result<Vec<Judged>> {
    let script = dir.join("run.sh");
    fs::copy(folder.recipe().join("operators/run.sh"), &script)
        .map_err(Error::io("create", &script))?;
    let options = Options {
        gpu: gpu.into(),
        share: Some(dir.to_path_buf()),
        timeout: Duration::from_secs(timeout),
        ..Options::default()
    };
    let command = ["bash", "/share/run.sh"].map(String::from);
    let outcome = session::run(folder, &options, Some(&command))?;
    for fault in &outcome.faults {
        eprintln!("kernel log: {fault}");
    }
    match outcome.end {
        End::Exit(0) => {}
        End::Timeout => eprintln!("the time is up; --resume runs the other cases"),
        ref end => {
            outcome.print_logs();
            return Err(Error::Usage(format!("the guest ended early: {end:?}")));
        }
    }
    compare(folder, dir)
}

fn compare(folder: &Folder, dir: &Path) -> Result<Vec<Judged>> {
    let program = folder.recipe().join("operators/operators.py");
    payload::python(folder, &program, &["check".as_ref(), dir.as_os_str()])?;
    files::from_json(dir.join("results.json"))
}

fn right(results: &[Judged]) -> usize {
    count(results, Verdict::Right)
}

fn count(results: &[Judged], verdict: Verdict) -> usize {
    results.iter().filter(|one| one.result == verdict).count()
}

fn unexplained(results: &[Judged], causes: &Causes) -> Vec<String> {
    results
        .iter()
        .filter(|one| one.result.is_bad() && causes.of(&one.case).is_none())
        .map(|one| format!("{}: {} ({})", one.result.word(), one.case, one.detail))
        .collect()
}

fn text(results: &[Judged], causes: &Causes) -> String {
    let mut text = String::new();
    for one in results.iter().filter(|one| one.result.is_bad()) {
        let why = causes.of(&one.case).unwrap_or("open");
        let _ = writeln!(
            text,
            "{} {}: {} [{why}]",
            one.result.word(),
            one.case,
            one.detail
        );
    }
    let sums = [
        Verdict::Right,
        Verdict::Wrong,
        Verdict::Refused,
        Verdict::Error,
        Verdict::Crash,
        Verdict::Unrun,
    ]
    .map(|verdict| format!("{} {}", count(results, verdict), verdict.word()));
    text + &sums.join(", ") + "\n"
}

fn tables(results: &[Judged], causes: &Causes) -> [Table; 2] {
    let mut rows: BTreeMap<(&str, &str), [usize; 3]> = BTreeMap::new();
    for one in results.iter().filter(|one| one.result != Verdict::Unrun) {
        let row = rows.entry((&one.operator, &one.r#type)).or_default();
        match one.result {
            Verdict::Right => row[0] += 1,
            Verdict::Refused => row[2] += 1,
            _ => row[1] += 1,
        }
    }
    let (all, left) = (results.len(), count(results, Verdict::Unrun));
    let about = match left {
        0 => format!("{all} cases: {} right.", right(results)),
        _ => format!("{} of {all} cases: {} right.", all - left, right(results)),
    };
    let mut sums = Table::new(about, "Operator | Type | Right | Not right | Refused");
    for ((operator, kind), [right, wrong, refused]) in rows {
        sums.row(json!([operator, kind, right, wrong, refused]));
    }
    let mut bad = Table::new("", "Case | Result | Cause");
    for one in results.iter().filter(|one| one.result.is_bad()) {
        let open = format!("open: {}", one.detail);
        let why = causes.of(&one.case).unwrap_or(&open);
        bad.row(json!([one.case, one.result.word(), why]));
    }
    [sums, bad]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_cases_need_a_cause() {
        let judged = |result, case: &str| Judged {
            operator: "gemm".into(),
            r#type: "f32".into(),
            result,
            case: case.into(),
            detail: "3 of 4 elements".into(),
        };
        let results = [
            judged(Verdict::Right, "op=gemm t0=1x2:f32"),
            judged(Verdict::Wrong, "op=gemm t0=3x2:f32"),
            judged(Verdict::Crash, "op=gemm t0=4x2:f16"),
            judged(Verdict::Refused, "op=gemm t0=5x2:f32"),
            judged(Verdict::Unrun, "op=gemm t0=6x2:f32"),
        ];
        let causes: Causes =
            toml::from_str("[[cause]]\nwords = ['op=gemm', 'f16']\nwhy = 'known'\n")
                .expect("valid");
        let open = unexplained(&results, &causes);
        assert_eq!(open, ["wrong: op=gemm t0=3x2:f32 (3 of 4 elements)"]);
        let text = text(&results, &causes);
        assert!(
            text.ends_with("1 right, 1 wrong, 1 refused, 0 error, 1 crash, 1 not run\n"),
            "{text}"
        );
        let [sums, bad] = tables(&results, &causes).map(|table| table.to_string());
        assert!(sums.starts_with("4 of 5 cases: 1 right."), "{sums}");
        assert!(sums.contains("| gemm | f32 | 1 | 2 | 1 |"), "{sums}");
        assert!(
            bad.contains("| op=gemm t0=4x2:f16 | crash | known |"),
            "{bad}"
        );
    }
}
