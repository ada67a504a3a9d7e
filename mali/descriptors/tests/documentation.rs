// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/jobs.md` says what the declarations say.

#[path = "../examples/tables.rs"]
mod tables;

#[test]
fn documentation_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/jobs.md");
    let text = std::fs::read_to_string(path).expect("docs/jobs.md");
    assert!(
        text.matches("<!-- table: ").count() >= 10,
        "tables are missing"
    );
    let renewed = tables::renew(&text).expect("markers");
    assert!(
        text == renewed,
        "run `cargo run -p mali-descriptors --example tables docs/jobs.md`"
    );
}

#[test]
fn wrong_markers_are_named() {
    let end = "<!-- end of table -->";
    for (text, problem) in [
        (
            "<!-- table: Job header -->\n",
            "the table 'Job header' has no end",
        ),
        (
            &format!("<!-- table: Jobs -->\n{end}"),
            "there is no table 'Jobs'",
        ),
        (
            &format!("<!-- table: parts of FUN jobs -->\n{end}"),
            "there is no table 'parts of FUN jobs'",
        ),
        (&format!("<!-- table: Draw\n{end}"), "a marker has no end"),
    ] {
        assert_eq!(tables::renew(text), Err(problem.to_owned()));
    }
    assert_eq!(tables::renew("no table").as_deref(), Ok("no table"));
}
