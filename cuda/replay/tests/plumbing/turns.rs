// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares a run with later turns.

use std::fs;

use gpureplay_cuda_launch::recording::{Recording, Writer};

use crate::app::turns::{TURNS, input};
use crate::stage::{Said, Stage};

fn recorded(what: &str, words: &str) -> (Stage, Said) {
    let stage = Stage::new();
    let said = stage
        .record_turns(what, words)
        .says(&format!("answer {TURNS}"));
    assert!(
        !said.out.contains("cross-checked"),
        "only the program's output: {said:?}"
    );
    assert!(!stage.path("rec/turns").exists(), "{said:?}");
    (stage, said)
}

#[test]
fn turns_of_a_loop_are_found_without_the_profiler() {
    let stage = Stage::new();
    let said = stage.record("--run=turn", "turns plain unprofiled");
    // The first turn prepares; the fourth is the run, after two of the same work.
    let holds = "cross-checked: 1 later turns are reproduced, 1 of other inputs";
    assert!(said.err.contains(holds), "{said:?}");
    stage.run("run rec").gave(0).says("1 of 1 later turns");
    stage
        .record("--run=turn", "scale")
        .warns("no work was done three times");
}

#[test]
fn a_run_without_inputs_says_so_when_it_is_recorded_and_when_one_is_given() {
    let (stage, said) = recorded("alone", "");
    assert!(
        said.err.contains("0 inputs, 1 outputs; it takes nothing"),
        "{said:?}"
    );
    stage
        .run("run rec --input x.bin")
        .gave(2)
        .warns("--input x.bin: the run has none");
}

#[test]
fn a_turn_that_is_not_the_expected_one_leaves_no_pinned_memory() {
    let stage = Stage::new();
    let said = stage.traced("record --run=turn -o rec", "turns pinned unprofiled");
    // Recording begins with the fourth turn; its result goes to our memory, and the copy buffers stay.
    let back = said.err.matches("pinned memory is given back").count();
    assert_eq!(back, 1, "{said:?}");
}

fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    let mut lines = text.lines();
    lines.find(|line| line.contains(begin)).unwrap_or_default()
}

#[test]
fn a_run_that_holds_is_cross_checked_and_replays_later_turns() {
    for (what, words, addresses) in [
        ("padding", 1, 0),
        ("swap", 0, 3),
        ("plain", 0, 0),
        ("state", 0, 0),
    ] {
        let (stage, said) = recorded(what, "");
        let differs = format!("differs in {words} words and {addresses} addresses");
        assert!(said.err.contains(&differs), "{what}: {said:?}");
        let holds = "cross-checked: 3 later turns are reproduced, 3 of other inputs";
        assert!(said.err.contains(holds), "{what}: {said:?}");
        stage.run("info rec").says(holds);
        for how in ["", "--no-graph", "--runs 3"] {
            stage
                .run(&format!("run rec {how}"))
                .gave(0)
                .says("3 of 3 later turns as the program's");
        }
        stage.run("verify rec").gave(0);
        stage.run("run rec --json").fits("cuda-whole-run");
    }
}

#[test]
fn as_many_turns_are_kept_as_asked_for() {
    for (words, kept) in [
        ("--verify-inputs 0", 1),
        ("--verify-inputs 1", 2),
        ("--verify-inputs 9", 4),
    ] {
        let (stage, _) = recorded("plain", words);
        let said = stage.run("run rec");
        let expected = format!("{kept} of {kept} later turns");
        assert!(said.out.contains(&expected), "{words}: {said:?}");
    }
}

#[test]
fn numbers_of_the_host_are_named_and_given() {
    let (stage, said) = recorded("number", "");
    let named = line(&said.err, "host0");
    assert!(
        named.contains("scale, byte 8 of its parameters: 2.0, then 3.0, then 4.0, then 5.0"),
        "{said:?}"
    );
    assert!(
        !said.err.contains("host1"),
        "two places of one number: {said:?}"
    );
    stage
        .run("info rec")
        .says("host0, 2.0 when recorded, in 2 places");
    // Recorded inputs need no numbers; later turns have theirs.
    stage.run("run rec").says("3 of 3 later turns");
    stage.write("x", input(4));
    stage
        .run("run rec --input x --output y")
        .gave(2)
        .warns("host0 is a number that the program computes");
    for how in ["", "--no-graph"] {
        stage
            .run(&format!(
                "run rec --input x --output y --set host0=6.0 {how}"
            ))
            .gave(0);
        let answer = stage.read("answers/4");
        assert_eq!(stage.read("y"), answer, "{how}");
    }
    stage
        .run("run rec --input x --output y --unchecked")
        .gave(0);
    let answer = stage.read("answers/4");
    assert_ne!(stage.read("y"), answer, "the number matters");
    stage.run("run rec --set host7=1").gave(2);
    stage.run("run rec --set host0=much").gave(2);
}

#[test]
fn a_run_that_does_not_hold_says_why_and_is_refused() {
    for (what, reason) in [
        (
            "slot",
            "outputs depend on an address that the program chooses: operation 2, a copy or memset: 0x",
        ),
        ("outside", "turn 3 is not reproduced"),
    ] {
        let (stage, said) = recorded(what, "");
        assert!(said.err.contains(reason), "{what}: {said:?}");
        stage.run("info rec").says(reason);
        stage.write("x", input(4));
        stage.run("run rec --input x").gave(2).warns(reason);
        stage.run("run rec --input x --unchecked").gave(0);
        stage.run("run rec").gave(0);
    }
}

fn state(stage: &Stage, number: u32) -> String {
    let said = stage.run(&format!("info rec#run{number}"));
    line(&said.out, "turns ").to_owned()
}

#[test]
fn turns_of_other_sizes_are_other_work() {
    let (stage, said) = recorded("sizes", "");
    for (number, turns) in [(0, 2), (1, 1)] {
        let holds = format!("cross-checked: {turns} later turns are reproduced, {turns} of other");
        assert!(state(&stage, number).contains(&holds), "{said:?}");
    }
}

#[test]
fn turns_of_kernels_of_other_images_are_other_work() {
    let (stage, said) = recorded("image", "");
    assert!(state(&stage, 0).contains("not cross-checked"), "{said:?}");
    let holds = " cross-checked: 3 later turns are reproduced, 3 of other";
    assert!(state(&stage, 1).contains(holds), "{said:?}");
}

#[test]
fn a_run_is_cross_checked_from_its_own_memory() {
    // The host writes before the second turn: later ones follow from that.
    let (stage, said) = recorded("late", "");
    let reason = "from its own memory, it does not reproduce the later turns";
    assert!(state(&stage, 0).contains(reason), "{said:?}");
    stage.write("x", input(4));
    stage.run("run rec --input x").gave(2).warns(reason);
}

#[test]
fn inputs_that_no_turn_changed_are_named() {
    let (stage, said) = recorded("constant", "--name in1=mask");
    let reason =
        "3 of other inputs; mask is the same in all turns, so another one is not cross-checked";
    assert!(state(&stage, 0).contains(reason), "{said:?}");
    stage.write("x", input(4));
    stage.run("run rec --input mask=x").says(reason);
}

#[test]
fn what_was_not_compared_says_so() {
    let (stage, _) = recorded("same", "");
    let reason = "not cross-checked: 3 later turns are reproduced, all of the recorded inputs";
    stage.run("info rec").says(reason);
    let alone = Stage::new();
    alone.record("--run", "region");
    let reason = "not cross-checked: no second turn was recorded";
    alone.run("info rec").says(reason);
    alone.run("run rec").says(reason);
    alone.run("check rec").gave(2);
}

#[test]
fn a_kept_turn_that_is_not_reproduced_fails_the_replay() {
    let (stage, _) = recorded("plain", "");
    let path = stage.path("rec/runs/0.toml");
    let text = fs::read_to_string(&path).unwrap();
    let turns: Vec<&str> = text.split("[[turn]]").collect();
    assert_eq!(turns.len(), 4);
    let inputs = line(turns[1], "inputs");
    let wrong = text.replace(line(turns[2], "inputs"), inputs);
    assert_ne!(text, wrong);
    fs::write(&path, wrong).unwrap();
    stage.run("run rec").gave(1).says("1 of 3 later turns");
}

#[test]
fn whole_runs_are_signed() {
    let (stage, _) = recorded("plain", "");
    let key = gpureplay_sign::SecretKey::from_seed([7; 32]).unwrap();
    stage.write("k.pem", key.to_pem());
    stage.write("k.pub.pem", key.public().to_pem());
    stage
        .run("sign --key k.pem rec")
        .says("1 whole runs, 0 launches signed, counter 1");
    for command in ["run", "verify"] {
        stage
            .run(&format!("{command} rec --require-signature k.pub.pem"))
            .gave(0);
    }
    let path = stage.path("rec/runs/0.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("process = ", "process = 1", 1)).unwrap();
    for command in ["run", "verify"] {
        stage
            .run(&format!("{command} rec --require-signature k.pub.pem"))
            .gave(3)
            .warns("does not fit what it signs");
    }
    fs::remove_file(stage.path("rec/runs/0.sig")).unwrap();
    stage.run("run rec --require-signature k.pub.pem").gave(3);
}

#[test]
fn operations_are_listed_in_order_and_timed() {
    let (stage, _) = recorded("swap", "--name in0=x");
    let said = stage.run("jobs rec").gave(0);
    let parts = [
        "input x, 1.0 kB",
        "the host waits for the stream",
        "copy 1.0 kB",
        "launch 8x1x1 of 128x1x1: scale",
        "output out0, 1.0 kB",
    ];
    let lines: Vec<&str> = said.out.lines().collect();
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.ends_with(part), "{part}: {said:?}");
    }
    stage.run("bench rec --runs 3").says("of 3 runs");
    stage.record("", "scale").gave(0);
    stage.run("jobs rec#0").gave(2);
}

fn stored(stage: &Stage) -> u64 {
    let objects = stage.objects().into_iter();
    objects.map(|path| path.metadata().unwrap().len()).sum()
}

#[test]
fn what_a_run_writes_before_it_reads_it_is_left_out() {
    let (stage, said) = recorded("large", "--verify-inputs 1");
    assert!(
        said.err
            .contains("run 0: 131.1 kB that it writes before it reads them are left out"),
        "{said:?}"
    );
    stage.run("run rec").gave(0).says("2 of 2 later turns");
    stage.run("verify rec").gave(0);
    // Three incompressible inputs of 64 KiB, and no memory.
    assert!(stored(&stage) < 4 * (64 << 10), "{}", stored(&stage));
}

#[test]
fn memory_is_kept_if_no_turn_had_other_inputs() {
    let (stage, said) = recorded("large-same", "--verify-inputs 1");
    let text = "all of the recorded inputs";
    assert!(state(&stage, 0).contains(text), "{said:?}");
    assert!(!said.err.contains("are left out"), "{said:?}");
    assert!(said.err.contains("is kept"), "{said:?}");
    stage.run("run rec").gave(0);
}

#[test]
fn states_are_kept_in_files_and_continued() {
    let (stage, _) = recorded("state", "");
    stage.write("x", input(9));
    let answer = |turn: usize| stage.read(&format!("answers/{turn}"));
    let out = || stage.read("out");
    let run = |words: &str| {
        stage
            .run(&format!("run rec --output out0=out {words}"))
            .gave(0)
    };
    run("--repeat 3 --state-out s.safetensors").says("not compared");
    assert_eq!(out(), answer(2));
    run("--state-in s.safetensors --state-out t.safetensors --input x");
    assert_eq!(out(), answer(3));
    run("--state-in t.safetensors --no-graph");
    assert_eq!(out(), answer(4));
    run("");
    assert_eq!(out(), answer(0), "without a state it begins as recorded");
    let (other, _) = recorded("plain", "");
    fs::copy(stage.path("s.safetensors"), other.path("s.safetensors")).unwrap();
    // A state lacks what it shares with its own first memory.
    let folder = stage.path("rec");
    let mut run = Recording::open(&folder).unwrap().run(0).unwrap();
    let writer = Writer::create(&folder).unwrap();
    let mut memory = run.memory.iter_mut();
    let held = memory.find(|one| one.contents.is_some()).unwrap();
    let bytes = vec![1; usize::try_from(held.size).unwrap()];
    held.contents = Some(writer.store().put(&bytes).unwrap());
    writer.replace_run(0, &run).unwrap();
    for other in [stage, other] {
        other
            .run("run rec --state-in s.safetensors")
            .gave(2)
            .warns("holds the state of no such run");
    }
}
