// SPDX-License-Identifier: MIT OR Apache-2.0
//! Graphs, linked images, limits of contexts, and arenas.

use crate::stage::{Said, Stage};

fn recorded(words: &str, task: &str, launches: usize) -> (Stage, Said) {
    let stage = Stage::new();
    let alone = stage.alone(task).gave(0);
    let said = stage.record(words, task).answers_as(&alone);
    let list = stage.run("list rec");
    assert_eq!(list.out.lines().count(), launches, "{list:?} {said:?}");
    for number in 0..launches {
        stage.run(&format!("run rec#{number}")).gave(0);
        stage.run(&format!("run rec#{number} --null")).gave(1);
    }
    (stage, said)
}

#[test]
fn kernels_of_a_graph_built_by_hand_are_recorded_one_by_one() {
    let (stage, said) = recorded("--pick all", "graph", 4);
    assert!(said.out.contains("answer 30"), "{said:?}");
    assert!(
        said.err
            .contains("4 launches, 4 of them in 2 graph launches, 0 into a capture, 4 recorded"),
        "{said:?}"
    );
    stage
        .run("info rec#3")
        .says("cuGraphLaunch")
        .says("after 3 others");
    // It has the parameters set after instantiation.
    stage
        .run("diff rec#1 rec#3")
        .says("parameter 1: 3fc00000, 41200000");
    let (_, second) = recorded("--pick 1", "graph", 1);
    assert!(second.err.contains("1 recorded"), "{second:?}");
}

#[test]
fn captured_kernels_are_recorded_when_their_graph_runs() {
    let (_, said) = recorded("--pick all", "captured", 4);
    assert!(said.out.contains("answer 36"), "{said:?}");
    assert!(
        said.err.contains(
            "4 launches, 4 of them in 2 graph launches, 4 into a capture, 4 recorded, 0 wanted"
        ),
        "{said:?}"
    );
}

#[test]
fn graphs_that_cannot_be_launched_node_by_node_are_named() {
    let (_, said) = recorded("--pick all", "refused graphs", 0);
    for reason in [
        "scale is not recorded: a node of its graph records an event",
        "scale is not recorded: its graph was changed by cuGraphNodeSetEnabled",
    ] {
        assert!(said.err.contains(reason), "{said:?}");
    }
    assert!(
        said.err.contains("2 launches, 2 of them in 2 graph"),
        "{said:?}"
    );
}

#[test]
fn a_linked_image_is_kept_although_the_link_is_destroyed() {
    let (stage, _) = recorded("--pick all", "linked", 1);
    stage.run("verify rec").gave(0);
}

#[test]
fn limits_of_the_context_are_those_of_the_recorded_process() {
    let (stage, _) = recorded("", "heap", 1);
    let path = stage.path("rec/launches/0.toml");
    let good = std::fs::read_to_string(&path).unwrap();
    assert!(
        good.contains("limits = [[\n    2,\n    305397760,\n]]") || good.contains("305397760"),
        "{good}"
    );
    // Another limit means another heap.
    std::fs::write(&path, good.replace("305397760", "305397761")).unwrap();
    stage.run("run rec#0").gave(1);
    std::fs::write(&path, good.replace("305397760", "9000000000000")).unwrap();
    stage.run("run rec#0").gave(3).warns("limits are not those");
}

#[test]
fn memory_of_the_arena_lies_where_every_process_has_room() {
    for task in ["scale", "chase", "bump", "many"] {
        let launches = if matches!(task, "scale" | "many") {
            2
        } else {
            1
        };
        let (stage, _) = recorded("--pick all --alloc arena", task, launches);
        let info = stage.run("info rec#0").out;
        let regions = info.lines().filter(|line| line.contains("region "));
        let mut count = 0;
        for region in regions {
            assert!(region.contains("0x10000"), "{region}");
            count += 1;
        }
        assert!(count > 0 || task == "bump", "{info}");
    }
    Stage::new().record("--alloc pool", "scale").gave(2);
}

#[test]
fn chunks_that_another_recording_holds_are_linked() {
    use std::os::unix::fs::MetadataExt;
    let (stage, _) = recorded("--pick all", "scale", 2);
    let folder = stage.path("rec");
    std::fs::rename(&folder, stage.path("first")).unwrap();
    let first = stage.path("first").display().to_string();
    stage
        .record(&format!("--pick all --share {first}"), "scale")
        .gave(0);
    let objects = stage.objects();
    for object in &objects {
        assert_eq!(object.metadata().unwrap().nlink(), 2);
    }
    assert!(objects.len() > 4, "{objects:?}");
    std::fs::remove_dir_all(stage.path("first")).unwrap();
    stage.run("verify rec").gave(0);
    stage.run("run rec#1").gave(0);
    stage.record("--share absent", "scale").gave(3);
}
