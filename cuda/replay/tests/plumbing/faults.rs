// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every driver call fails once, recording and replaying.

use crate::stage::Stage;

/// More calls than any run makes.
const MANY: u32 = 2000;

#[test]
fn a_failing_call_leaves_the_program_as_it_would_be_alone_or_no_recording_that_is_wrong() {
    for (injected, call) in (1..MANY).enumerate() {
        let stage = Stage::new();
        let mut command = stage.with_app("record -o rec --pick all", "scale", "dlsym");
        let output = command
            .env("GPUREPLAY_FAKE_FAIL", call.to_string())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        let out = String::from_utf8_lossy(&output.stdout);
        // Its own answer or message; no panic.
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "call {call}: {output:?}"
        );
        assert!(
            out.contains("answer 30") || out.contains(" fails: CUDA_ERROR_UNKNOWN"),
            "call {call}: {output:?}"
        );
        assert!(!err.contains("panicked"), "call {call}: {output:?}");
        let list = stage.run("list rec").out;
        for line in list.lines() {
            let number = line.split_whitespace().next().unwrap();
            let replay = stage.run(&format!("run rec#{number}"));
            assert_eq!(replay.code, Some(0), "call {call}: {replay:?}");
        }
        if !err.contains("fails on purpose") {
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
        let output = command
            .env("GPUREPLAY_FAKE_FAIL", call.to_string())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!err.contains("panicked"), "call {call}: {output:?}");
        if !err.contains("fails on purpose") {
            assert_eq!(output.status.code(), Some(0), "{output:?}");
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
            assert!(
                matches!(output.status.code(), Some(4 | 5)),
                "call {call}: {output:?}"
            );
            let told = err.contains(&format!("{name} fails")) || err.contains("CUDA_ERROR_UNKNOWN");
            assert!(told, "call {call}: {output:?}");
        }
    }
    panic!("more than {MANY} calls");
}
