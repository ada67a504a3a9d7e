// SPDX-License-Identifier: MIT OR Apache-2.0
//! No launch is missed in silence.

use crate::stage::{Said, Stage, ended};

fn said(stage: &Stage, words: &str, task: &str) -> Said {
    let words = words.replace("CUPTI", &stage.path("libcuda.so.1").display().to_string());
    stage.app(&words, task)
}

#[test]
fn events_time_the_kernels_of_graphs_one_by_one() {
    for (task, row) in [
        ("graph", "scale,1x1x1,32x1x1,4,5.000,1.250"),
        ("captured", "scale,8x1x1,32x1x1,4,5.000,1.250"),
    ] {
        let stage = Stage::new();
        let alone = stage.alone(task);
        let timed = said(&stage, "durations --events --csv", task).gave(0);
        assert!(timed.out.starts_with(&alone.out), "{timed:?}");
        assert!(timed.out.contains(row), "{timed:?}");
    }
    let stage = Stage::new();
    said(&stage, "durations --events --csv", "refused graphs")
        .warns("scale is not timed: a node of its graph records an event");
}

#[test]
fn kernels_that_a_node_decides_upon_are_refused_by_name() {
    let stage = Stage::new();
    let alone = stage.alone("conditional");
    let reason = "scale is not recorded: a node of its graph decides what runs";
    stage
        .record("--pick all", "conditional")
        .answers_as(&alone)
        .warns(reason)
        .warns("1 recorded, 1 wanted but not recorded");
    said(&stage, "durations --events --csv", "conditional")
        .warns("scale is not timed: a node of its graph decides what runs");
    let other = stage.record("--pick all --kernel other", "conditional");
    assert!(!other.err.contains("is not recorded"), "{other:?}");
}

#[test]
fn what_the_hooks_saw_is_what_the_profiler_saw_or_the_command_fails() {
    let stage = Stage::new();
    let alone = stage.alone("graph");
    for words in [
        "durations --csv --strict --cupti CUPTI",
        "record --pick all -o rec --strict --cupti CUPTI",
    ] {
        let same = said(&stage, words, "graph").gave(0);
        assert!(same.out.starts_with(&alone.out), "{same:?}");
        assert!(
            same.err
                .contains("4 launches of 1 kernels: the hooks saw what CUPTI saw"),
            "{same:?}"
        );
        said(&stage, words, "others").warns("2 launches of 2 kernels");
        said(&stage, words, "conditional")
            .gave(1)
            .warns("scale: the hooks saw 1 launches, CUPTI 3");
        said(&stage, &words.replace("CUPTI", "absent.so"), "graph")
            .gave(1)
            .warns("CUPTI counts nothing here");
    }
    let mut command = stage.command("record --strict -o rec --cupti");
    let none = ended(command.arg(stage.path("libcuda.so.1")).args(["--", "true"]));
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(
        none.err.contains("no process told of its launches"),
        "{none:?}"
    );
}
