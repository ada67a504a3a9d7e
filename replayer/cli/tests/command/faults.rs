// SPDX-License-Identifier: MIT OR Apache-2.0
//! Injected faults, retries and comparisons.

use crate::start::{Ended, Says, said as ran};

#[test]
fn a_fault_is_an_error_and_a_retry_gives_the_right_answer() {
    ran("run digits-g52 --inject job-fault@150").ended(5, "action ");
    ran("run digits-g52 --inject job-fault@250 --retry 1")
        .ended(0, "bit for bit")
        .says("1 attempt failed");
    for seed in 0..6 {
        ran(&format!("run digits-g52 --inject {seed} --retry 2")).ended(0, "bit for bit");
    }
    ran("run digits-g52 --inject nonsense@3").ended(2, "endless-poll");
}

#[test]
fn the_first_difference_is_named() {
    ran("diff digits-g52 --against model").ended(0, "agree after each of 12 chains");
    // The second device misses a doorbell.
    let mut differed = 0;
    for call in [290, 300, 310, 320] {
        let (code, text) = ran(&format!(
            "diff digits-g52 --against model --inject lost-write@{call}"
        ));
        assert!(code == 0 || code == 1, "{text}");
        differed += code;
        if code == 1 {
            text.says("chains").says("on the second");
        }
    }
    assert!(differed > 0);
}
