// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records and replays a region as a whole.

use std::fs;

use crate::app::region::INPUT;
use crate::stage::Stage;

pub(crate) fn recorded(task: &str) -> Stage {
    let stage = Stage::new();
    let alone = stage.alone(task);
    stage
        .record("--run", task)
        .answers_as(&alone)
        .warns("run 0 is recorded: 4 launches");
    stage
}

fn write_inputs(stage: &Stage, begin: [f32; 2]) {
    for (name, begin) in ["a.bin", "b.bin"].iter().zip(begin) {
        let numbers = (0..256).map(|index| begin + index as f32);
        let bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
        stage.write(name, bytes);
    }
}

#[test]
fn a_run_is_right_as_a_graph_and_as_launches() {
    let stage = recorded("region");
    for words in ["run rec", "run rec#run0 --no-graph", "run rec --runs 3"] {
        stage
            .run(words)
            .gave(0)
            .says("2 outputs as recorded, bit for bit");
    }
    let info = stage.run("info rec").out;
    for part in [
        "in0, 1024 bytes",
        "out1, 1024 bytes",
        "4 launches, in 2 streams",
        "4 times scale",
    ] {
        assert!(info.contains(part), "{part}: {info}");
    }
    stage
        .run("list rec")
        .says("4 launches, 2 inputs, 2 outputs");
    stage.run("verify rec").gave(0);
    stage.run("run rec --json").fits("cuda-whole-run");
}

#[test]
fn new_inputs_give_what_the_program_gives() {
    let stage = recorded("region");
    stage.answers("region", (INPUT, "50"), "answers").gave(0);
    write_inputs(&stage, [50.0, 1050.0]);
    for how in ["", "--no-graph"] {
        stage.run(&format!(
            "run rec --input in0=a.bin --input in1=b.bin --output out0=one --output out1=two {how}"
        )).gave(0);
        for name in ["one", "two"] {
            let answer = fs::read(stage.path("answers").join(name)).unwrap();
            assert_eq!(stage.read(name), answer, "{name}{how}");
            stage
                .run(&format!("run rec --output out0={name} {how}"))
                .gave(0);
            assert_ne!(stage.read(name), answer, "the input matters");
        }
    }
}

#[test]
fn ranges_of_the_program_are_layers_and_may_be_the_region() {
    for (words, layers, launches) in [
        ("--run", "layers      2: outer, last", 3),
        ("--region nvtx:outer", "", 0),
        ("--region nvtx:absent", "", 0),
    ] {
        let stage = Stage::new();
        let said = stage.record(words, "region ranges").gave(0);
        let refused = match words {
            "--region nvtx:outer" => "nothing is copied to the host in the region",
            "--region nvtx:absent" => "no range of NVTX is called absent",
            _ => "",
        };
        assert!(said.err.contains(refused), "{said:?}");
        if launches > 0 {
            assert!(
                said.err.contains("run 0 is recorded: 3 launches"),
                "{said:?}"
            );
            stage.run("info rec").says(layers);
            let text = stage.text("rec/runs/0.toml");
            for name in ["inner", "first", "second", "outer", "last"] {
                assert!(
                    text.contains(&format!("name = \"{name}\"\nfirst = ")),
                    "{name}: {text}"
                );
            }
            stage.run("run rec").gave(0);
        }
    }
}

#[test]
fn nodes_of_a_graph_are_operations_of_the_run() {
    let stage = Stage::new();
    stage
        .record("--run", "region nodes")
        .warns("run 0 is recorded: 2 launches, 1 inputs, 2 outputs");
    stage
        .answers("region nodes", (INPUT, "50"), "answers")
        .gave(0);
    write_inputs(&stage, [50.0, 0.0]);
    for how in ["", "--no-graph"] {
        stage.run(&format!("run rec {how}")).gave(0);
        let words = format!("run rec --input a.bin --output out0=one --output out1=two {how}");
        stage.run(&words).gave(0);
        for name in ["one", "two"] {
            let answer = fs::read(stage.path("answers").join(name)).unwrap();
            assert_eq!(stage.read(name), answer, "{name}{how}");
        }
    }
}

#[test]
fn rows_of_two_and_three_dimensions_are_copied_as_the_program_copies_them() {
    let stage = Stage::new();
    stage
        .record("--run", "region rows")
        .warns("run 0 is recorded: 2 launches, 1 inputs, 2 outputs");
    // Eight rows of 64 bytes in, a column of 8 out.
    let info = stage.run("info rec").out;
    for part in ["in0, 512 bytes", "out0, 64 bytes", "out1, 900 bytes"] {
        assert!(info.contains(part), "{part}: {info}");
    }
    stage
        .answers("region rows", (INPUT, "50"), "answers")
        .gave(0);
    let rows = (0..8).flat_map(|row| (0..16).map(move |at| (50 + 32 * row + at) as f32));
    let bytes: Vec<u8> = rows.flat_map(f32::to_le_bytes).collect();
    stage.write("x", bytes);
    for how in ["", "--no-graph"] {
        stage.run(&format!("run rec {how}")).gave(0);
        let words = format!("run rec --input x --output out0=one --output out1=two {how}");
        stage.run(&words).gave(0);
        let answer = |name: &str| fs::read(stage.path("answers").join(name)).unwrap();
        // The program's column has gaps between its rows.
        let column: Vec<u8> = answer("one")
            .chunks(32)
            .flat_map(|row| row[..8].to_vec())
            .collect();
        assert_eq!(stage.read("one"), column, "{how}");
        assert_eq!(stage.read("two"), answer("two"), "{how}");
    }
    let path = stage.path("rec/runs/0.toml");
    let text = fs::read_to_string(&path).unwrap();
    for (right, wrong) in [
        ("width = 64\nheight = 8", "width = 64\nheight = 9"),
        ("to = [96, 8]", "to = [60, 8]"),
        ("from = [100, 8]", "from = [18446744073709551, 8]"),
    ] {
        let changed = text.replacen(right, wrong, 1);
        assert_ne!(changed, text, "{right}");
        fs::write(&path, changed).unwrap();
        stage.run("run rec").gave(3);
    }
}

#[test]
fn a_function_of_the_host_is_a_wait() {
    let stage = recorded("region callback");
    for how in ["", "--no-graph"] {
        stage.run(&format!("run rec {how}")).gave(0);
    }
}

#[test]
fn a_replay_that_leaves_something_out_does_not_pass() {
    let stage = recorded("region");
    let path = stage.path("rec/runs/0.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (head, operations) = text.split_once("[[operation]]").unwrap();
    let operations: Vec<&str> = operations.split("[[operation]]").collect();
    let mut tried = 0;
    for left_out in 0..operations.len() {
        let kind = operations[left_out];
        let changes = ["launch", "set", "copy", "wait"];
        let Some(kind) = changes
            .iter()
            .find(|name| kind.contains(&format!("do = \"{name}\"")))
        else {
            continue;
        };
        let rest = operations.iter().enumerate();
        let rest = rest.filter(|(number, _)| *number != left_out);
        let rest: String = rest.map(|(_, one)| format!("[[operation]]{one}")).collect();
        fs::write(&path, format!("{head}{rest}")).unwrap();
        println!("without a {kind}:");
        stage.run("run rec").gave(1).says("not as recorded: ");
        tried += 1;
    }
    assert_eq!(tried, 8, "4 launches, 1 memset, 1 copy, 2 waits");
}

#[test]
fn memory_that_held_the_results_proves_nothing() {
    let stage = Stage::new();
    stage
        .record("--run", "region again")
        .warns("run 0 is recorded: 1 launches");
    stage
        .run("run rec")
        .gave(1)
        .says("memory held them already");
}

#[test]
fn memory_of_the_region_is_there_in_a_replay() {
    let stage = Stage::new();
    stage
        .record("--run", "region fresh")
        .warns("run 0 is recorded: 5 launches, 3 inputs");
    for how in ["", "--no-graph"] {
        stage.run(&format!("run rec {how}")).gave(0);
    }
}

#[test]
fn a_kernel_reads_a_variable_of_another_image() {
    let stage = Stage::new();
    stage
        .record("--run", "region elsewhere")
        .warns("run 0 is recorded: 1 launches, 1 inputs, 2 outputs");
    let text = stage.text("rec/runs/0.toml");
    assert!(text.contains("name = \"table\""), "{text}");
    for how in ["", "--no-graph"] {
        stage
            .run(&format!("run rec --output out0=table {how}"))
            .gave(0);
        let third = &stage.read("table")[8..12];
        assert_eq!(third, 7.5f32.to_le_bytes(), "2.5 three times");
    }
}

#[test]
fn what_a_region_cannot_hold_is_named_and_the_program_goes_on() {
    for (what, reason) in [
        (
            "told",
            "an input comes after the host may have read a result",
        ),
        ("array", "an array is copied"),
        ("capture", "a stream is captured into a graph"),
        (
            "graph",
            "a graph is launched: its graph was changed by cuGraphNodeSetEnabled",
        ),
        ("managed", "scale: it uses managed memory"),
        ("external", "scale: it uses memory at 0x"),
        ("texture", "idle: it reads a texture object"),
        ("late", "scale comes after the host may have read a result"),
        ("silent", "nothing is copied to the host in the region"),
    ] {
        let stage = Stage::new();
        let task = format!("region {what}");
        let alone = stage.alone(&task);
        let said = stage.record("--run", &task).answers_as(&alone);
        let reason = format!("the run is not recorded: {reason}");
        assert!(said.err.contains(&reason), "{what}: {said:?}");
        assert_eq!(stage.run("list rec").out, "", "{what}");
    }
}

#[test]
fn names_are_given_and_sizes_and_names_are_checked() {
    let stage = Stage::new();
    stage
        .record("--run --name in0=image --name out1=scores", "region")
        .gave(0);
    stage
        .run("info rec")
        .says("image, 1024")
        .says("scores, 1024");
    fs::write(stage.path("short"), [0; 12]).unwrap();
    for (words, code, said) in [
        (
            "run rec --input image=short",
            2,
            "has 12 bytes; the input image has 1024",
        ),
        (
            "run rec --input short",
            2,
            "say NAME=FILE with a name of the run: image, in1",
        ),
        (
            "run rec --output out1=x",
            2,
            "say NAME=FILE with a name of the run: out0, scores",
        ),
        ("run rec --block 4", 2, "--block is for launches"),
        ("run rec#run7", 3, "7.toml"),
        ("run rec#0 --input short", 2, "--input is for a whole run"),
    ] {
        stage.run(words).gave(code).warns(said);
    }
    for wrong in [
        "--run=launches=4..4",
        "--run=all",
        "--run --name in0",
        "--run --pick all",
    ] {
        stage.record(wrong, "region").gave(2);
    }
}

#[test]
fn a_region_of_launches_begins_and_ends_by_number() {
    // Four launches a turn: the first turn, with earlier copies; or the second, with or without a third.
    for (task, region, inputs) in [
        ("region", "0..4", 5),
        ("region", "4..8", 2),
        ("region turns", "4..8", 2),
    ] {
        let stage = Stage::new();
        let said = stage.record(&format!("--run=launches={region}"), task);
        let wanted = format!("run 0 is recorded: 4 launches, {inputs} inputs, 2 outputs");
        assert!(said.err.contains(&wanted), "{said:?}");
        stage.run("run rec").gave(0);
    }
}

#[test]
fn a_run_that_does_not_repeat_is_refused_for_other_inputs() {
    let stage = Stage::new();
    let said = stage.record("--run=launches=0..2", "others");
    let told = "run 0: a replay gives other outputs than recorded";
    assert!(said.err.contains(told), "{said:?}");
    let info = stage.run("info rec").out;
    let held = "does not hold for other inputs: a replay gives other outputs than recorded";
    assert!(info.contains(held), "{info}");
    stage.run("run rec").gave(1);
    fs::write(stage.path("x"), [0; 16]).unwrap();
    stage.run("run rec --input x").gave(2).warns("--unchecked");
    stage.run("run rec --input x --unchecked").gave(0);
}

#[test]
fn a_region_that_never_begins_is_told() {
    let stage = Stage::new();
    for (words, reason) in [
        (
            "--run",
            "no run is recorded: cuProfilerStart was not called",
        ),
        (
            "--run=launches=9..10",
            "no run is recorded: there were 2 launches, and it begins with 9",
        ),
    ] {
        stage.record(words, "scale").gave(0).warns(reason);
    }
}

#[test]
fn damage_is_told_before_anything_runs() {
    let stage = recorded("region");
    let path = &stage.objects()[0];
    let mut bytes = fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
    let said = stage.run("run rec");
    assert_eq!((said.code, &*said.out), (Some(3), ""), "{said:?}");
}
