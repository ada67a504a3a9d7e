// SPDX-License-Identifier: MIT OR Apache-2.0
//! Large memory: compared and restored on the GPU, and here where that has no room.

use crate::stage::{Said, Stage, recorded};

fn run(stage: &Stage, words: &str, is_full: bool) -> Said {
    let mut command = stage.command(&format!("run {words}"));
    command
        .env("GPUREPLAY_FAKE_TRACE", "1")
        .env("GPUREPLAY_FAKE_FULL", u8::from(is_full).to_string());
    command.output().unwrap().into()
}

#[test]
fn large_memory_is_compared_on_the_gpu_as_it_is_here() {
    let stage = recorded("large");
    // Words, the exit code, and what is said.
    let tries = [
        ("rec#0", 0, "right, bit for bit"),
        ("rec#1 --runs 2", 0, "right, bit for bit"),
        ("rec#0 --tolerance 1e-6 --type f32", 0, "right, bit for bit"),
        ("rec#0 --grid 19532", 1, "differs in 2499908 elements"),
        ("rec#1 --grid 39063", 1, "differs in 2499905 elements"),
        // One block less: the last 67 numbers. The count of threads in a variable differs each time.
        ("rec#0 --grid 39062", 1, "differs in 68 elements"),
        ("rec#0 --null", 0, "null replay differs in 5000003"),
    ];
    for (words, code, answer) in tries {
        let code = Some(if words.contains("--null") { 1 } else { code });
        let [there, here] = [false, true].map(|is_full| run(&stage, words, is_full));
        for said in [&there, &here] {
            assert_eq!(said.code, code, "{words}: {said:?}");
            assert!(said.out.contains(answer), "{words}: {said:?}");
        }
        assert_eq!(there.out, here.out, "{words}: the same place and number");
        assert!(
            there.err.contains("gpureplay_compare"),
            "{words}: {there:?}"
        );
        assert!(!here.err.contains("gpureplay_compare"), "{words}: {here:?}");
    }
    let timed = run(&stage, "rec#1 --runs 2 --cache cold", false);
    for kernel in ["gpureplay_copy", "gpureplay_read"] {
        assert!(timed.err.contains(kernel), "{kernel}: {timed:?}");
    }
}
