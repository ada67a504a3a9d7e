// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of the pages are those of measurements/.

use std::{fs, path::Path};

use serde_json::Value;

fn row(top: &Path, file: &str, first: &[&str]) -> Vec<Value> {
    let path = top.join("measurements").join(file);
    let text = fs::read_to_string(&path).expect("measurements");
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    let rows = tables[0]["rows"].as_array().expect("rows");
    let mut rows = rows.iter().filter_map(Value::as_array);
    let found = rows.find(|cells| first.iter().zip(*cells).all(|(word, cell)| cell == word));
    found.expect("the row").clone()
}

fn grouped(number: &str) -> String {
    match number.len() {
        0..4 => number.to_owned(),
        length => format!("{},{}", &number[..length - 3], &number[length - 3..]),
    }
}

#[test]
fn pages_state_what_was_measured() {
    let top = super::top();
    let way = |way| row(&top, "startup.json", &["digits-g52", way]);
    let [cold, warm] = ["full stack, cold", "full stack, warm"].map(way);
    let [replay, nano] = ["replay, panfrost", "replay, nano driver"].map(way);
    let scaled = |cells: &[Value], column: usize, by: f64| {
        (cells[column].as_f64().expect("a number") * by).round()
    };
    let milliseconds = |cells: &[Value]| scaled(cells, 2, 1e3);
    let [memory, files] = [(4, 1.024e-3), (6, 1e-6)];
    let further = |column: usize| {
        let text = nano[column].as_str().expect("a replay and further ones");
        text.rsplit(' ').next().expect("a number").to_owned()
    };
    let code = row(&top, "size.json", &["verifier and engine"])[3].clone();
    let code = code
        .as_str()
        .map_or_else(|| code.to_string(), str::to_owned);
    let both = |(column, by)| {
        let [full, replayed] = [&warm, &replay].map(|cells| scaled(cells, column, by));
        (full, replayed)
    };
    let (full_memory, replay_memory) = both(memory);
    let (full_files, replay_files) = both(files);
    let replayed = milliseconds(&replay);
    let rows = [
        format!(
            "cold shader cache | {} ms | {replayed} ms |",
            grouped(&milliseconds(&cold).to_string())
        ),
        format!(
            "warm caches | {} ms | {replayed} ms |",
            grouped(&milliseconds(&warm).to_string())
        ),
        format!("peak memory, warm | {full_memory} MB | {replay_memory} MB |"),
        format!("mapped files | {full_files} MB | {replay_files} MB |"),
        format!(
            "register accesses of an inference | {} | {} |",
            grouped(&warm[8].to_string()),
            further(8)
        ),
        format!(
            "interrupts of an inference | {} | {} |",
            warm[9],
            further(9)
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
            milliseconds(&warm) / 1000.0
        ),
        format!("after {replayed} ms as a replay"),
        format!("Peak memory is {replay_memory} MB instead of {full_memory} MB"),
    ] {
        assert!(readme.contains(&stated), "README.md lacks: {stated}");
    }
}
