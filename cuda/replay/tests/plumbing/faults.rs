// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every driver call fails once, recording and replaying.

use crate::app::RESOLVE;
use crate::stage::{Stage, ended};

/// More calls than any run makes.
const MANY: u32 = 2000;

#[test]
fn a_failing_call_leaves_the_program_as_it_would_be_alone_or_no_recording_that_is_wrong() {
    for (injected, call) in (1..MANY).enumerate() {
        let stage = Stage::new();
        let mut command = stage.with_app("record -o rec --pick all", "scale");
        command.env(RESOLVE, "dlsym");
        let found = ended(command.env("GPUREPLAY_FAKE_FAIL", call.to_string()));
        assert!(matches!(found.code, Some(0 | 1)), "call {call}: {found:?}");
        let is_told = found.out.contains(" fails: CUDA_ERROR_UNKNOWN");
        assert!(
            found.out.contains("answer 30") || is_told,
            "call {call}: {found:?}"
        );
        assert!(!found.err.contains("panicked"), "call {call}: {found:?}");
        let list = stage.run("list rec").out;
        for line in list.lines() {
            let number = line.split_whitespace().next().unwrap();
            stage.run(&format!("run rec#{number}")).gave(0);
        }
        if !found.err.contains("fails on purpose") {
            assert_eq!(
                list.lines().count(),
                2,
                "without a failure both launches are recorded"
            );
            assert!(injected > 40, "only {injected} calls");
            return;
        }
    }
    panic!("more than {MANY} calls");
}

#[test]
fn a_failing_call_fails_the_replay_with_its_name() {
    let stage = Stage::new();
    stage.record("", "scale").gave(0);
    for (injected, call) in (1..MANY).enumerate() {
        let mut command = stage.command("run rec#0 --runs 1");
        let found = ended(command.env("GPUREPLAY_FAKE_FAIL", call.to_string()));
        let err = &found.err;
        assert!(!err.contains("panicked"), "call {call}: {found:?}");
        if !err.contains("fails on purpose") {
            found.gave(0);
            assert!(injected > 30, "only {injected} calls");
            return;
        }
        let name = err
            .split("[fake] ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .unwrap();
        // Harmless: given back at the end anyway.
        if !matches!(name, "cuEventDestroy_v2" | "cuModuleUnload") {
            assert!(matches!(found.code, Some(4 | 5)), "call {call}: {found:?}");
            let told = err.contains(&format!("{name} fails")) || err.contains("CUDA_ERROR_UNKNOWN");
            assert!(told, "call {call}: {found:?}");
        }
    }
    panic!("more than {MANY} calls");
}
