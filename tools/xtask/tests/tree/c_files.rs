// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel modules' C files form no circles.

use std::fs;

const MODULES: [(&str, &str); 2] = [
    ("nano-driver", "nano.h"),
    ("driver-patch/recorder", "recorder.h"),
];

fn file(line: &str) -> Option<&str> {
    let text = line.strip_prefix("/* ").or(line.strip_prefix(" * "))?;
    let (file, rest) = text.split_once(".c")?;
    let is_name = file
        .chars()
        .all(|letter| letter.is_alphanumeric() || letter == '_');
    (is_name && [" */", ". "].iter().any(|end| rest.starts_with(end))).then_some(file)
}

fn parts(header: &str) -> Vec<(&str, Vec<&str>)> {
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in header.lines() {
        if let Some(file) = file(line) {
            parts.push((file, Vec::new()));
        } else if let Some((_, names)) = parts.last_mut()
            && line.starts_with(char::is_alphabetic)
        {
            let end = line.find(['(', ';']).unwrap_or(line.len());
            let name = line[..end].rsplit([' ', '*']).next();
            names.extend(name.filter(|name| name.contains('_')));
        }
    }
    parts
}

/// Files that use what a later part of the header declares.
fn circles(header: &str, text_of: impl Fn(&str) -> String) -> Vec<String> {
    let parts = parts(header);
    let mut found = Vec::new();
    for (place, (file, _)) in parts.iter().enumerate() {
        let text = text_of(file);
        let words: Vec<&str> = text
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .collect();
        for (later, names) in &parts[place + 1..] {
            let used = names.iter().filter(|name| words.contains(name));
            found.extend(used.map(|name| format!("{file}.c uses {name} of {later}.c")));
        }
    }
    found
}

#[test]
fn files_of_the_modules_use_only_what_stands_above_them() {
    for (folder, header) in MODULES {
        let folder = super::top().join(folder);
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
        let header = read(header);
        assert!(
            parts(&header)
                .iter()
                .map(|(_, names)| names.len())
                .sum::<usize>()
                > 15
        );
        let found = circles(&header, |file| read(&format!("{file}.c")));
        assert_eq!(found, Vec::<String>::new());
    }
}

#[test]
fn a_circle_is_found() {
    let header =
        "/* low.c */\nint low_one(void);\n\n/* high.c */\nvoid *high_one(int a,\n\t\tint b);\n";
    let right = |file: &str| {
        (if file == "low" {
            "below_high_one()"
        } else {
            "low_one()"
        })
        .to_owned()
    };
    assert_eq!(circles(header, right), Vec::<String>::new());
    let found = circles(header, |_| "x = high_one(low_one());".to_owned());
    assert_eq!(found, ["low.c uses high_one of high.c"]);
}
