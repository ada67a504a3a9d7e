// SPDX-License-Identifier: MIT OR Apache-2.0
//! Injected faults, retries and comparisons on the command line.

use crate::start::said as ran;

#[test]
fn a_fault_is_an_error_and_a_retry_gives_the_right_answer() {
    let (code, text) = ran("run digits-g52 --inject job-fault@150");
    assert!(code == 5 && text.contains("action "), "{text}");
    let (code, text) = ran("run digits-g52 --inject job-fault@250 --retry 1");
    assert!(
        code == 0 && text.contains("bit for bit") && text.contains("1 attempt failed"),
        "{text}"
    );
    for seed in 0..6 {
        let (code, text) = ran(&format!("run digits-g52 --inject {seed} --retry 2"));
        assert!(
            code == 0 && text.contains("bit for bit"),
            "seed {seed}: {text}"
        );
    }
    let (code, text) = ran("run digits-g52 --inject nonsense@3");
    assert!(code == 2 && text.contains("endless-poll"), "{text}");
}

#[test]
fn the_first_difference_is_named() {
    let (code, text) = ran("diff digits-g52 --against model");
    assert!(
        code == 0 && text.contains("agree after each of 12 chains"),
        "{text}"
    );
    // The second device misses the doorbell of a chain.
    let mut differed = 0;
    for call in [290, 300, 310, 320] {
        let (code, text) = ran(&format!(
            "diff digits-g52 --against model --inject lost-write@{call}"
        ));
        assert!(code == 0 || code == 1, "{text}");
        differed += code;
        if code == 1 {
            assert!(
                text.contains("chains") && text.contains("on the second"),
                "{text}"
            );
        }
    }
    assert!(differed > 0);
}
