// SPDX-License-Identifier: MIT OR Apache-2.0
//! `extract` and `judge`.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::stage::{Said, Stage, ended, recorded};

fn bench() -> Stage {
    let stage = recorded("scale");
    stage
        .run("extract rec#0 -o bench")
        .gave(0)
        .says("kernel.ptx from the image");
    stage
}

fn judged(stage: &Stage, habit: &str, words: &str) -> (Said, Value) {
    let text = stage.text("bench/kernel.ptx");
    let text = format!("{text}.visible .global .align 4 .u32 {habit};\n");
    stage.write("changed.ptx", text);
    let words = format!("judge bench/recording --image changed.ptx --seed 5 {words}");
    let said = stage.run(&words);
    crate::schema_check::assert_fits("cuda-judge", &said.out);
    let report = serde_json::from_str(&said.out).unwrap();
    (said, report)
}

fn check<'a>(report: &'a Value, what: &str) -> &'a str {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["what"] == what);
    found.map_or("absent", |check| check["verdict"].as_str().unwrap())
}

#[test]
fn a_launch_is_a_folder_with_all_that_it_needs() {
    let stage = bench();
    let text = stage.text("bench/launch.json");
    crate::schema_check::assert_fits("cuda-launch", &text);
    let launch: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(launch["kernel"], "scale");
    // scale(float *p, float factor, unsigned n)
    let parameters = launch["parameters"].as_array().unwrap();
    assert_eq!(parameters.len(), 3);
    let factor = f32::to_le_bytes(1.5).map(|byte| format!("{byte:02x}"));
    assert_eq!(parameters[1]["value"], factor.concat());
    let memory = &launch["memory"][parameters[0]["memory"].as_u64().unwrap() as usize];
    assert_eq!(memory["parameters"][0], 0);
    let numbers = |which: &str| -> Vec<f32> {
        let path = stage.path("bench").join(memory[which].as_str().unwrap());
        let bytes = fs::read(path).unwrap();
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|word| f32::from_le_bytes(*word)).collect()
    };
    let (before, after) = (numbers("before"), numbers("after"));
    let count = u32::from_str_radix(parameters[2]["value"].as_str().unwrap(), 16).unwrap();
    let count = count.swap_bytes() as usize;
    assert!(count > 0 && before[..count] != after[..count]);
    for (before, after) in before[..count].iter().zip(&after) {
        assert_eq!(before * 1.5, *after);
    }
    fs::rename(stage.path("rec"), stage.path("gone")).unwrap();
    stage.run("run bench/recording").gave(0);
    stage.run("extract gone#0 -o bench").gave(6).warns("bench");
}

#[test]
fn the_recorded_kernel_is_right_and_lesser_ones_are_not() {
    let stage = bench();
    let (said, report) = judged(&stage, "nothing", "");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(report["verdict"], "right");
    for what in ["recorded inputs", "permuted inputs", "after timing"] {
        assert_eq!(check(&report, what), "exact", "{report}");
    }
    assert_eq!(report["faster"], false);
    for habit in ["idles", "halves", "triples"] {
        let (said, report) = judged(&stage, habit, "");
        assert_eq!(said.code, Some(1), "{said:?}");
        assert_eq!(report["verdict"], "differs");
        assert_eq!(check(&report, "recorded inputs"), "differs");
        let words = report["differences"].as_array().unwrap();
        assert!(!words.is_empty() && words.len() <= 16, "{report}");
    }
    // Right at first, then always the same.
    let (_, repeats) = judged(&stage, "repeats", "");
    assert_eq!(check(&repeats, "recorded inputs"), "exact", "{repeats}");
    assert_eq!(check(&repeats, "permuted inputs"), "differs", "{repeats}");
    assert_eq!(repeats["verdict"], "differs");
    // Right until timed.
    let (_, rests) = judged(&stage, "rests", "--runs 50");
    assert_eq!(check(&rests, "recorded inputs"), "exact", "{rests}");
    assert_eq!(check(&rests, "after timing"), "differs", "{rests}");
    assert_eq!(rests["verdict"], "differs");
}

#[test]
fn recorded_inputs_alone_make_no_kernel_right() {
    for (task, verdict) in [("bump", "inconclusive"), ("again", "right")] {
        let stage = recorded(task);
        stage.run("extract rec#0 -o bench").gave(0);
        let said = stage.run("judge bench/recording --image bench/kernel.ptx");
        let report = said.json();
        assert_eq!(check(&report, "recorded inputs"), "exact", "{report}");
        assert_eq!(check(&report, "permuted inputs"), "skipped", "{report}");
        assert_eq!(report["verdict"], verdict, "{report}");
        assert_eq!(said.code, Some(i32::from(verdict != "right")));
    }
}

#[test]
fn what_cannot_be_judged_is_no_panic() {
    let stage = bench();
    stage.write(
        "other.ptx",
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry other() { ret; }\n",
    );
    let said = stage.run("judge bench/recording --image other.ptx").gave(1);
    let report = said.json();
    assert_eq!(report["verdict"], "fails");
    assert_eq!(report["reason"], "the image has no kernel scale");
    stage.write("none.ptx", "no image");
    stage.run("judge bench/recording --image none.ptx").gave(4);
    let idle = recorded("others");
    idle.run("extract rec#0 -o bench").gave(0);
    let said = idle
        .run("judge bench/recording --image bench/kernel.ptx")
        .gave(1);
    let report = said.json();
    assert_eq!(report["verdict"], "inconclusive", "{report}");
}

#[test]
fn the_script_gives_the_verdict() {
    let stage = bench();
    let run = |file: &str| {
        let command = stage.command("");
        let mut check = Command::new("sh");
        check.arg(stage.path("bench/check")).arg(file);
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                check.env(name, value);
            }
        }
        check.env("GPUREPLAY", command.get_program());
        ended(&mut check)
    };
    let said = run(stage.path("bench/kernel.ptx").to_str().unwrap()).gave(0);
    assert!(
        said.out
            .starts_with("{\"kernel\":\"scale\",\"verdict\":\"right\"")
    );
    run("missing.ptx").gave(4);
}

#[test]
fn python_opens_runs_and_judges_a_launch() {
    let has_numpy = Command::new("/usr/bin/python3")
        .args(["-c", "import numpy"])
        .output();
    if !has_numpy.is_ok_and(|done| done.status.success()) {
        println!("SKIPPED: no /usr/bin/python3 with NumPy");
        return;
    }
    let stage = bench();
    let module = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../replayer/c/python/gpureplay/cuda.py"
    );
    let program = format!(
        r#"
import importlib.util, sys, numpy as np
spec = importlib.util.spec_from_file_location("cuda", {module:?})
cuda = importlib.util.module_from_spec(spec)
sys.modules["cuda"] = cuda
spec.loader.exec_module(cuda)
with cuda.open("rec#0") as launch:
    assert launch.kernel == "scale" and launch.grid == (8, 1, 1), launch.report
    factor = launch.parameters[1].number(np.float32)
    x, y = launch.before(0, np.float32)[:1000], launch.after(0, np.float32)[:1000]
    assert factor == 1.5 and np.array_equal(x * factor, y) and x.any()
    same = launch.run(runs=2)
    assert same.verdict == "exact" and same.report["times"]["runs"] == 2
    assert np.array_equal(same.after(0, np.float32)[:1000], y)
    other = launch.run(inputs={{0: x + 7}})
    assert other.verdict == "unverified"
    assert np.array_equal(other.after(0, np.float32)[:1000], (x + 7) * factor)
    assert launch.judge(launch.folder / "kernel.ptx")["verdict"] == "right"
    tried = launch.tune(blocks="64 256")
    assert len(tried["tries"]) == 3, tried
    assert launch.analyse()["verdict"] == "exact"
    folder = launch.folder
    try:
        launch.run(inputs={{0: np.zeros(10**7, np.uint8)}})
        assert False
    except ValueError as error:
        assert "points at" in str(error)
assert not folder.exists()
with cuda.open("bench") as launch:
    assert launch.run().verdict == "exact"
try:
    cuda.open("missing#0")
    assert False
except cuda.Error as error:
    assert error.code == 3, error.code
print("done")
"#
    );
    let command = stage.command("");
    let mut python = Command::new("/usr/bin/python3");
    python.arg("-c").arg(program).current_dir(stage.path("."));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => python.env(name, value),
            None => python.env_remove(name),
        };
    }
    python.env("GPUREPLAY", command.get_program());
    let said = ended(&mut python);
    assert_eq!((said.code, said.out.trim()), (Some(0), "done"), "{said:?}");
}
