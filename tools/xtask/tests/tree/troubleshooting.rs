// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/troubleshooting.md's messages are the sources'.

use std::{fs, path::Path};

fn sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).expect("folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                sources(&path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("source");
            for line in text.lines() {
                into.push_str(line.trim_start().trim_end_matches('\\'));
            }
        }
    }
}

#[test]
fn messages_of_the_page_stand_in_the_sources() {
    let top = super::top();
    let mut text = String::new();
    for folder in ["replayer", "mali", "model"] {
        sources(&top.join(folder), &mut text);
    }
    // The only file name that messages take from a constant.
    let text = text.replace("{FILE_NAME}", "recording.gpr");
    let page = fs::read_to_string(top.join("docs/troubleshooting.md")).expect("page");
    let mut messages = 0;
    for row in page.lines() {
        let Some(message) = row
            .strip_prefix("| `")
            .and_then(|row| row.split('`').next())
        else {
            continue;
        };
        messages += 1;
        for part in message.split(" … ") {
            assert!(text.contains(part), "no source says: {part}");
        }
    }
    assert!(messages > 20, "the page explains {messages} messages");
}
