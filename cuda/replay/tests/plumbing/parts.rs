// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layers alone, and the first differing operation.

use std::fs;

use crate::stage::Stage;
use crate::whole::recorded;

#[test]
fn memory_that_a_region_allocates_is_empty_again_for_each_run() {
    let stage = Stage::new();
    stage
        .record("--run", "region accumulated")
        .warns("run 0 is recorded: 1 launches");
    stage.run("run rec --output out0=first").gave(0);
    stage
        .run("run rec --repeat 2 --state-out left --output out0=second")
        .gave(0);
    let read = |name: &str| stage.read(name);
    assert_ne!(read("first"), read("second"), "it adds to what is there");
    stage.run("diff rec --against recorded").gave(0);
    stage.run("jobs rec").says("launch");
}

#[test]
fn the_first_operation_that_differs_is_named() {
    let stage = recorded("region");
    let said = stage.run("diff rec --against recorded").gave(0);
    assert!(
        said.out.starts_with("memory is as recorded after each of"),
        "{said:?}"
    );
    let path = stage.path("rec/runs/0.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (head, operations) = text.split_once("[[operation]]").unwrap();
    let operations: Vec<&str> = operations.split("[[operation]]").collect();
    let changes = ["launch", "set", "copy"].map(|kind| format!("do = \"{kind}\""));
    let mut tried = 0;
    for left_out in 0..operations.len() {
        let one = operations[left_out];
        if !changes.iter().any(|kind| one.contains(kind)) {
            continue;
        }
        // A wait of the host in its place keeps other operations' numbers.
        let all = operations.iter().enumerate();
        let all = all.map(|(number, one)| match number == left_out {
            true => "\ndo = \"host-all\"\n\n",
            false => one,
        });
        let all: String = all.map(|one| format!("[[operation]]{one}")).collect();
        fs::write(&path, format!("{head}{all}")).unwrap();
        let said = stage.run("diff rec --against recorded").gave(1);
        let first = format!("after operation {left_out} memory is not as recorded\n");
        assert!(said.out.starts_with(&first), "{said:?}");
        let said = stage.run("diff rec --against recorded --json");
        let report = said.json();
        assert_eq!(report["same"], false, "{report}");
        crate::schema_check::assert_fits("diff", &said.out);
        tried += 1;
    }
    assert_eq!(tried, 6, "4 launches, 1 memset, 1 copy");
    let bare = text.lines().filter(|line| !line.starts_with("sums = "));
    fs::write(&path, bare.collect::<Vec<_>>().join("\n")).unwrap();
    stage
        .run("diff rec --against recorded")
        .gave(2)
        .warns("does not say what memory came to");
}

#[test]
fn the_first_layers_run_alone_and_leave_what_they_left() {
    let stage = Stage::new();
    stage.record("--run", "region ranges").gave(0);
    for words in [
        "--until outer",
        "--until 1",
        "--layers outer",
        "--layers ..outer",
    ] {
        stage
            .run(&format!("run rec {words} --state-out left"))
            .gave(0)
            .says("1 layers, up to outer: 3 launches")
            .says("memory as recorded");
    }
    stage.run("run rec --until last --output found").gave(0);
    let found = stage.read("found");
    stage.run("run rec --output whole").gave(0);
    assert_eq!(found, stage.read("whole"));
    // The last layer copies out the first's memory.
    let left = stage.read("left");
    assert!(left.windows(found.len()).any(|part| part == found));
    for (words, said) in [
        (
            "--until outer --output x",
            "layers up to outer do not copy it",
        ),
        ("--until middle", "outer"),
        (
            "--layers last..outer",
            "the last layer comes before the first",
        ),
    ] {
        stage.run(&format!("run rec {words}")).gave(2).warns(said);
    }
    stage
        .run("jobs rec --by-layer")
        .says("3 launches  outer")
        .says("0 launches  last");
    let timed = stage.run("jobs rec --by-layer --runs 3").out;
    assert_eq!(timed.matches(" us  ").count(), 2, "{timed}");
    let path = stage.path("rec/runs/0.toml");
    let text = fs::read_to_string(&path).unwrap();
    let changed = text.replacen("grid = [8, 1, 1]", "grid = [1, 1, 1]", 1);
    assert_ne!(changed, text);
    fs::write(&path, changed).unwrap();
    stage
        .run("run rec --until outer")
        .gave(1)
        .says("memory is not as recorded");
    stage
        .run("diff rec --against recorded")
        .says("in layer outer");
}
