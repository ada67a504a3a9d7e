// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of the pages are those of measurements/.

use std::{fs, path::Path};

use serde_json::Value;

fn cell(top: &Path, file: &str, table: usize, row: &str, column: usize) -> String {
    let path = top.join("measurements").join(file);
    let text = fs::read_to_string(&path).expect("measurements");
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    let rows = tables[table]["rows"].as_array().expect("rows");
    let found = rows.iter().find(|cells| cells[0] == row).expect(row);
    match &found[column] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn grouped(number: &str) -> String {
    match number.len() {
        0..4 => number.to_owned(),
        length => format!("{},{}", &number[..length - 3], &number[length - 3..]),
    }
}

fn first(text: &str) -> f64 {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    text[..end.unwrap_or(text.len())].parse().expect("a number")
}

#[test]
fn pages_state_what_was_measured() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let digits = |table, column| cell(&top, "startup.json", table, "digits-g52", column);
    let [cold, warm, replay] = [1, 2, 3].map(|column| first(&digits(0, column)));
    let memory = digits(1, 1);
    let [warm_memory, replay_memory] =
        [1, 2].map(|at| first(memory.split(", ").nth(at).expect("three sizes")).round());
    let accesses = digits(1, 3);
    let accesses: Vec<&str> = accesses.split(", ").collect();
    let interrupts = digits(1, 4);
    let interrupts: Vec<&str> = interrupts.split(", ").collect();
    let code = cell(&top, "size.json", 0, "verifier and engine", 3);
    let rows = [
        format!(
            "cold shader cache | {} ms | {replay} ms |",
            grouped(&cold.to_string())
        ),
        format!(
            "warm caches | {} ms | {replay} ms |",
            grouped(&warm.to_string())
        ),
        format!("peak memory, warm | {warm_memory} MB | {replay_memory} MB |"),
        format!(
            "register accesses of an inference | {} | {} |",
            accesses[0], accesses[2]
        ),
        format!(
            "interrupts of an inference | {} | {} |",
            interrupts[0], interrupts[2]
        ),
        format!("verifier and engine | | {} bytes |", grouped(&code)),
    ];
    let page = |name: &str| fs::read_to_string(top.join(name)).expect("page");
    let measurements = page("docs/measurements.md");
    for row in rows {
        assert!(
            measurements.contains(&row),
            "docs/measurements.md lacks: {row}"
        );
    }
    let readme = page("README.md");
    for stated in [
        format!(
            "after {:.1} s on the full stack (warm caches)",
            warm / 1000.0
        ),
        format!("after {replay} ms as a replay"),
        format!("Peak memory is {replay_memory} MB instead of {warm_memory} MB"),
    ] {
        assert!(readme.contains(&stated), "README.md lacks: {stated}");
    }
}
