// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/unsafe.md has a section for each crate that docs/architecture.md says has unsafe code, and for no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::read_to_string(path.join(name)).expect("page")
}

/// The cells of a table between marks that `cargo xtask map` fills, without its head.
fn rows<'a>(architecture: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let (begin, end) = (
        format!("<!-- begin {name} -->"),
        format!("<!-- end {name} -->"),
    );
    let inside = architecture.split_once(&begin).expect("begin").1;
    let table = inside.split_once(&end).expect("end").0;
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// Folders of crates with unsafe code.
fn folders(architecture: &str) -> BTreeSet<&str> {
    let crates = rows(architecture, "crates");
    let folders: BTreeMap<&str, &str> = crates
        .iter()
        .map(|row| (row[1], row[0].trim_matches('`')))
        .collect();
    let names = rows(architecture, "unsafe");
    names
        .iter()
        .map(|row| *folders.get(row[0]).expect("a crate of the map"))
        .collect()
}

/// Folders that have a section, and whether it says what a block rests on.
fn sections(page: &str) -> BTreeMap<&str, bool> {
    let sections = page.split("\n## ").skip(1);
    sections
        .filter_map(|section| {
            let (folder, rest) = section.strip_prefix('`')?.split_once("`\n")?;
            let table = rest.split_once("| --- | --- | --- |\n");
            Some((
                folder,
                table.is_some_and(|(_, rows)| rows.starts_with("| ")),
            ))
        })
        .collect()
}

fn complaints(architecture: &str, page: &str) -> Vec<String> {
    let (folders, sections) = (folders(architecture), sections(page));
    let explained = |folder: &&str| sections.get(folder) == Some(&true);
    let missing = folders.iter().filter(|folder| !explained(folder));
    let known = |folder: &&&str| folders.contains(**folder);
    let too_many = sections.keys().filter(|folder| !known(folder));
    missing
        .map(|folder| format!("unsafe.md does not say what unsafe code in {folder} rests on"))
        .chain(too_many.map(|folder| format!("unsafe.md has {folder}, which has no unsafe code")))
        .collect()
}

#[test]
fn every_crate_with_unsafe_code_has_a_section() {
    let found = complaints(&page("architecture.md"), &page("unsafe.md"));
    assert!(found.is_empty(), "{}", found.join("; "));
}

#[test]
fn a_section_that_is_missing_empty_or_of_no_crate_is_found() {
    let (architecture, page) = (page("architecture.md"), page("unsafe.md"));
    assert!(folders(&architecture).len() >= 10);
    for folder in folders(&architecture) {
        let title = format!("\n## `{folder}`\n");
        let (before, section) = page.split_once(&title).expect("section");
        let (_, after) = section.split_once("\n## ").expect("another section");
        let without = format!("{before}\n## {after}");
        let empty = format!("{before}{title}\nNothing.\n\n## {after}");
        for changed in [without, empty] {
            let found = complaints(&architecture, &changed);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].ends_with(&format!("in {folder} rests on")));
        }
    }
    let more = format!("{page}\n## `replayer/format`\n");
    assert_eq!(complaints(&architecture, &more).len(), 1);
}
