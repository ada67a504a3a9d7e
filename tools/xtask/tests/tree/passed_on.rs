// SPDX-License-Identifier: MIT OR Apache-2.0
//! No register, descriptor or instruction leaves `mali` under another crate's name.

use std::{fs, path::Path};

/// All that crates of `mali` pass on of those that declare Mali; each is a product, a limit or a kind of work.
const PASSED_ON: [&str; 5] = [
    "pub use mali_facts::page_table::Format;",
    "pub use mali_facts::page_table::{PAGE_BYTES, VIRTUAL_BITS};",
    "pub use mali_facts::{Architecture, PROFILES, Product, Profile, Source, StreamGpu};",
    "pub use mali_isa::valhall::streams::Sequencer;",
    "pub use mali_isa::valhall::streams::{Compute, WalkError, text};",
];

fn passed_on(folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            passed_on(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let uses = text.split_inclusive(';').filter_map(|part| {
                let from = part.find("pub use mali_")?;
                Some(
                    part[from..]
                        .split_whitespace()
                        .collect::<Vec<_>>()
                        .join(" "),
                )
            });
            let declare = ["mali_facts", "mali_isa"];
            into.extend(uses.filter(|line| declare.iter().any(|name| line.contains(name))));
        }
    }
}

#[test]
fn crates_of_mali_pass_on_no_register() {
    let mali = super::top().join("mali");
    let mut found = Vec::new();
    for entry in fs::read_dir(mali).unwrap().flatten() {
        passed_on(&entry.path().join("src"), &mut found);
    }
    found.sort_unstable();
    assert_eq!(found, PASSED_ON);
}
