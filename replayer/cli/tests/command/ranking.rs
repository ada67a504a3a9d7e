// SPDX-License-Identifier: MIT OR Apache-2.0
//! The heaviest job and the cheapest candidate.

use crate::start::{Ended, Says, json, ran_in, recordings};

fn ran(words: &str) -> (i32, String, String) {
    ran_in(&recordings(), words)
}

#[test]
fn jobs_are_sorted_with_their_shares() {
    let first = |words: &str| {
        let text = ran(words).gave(0);
        text.lines().nth(3).unwrap().to_owned()
    };
    let row = first("jobs lenet-g52 --sort lines --top 2 --jobs 10,11,14");
    row.says("im2col").says("32000  74.1 %");
    let row = first("jobs lenet-g52 --sort work --top 1 --jobs 10,13,14");
    assert!(
        row.trim_start().starts_with("13 ") && row.contains(" % "),
        "{row}"
    );
    let row = first("jobs lenet-g52 --by-kernel --sort lines --top 1 --jobs 10,14");
    row.says("7200  64.3 %");
    ran("jobs saxpy-g52 --static --sort lines").ended(2, "--sort");
}

#[test]
fn tune_finds_the_fewest_lines() {
    let words = "tune lenet-g52 --jobs 14 --local 1x4x4,25x4x2 --runs 0 --trials 1 --json --by";
    let tuned = |by: &str| json(&ran(&format!("{words} {by}")).gave(0));
    let lines = tuned("lines");
    assert_eq!(lines["best"], 2);
    assert_eq!(lines["rows"][0]["cost"], 4000);
    assert_eq!(lines["rows"][2]["cost"], 948);
    assert!(tuned("work")["best"].is_null());
    ran(&format!("{words} time")).ended(2, "--runs");
}

#[test]
fn tune_finds_sizes_to_try_by_itself() {
    let words = "tune lenet-g52 --jobs 14 --runs 0 --trials 1 --json --by lines";
    let text = ran(words).gave(0);
    let tuned = json(&text);
    let rows = tuned["rows"].as_array().unwrap();
    let best = &rows[tuned["best"].as_u64().unwrap() as usize];
    // The best size found by hand.
    assert!(best["cost"].as_u64().unwrap() <= 948, "{best}");
    assert!(
        rows.len() > 4 && rows.iter().all(|row| row["standing"] != "wrong"),
        "{text}"
    );
}
