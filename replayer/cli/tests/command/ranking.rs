// SPDX-License-Identifier: MIT OR Apache-2.0
//! The heaviest job and the cheapest candidate.

use gpureplay_kit::command::Words;

use crate::start::{Ended, Says, ran_in, recordings};

fn ran(words: &(impl Words + ?Sized)) -> (i32, String, String) {
    ran_in(&recordings(), words)
}

#[test]
fn jobs_are_sorted_with_their_shares() {
    let first = |words: &str| {
        let text = ran(&words.split(' ').collect::<Vec<_>>()).gave(0);
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
    let (code, _, error) = ran(&["jobs", "saxpy-g52", "--static", "--sort", "lines"]);
    assert!(code == 2 && error.contains("--sort"), "{error}");
}

#[test]
fn tune_finds_the_fewest_lines() {
    let words = "tune lenet-g52 --jobs 14 --local 1x4x4,25x4x2 --runs 0 --trials 1 --json --by";
    let words: Vec<&str> = words.split(' ').collect();
    let tuned = |by: &str| {
        let text = ran(&[&words[..], &[by]].concat()).gave(0);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let lines = tuned("lines");
    assert_eq!(lines["best"], 2);
    assert_eq!(lines["rows"][0]["cost"], 4000);
    assert_eq!(lines["rows"][2]["cost"], 948);
    assert!(tuned("work")["best"].is_null());
    let (code, _, error) = ran(&[&words[..], &["time"]].concat());
    assert!(code == 2 && error.contains("--runs"), "{error}");
}

#[test]
fn tune_finds_sizes_to_try_by_itself() {
    let words = "tune lenet-g52 --jobs 14 --runs 0 --trials 1 --json --by lines";
    let text = ran(&words.split(' ').collect::<Vec<_>>()).gave(0);
    let tuned: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = tuned["rows"].as_array().unwrap();
    let best = &rows[tuned["best"].as_u64().unwrap() as usize];
    // The best size found by hand.
    assert!(best["cost"].as_u64().unwrap() <= 948, "{best}");
    assert!(
        rows.len() > 4 && rows.iter().all(|row| row["standing"] != "wrong"),
        "{text}"
    );
}
