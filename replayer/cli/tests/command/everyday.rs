// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times, packs, completions, the manual, failures as JSON.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::start::{Ended, Says, command, json};
use crate::user_files::Copy;

#[test]
fn finding_14_every_command_that_reads_a_recording_takes_its_pack() {
    let copy = Copy::of("saxpy-g52");
    copy.ran("pack rec -o a.pack").gave(0);
    for words in [
        "run a.pack",
        "info a.pack",
        "verify a.pack --deep",
        "bench a.pack --runs 1 --warmup 0",
        "dump a.pack",
        "disasm a.pack",
        "jobs a.pack",
        "diff a.pack --against model",
        "pack a.pack -o again.pack --force",
    ] {
        copy.ran(words).gave(0);
    }
    assert!(fs::read(copy.at("again.pack")).unwrap() == fs::read(copy.at("a.pack")).unwrap());
    copy.ran("keygen k").gave(0);
    copy.ran("sign --key k.pem a.pack")
        .ended(3, "give a recording's directory");
}

#[test]
fn finding_16_bench_has_statistics_and_compares_with_saved_ones() {
    let copy = Copy::of("saxpy-g52");
    let bench = |more: &str| copy.ran(&format!("bench rec --warmup 1 {more}"));
    let text = bench("--runs 12 -o old.json").gave(0);
    for word in ["mean", "deviation", "least", "most", "of 12 runs"] {
        text.says(word);
    }
    let report = json(&fs::read_to_string(copy.at("old.json")).unwrap());
    let (runs, summary) = (&report["run_seconds"], &report["summaries"]["run"]);
    let times: Vec<f64> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_f64().unwrap())
        .collect();
    let mean = times.iter().sum::<f64>() / 12.0;
    assert!((summary["mean"].as_f64().unwrap() - mean).abs() < mean * 1e-9);
    assert_eq!(
        summary["minimum"].as_f64(),
        times.iter().copied().reduce(f64::min)
    );
    assert_eq!(summary["runs"], 12);
    // Twelve runs have no 99th percentile, one no deviation.
    assert!(
        report["percentiles"]["run"]["p90"].is_f64()
            && report["percentiles"]["run"]["p99"].is_null()
    );
    assert!(!bench("--runs 1").1.contains("99 % of 1"));
    // Hours each: a busy machine cannot be as slow.
    let mut slow = report.clone();
    slow["summaries"]["run"]["mean"] = 10_000.0.into();
    slow["summaries"]["run"]["deviation"] = 1.0.into();
    fs::write(copy.at("slow.json"), slow.to_string()).unwrap();
    let text = bench("--runs 12 --compare slow.json").gave(0);
    let line = text
        .lines()
        .skip_while(|line| !line.contains("beside slow.json"))
        .nth(1)
        .unwrap();
    line.says("% less now");
    let (code, out, _) = bench("--runs 12 --compare slow.json --json");
    let change = json(&out)["comparison"]["times"]["run"]["change"]
        .as_f64()
        .unwrap();
    assert!(code == 0 && change < -0.5, "{change}");
    for wrong in [
        "{}",
        "[1]",
        "nonsense",
        r#"{"summaries":{"run":{"runs":1,"mean":-1,"deviation":0,"minimum":0,"maximum":0,"outliers":0}}}"#,
    ] {
        fs::write(copy.at("wrong.json"), wrong).unwrap();
        bench("--runs 1 --compare wrong.json").ended(4, "wrong.json");
    }
    let (code, out, _) = bench("--duration 0.3 --json");
    let report = json(&out);
    let sum: f64 = report["run_seconds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_f64().unwrap())
        .sum();
    assert!(code == 0 && sum < 60.0, "{sum}");
    for wrong in ["0", "-1", "NaN", "1e300", "x"] {
        bench(&format!("--duration={wrong}")).gave(2);
    }
}

#[test]
fn finding_16_ctrl_c_reports_the_runs_until_then() {
    let copy = Copy::of("saxpy-g52");
    let report = copy.interrupted("bench rec --runs 4000000000 --json");
    assert_eq!(report["interrupted"], true);
    assert!(!report["run_seconds"].as_array().unwrap().is_empty());
}

#[test]
fn finding_18_a_case_is_known_by_its_values() {
    let copy = Copy::of("digits-g52");
    let given = copy.at("rec/inputs/0.npy");
    assert!(given.exists());
    fs::copy(&given, copy.at("elsewhere.npy")).unwrap();
    let (code, out, error) = copy.ran("run rec --input elsewhere.npy");
    assert!(code == 0 && out.contains("matches"), "{out}{error}");
    let mut bytes = fs::read(&given).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x10;
    fs::write(copy.at("elsewhere.npy"), bytes).unwrap();
    let (code, out, error) = copy.ran("run rec --input elsewhere.npy");
    assert!(code == 0 && !out.contains("matches"), "{out}{error}");
}

#[test]
fn failures_are_json_where_json_is_asked_for() {
    let copy = Copy::of("saxpy-g52");
    for (words, code, kind) in [
        ("run nothing --json", 3, "recording"),
        ("run rec --input x=nothing.npy --json", 4, "input"),
        ("run rec --device model:g71 --json", 5, "device"),
        ("run rec --output nothing/o.npy --json", 6, "output"),
        ("run rec --layers 99.. --json", 2, "usage"),
        ("run rec --no-such-option --json", 2, "usage"),
        ("info nothing --json", 3, "recording"),
        ("bench nothing --json", 3, "recording"),
    ] {
        let (found, out, error) = copy.ran(words);
        assert_eq!(found, code, "{words}: {error}");
        let failure = &json(&out)["error"];
        assert_eq!(failure["kind"], kind, "{words}: {out}");
        assert_eq!(failure["exit_code"], code, "{words}");
        let first = failure["text"].as_str().unwrap().lines().next().unwrap();
        assert!(
            !first.is_empty() && error.contains(first),
            "{words}: {first:?} {error}"
        );
    }
    let (code, out, _) = copy.ran("verify nothing --json");
    assert!(code == 3 && json(&out)[0]["sound"] == false, "{out}");
    // The recorded app's words are its own.
    assert_eq!(copy.ran("run nothing").1, "");
    assert_eq!(copy.ran("record --device nothing -- true --json").1, "");
}

#[test]
fn shells_and_man_know_the_command() {
    let copy = Copy::of("saxpy-g52");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = copy.ran(&format!("completions {shell}"));
        assert!(code == 0 && script.contains("tolerance"), "{shell}");
    }
    fs::write(copy.at("script"), copy.ran("completions bash").1).unwrap();
    let complete = "source ./script; COMP_WORDS=(gpureplay ver); COMP_CWORD=1; _gpureplay gpureplay ver gpureplay; echo \"${COMPREPLY[@]}\"";
    let completed = Command::new("bash")
        .current_dir(copy.folder())
        .args(["-c", complete])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&completed.stdout).trim(), "verify");
    copy.ran("manual -o man").gave(0).says("pages");
    let mut page = String::new();
    let file = fs::File::open(copy.at("man/gpureplay-bench.1")).unwrap();
    BufReader::new(file).read_to_string(&mut page).unwrap();
    assert!(
        page.starts_with(".ie") && page.contains("\\-\\-compare"),
        "{page}"
    );
    assert_eq!(
        copy.ran("manual -o man").0,
        6,
        "pages are not replaced without --force"
    );
    copy.ran("manual -o man --force").gave(0);
    let (_, version, _) = copy.ran("--version");
    assert!(
        version.starts_with(concat!("gpureplay ", env!("CARGO_PKG_VERSION"))),
        "{version}"
    );
}

#[test]
fn nothing_is_coloured_but_on_a_terminal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let help = |no_color: bool| {
        let mut script = Command::new("script");
        script.args([
            "-qec",
            &format!("{} run --nonsense", env!("CARGO_BIN_EXE_gpureplay")),
            "/dev/null",
        ]);
        script
            .current_dir(folder)
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR");
        if no_color {
            script.env("NO_COLOR", "1");
        }
        let output = script.stdin(Stdio::null()).output().unwrap();
        BufReader::new(&*output.stdout)
            .lines()
            .map(Result::unwrap)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(help(false).contains("\x1b["), "{}", help(false));
    assert!(!help(true).contains("\x1b["), "{}", help(true));
    let output = command().args(["run", "--nonsense"]).output().unwrap();
    assert!(!output.stderr.contains(&0x1b));
}

#[test]
fn the_doctor_names_cuda_where_its_driver_is() {
    let copy = Copy::of("saxpy-g52");
    // The driver's stand-in, beside this test.
    let test = std::env::current_exe().unwrap();
    let fake = test.with_file_name("libgpureplay_cuda_fake.so");
    std::os::unix::fs::symlink(fake, copy.at("libcuda.so.1")).unwrap();
    let mut doctor = command();
    doctor.arg("doctor").env("LD_LIBRARY_PATH", copy.at(""));
    let output = doctor.output().unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{found}");
    found.says(" record --recorder cuda: ");
    let replay = found.split_once("Replay, best first\n").unwrap().1;
    assert!(replay.starts_with("ok   run of CUDA: "), "{found}");
}

#[test]
fn the_doctor_leads_with_the_ways_and_writes_a_report() {
    let copy = Copy::of("saxpy-g52");
    let (_, found, _) = copy.ran("doctor");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.first(), Some(&"Record, best first"), "{found}");
    for way in ["kernel", "user", "model"] {
        found.says(&format!(" record --recorder {way}: "));
    }
    found.says("ok   run --device model: ");
    found.says("\nNext: gpureplay r");

    let (_, printed, said) = copy.ran("doctor --report report.txt");
    assert!(printed.is_empty() && said.contains("report.txt"), "{said}");
    let report = fs::read_to_string(copy.at("report.txt")).unwrap();
    assert!(report.starts_with("gpureplay "), "{report}");
    let (ways, _) = found.split_once("\nChecks\n").unwrap();
    report.says(ways);
    let tests = report.split_once("Self test\n").unwrap().1;
    let own = Path::new(env!("CARGO_BIN_EXE_gpureplay")).parent().unwrap();
    let result = match own.join("../../recordings/saxpy-g52").is_dir() {
        true => "on model: right",
        false => "on model: not tried",
    };
    let (tests, bits) = tests.split_once("\nBits\n").unwrap();
    assert_eq!(tests.matches(result).count(), 2, "{tests}");
    match result.ends_with("right") {
        true => assert_eq!(bits.matches(": the same\n").count(), 19, "{bits}"),
        false => assert!(bits.contains("on model: not tried"), "{bits}"),
    }

    copy.ran("doctor --report report.txt").gave(6);
    copy.ran("doctor --report none/report.txt").ended(6, "none");
}
