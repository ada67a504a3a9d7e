// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --trace-lines` and `disasm`: numbers from the kernels' sources.

use serde_json::Value;

use crate::start::{Ended, Folder, json, ran_in, recordings, said, well};

fn trace(name: &str) -> Vec<Value> {
    let folder = Folder::default();
    let file = folder.at("trace");
    well(&format!(
        "run {name} --device best --trace-lines {}",
        file.display()
    ));
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

fn shaders(name: &str, words: &str) -> Vec<Value> {
    let out = ran_in(&recordings(), &format!("disasm {name} --json {words}")).gave(0);
    let report = json(&out);
    report["shaders"].as_array().unwrap().clone()
}

#[test]
fn saxpy_counts_follow_from_its_length() {
    const N: u64 = 1000;
    let jobs = trace("saxpy-g52");
    assert_eq!(jobs.len(), 1);
    let (job, work) = (&jobs[0], &jobs[0]["work"]);
    assert_eq!(job["type"], "COMPUTE");
    assert_eq!(job["status"], "DONE");
    let extent = |name: &str| -> u64 {
        let axes = job[name].as_array().unwrap();
        axes.iter().map(|axis| axis.as_u64().unwrap()).product()
    };
    assert_eq!(extent("workgroup_count") * extent("workgroup_size"), N);
    assert_eq!(work["threads"], N);
    // Per thread: two loads and a store of a float, a fused multiply-add, and addresses.
    assert_eq!(work["messages"]["load"], 2 * N);
    assert_eq!(work["messages"]["store"], N);
    assert_eq!(work["messages"].as_object().unwrap().len(), 2);
    assert_eq!(work["bytes_read"], 2 * 4 * N);
    assert_eq!(work["bytes_written"], 4 * N);

    // Once per thread: there are no branches.
    let shaders = shaders("saxpy-g52", "");
    assert_eq!(shaders.len(), 1);
    let text = shaders[0]["text"].as_str().unwrap();
    let count = |mark: &str| {
        let lines = text.lines().map(str::trim);
        lines
            .filter(|line| line.starts_with(mark))
            .filter(|line| !line.contains("NOP"))
            .count() as u64
    };
    assert_eq!(text.matches("*FMA.f32").count(), 1);
    assert_eq!(work["fma"], N * count("*"));
    assert_eq!(work["add"], N * (count("+") - 3));
}

#[test]
fn a_trace_and_a_disassembly_agree_on_kernels() {
    for name in ["saxpy-g52", "digits-g52", "acl-gemm-g52"] {
        let (jobs, shaders) = (trace(name), shaders(name, ""));
        for job in &jobs {
            let kernel = &job["kernel"];
            let shader = shaders
                .iter()
                .find(|shader| {
                    let jobs = shader["jobs"].as_array().unwrap();
                    jobs.contains(&job["job"])
                })
                .unwrap();
            assert_eq!(shader["hash"], kernel["hash"], "{name} {job}");
            assert_eq!(shader["address"], kernel["address"], "{name} {job}");
            assert_eq!(shader["clauses"], kernel["clauses"], "{name} {job}");
        }
    }
}

#[test]
fn disasm_finds_the_shader_of_a_job() {
    let all = shaders("digits-g52", "");
    let third = shaders("digits-g52", "--job 3");
    assert_eq!(third.len(), 1);
    let jobs = third[0]["jobs"].as_array().unwrap();
    assert!(jobs.contains(&Value::from(3)));
    let address = third[0]["address"].as_str().unwrap();
    assert_eq!(shaders("digits-g52", &format!("--shader {address}")), third);
    assert!(all.len() > 1);
    said("disasm digits-g52 --job 99").gave(2);
}

#[test]
fn the_table_has_a_line_for_each_job() {
    let text = well("run digits-g52 --trace -");
    assert_eq!(text.matches("  DONE\n").count(), 20, "{text}");
    said("run saxpy-g52 --json --trace -").gave(2);
}
