// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which job is the heaviest, and which candidate the cheapest: by work, memory lines or time.

use gpureplay_kit::command::Words;

use crate::start::{ran_in, recordings};

fn ran(words: &(impl Words + ?Sized)) -> (i32, String, String) {
    ran_in(&recordings(), words)
}

#[test]
fn jobs_are_sorted_with_their_shares() {
    let first = |words: &str| {
        let (code, text, error) = ran(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 0, "{error}");
        text.lines().nth(3).unwrap().to_owned()
    };
    let row = first("jobs lenet-g52 --sort lines --top 2 --jobs 10,11,14");
    assert!(
        row.contains("im2col") && row.contains("32000  74.1 %"),
        "{row}"
    );
    let row = first("jobs lenet-g52 --sort work --top 1 --jobs 10,13,14");
    assert!(
        row.trim_start().starts_with("13 ") && row.contains(" % "),
        "{row}"
    );
    let row = first("jobs lenet-g52 --by-kernel --sort lines --top 1 --jobs 10,14");
    assert!(row.contains("7200  64.3 %"), "{row}");
    let (code, _, error) = ran(&["jobs", "saxpy-g52", "--static", "--sort", "lines"]);
    assert!(code == 2 && error.contains("--sort"), "{error}");
}

#[test]
fn tune_finds_the_fewest_lines() {
    let words = "tune lenet-g52 --jobs 14 --local 1x4x4,25x4x2 --runs 0 --trials 1 --json --by";
    let words: Vec<&str> = words.split(' ').collect();
    let tuned = |by: &str| {
        let (code, text, error) = ran(&[&words[..], &[by]].concat());
        assert_eq!(code, 0, "{error}");
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
    let (code, text, error) = ran(&words.split(' ').collect::<Vec<_>>());
    assert_eq!(code, 0, "{error}");
    let tuned: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = tuned["rows"].as_array().unwrap();
    let best = &rows[tuned["best"].as_u64().unwrap() as usize];
    // The best of the sizes that were given by hand.
    assert!(best["cost"].as_u64().unwrap() <= 948, "{best}");
    assert!(
        rows.len() > 4 && rows.iter().all(|row| row["standing"] != "wrong"),
        "{text}"
    );
}
