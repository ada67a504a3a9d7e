// SPDX-License-Identifier: MIT OR Apache-2.0
//! Old names of flags and commands; the list is complete.

use clap::Command;

/// Old, new. `tests/command/old_names.rs` runs those that differ in more than names.
const OLD: &[(&str, &str)] = &[
    ("compile t --input a=b -o d", "compile t --reads a=b -o d"),
    ("compile t -i a=b -o d", "compile t --reads a=b -o d"),
    ("compile t --output-directory d", "compile t --output d"),
    (
        "compile t -o d --most-jobs 3",
        "compile t -o d --max-jobs 3",
    ),
    ("record --input a=b -- x", "record --reads a=b -- x"),
    ("record -i a=b -- x", "record --reads a=b -- x"),
    ("record --output-directory d -- x", "record --output d -- x"),
    ("record --most-jobs 3 -- x", "record --max-jobs 3 -- x"),
    ("import d -d x.toml", "import d --description x.toml"),
    ("import d -w x", "import d --weights x"),
    ("bench r --export-json x", "bench r --output x"),
    ("patch r --job 1", "patch r --jobs 1"),
    ("patch r --jobs 1 --inputs 2", "patch r --jobs 1 --trials 2"),
    ("tune r --job 1", "tune r --jobs 1"),
    ("tune r --jobs 1 --inputs 2", "tune r --jobs 1 --trials 2"),
    ("tune r --jobs 1 --csv x", "tune r --jobs 1 --table x"),
    (
        "retarget r --gpu g31 -o d --inputs 2",
        "retarget r --gpu g31 -o d --trials 2",
    ),
    ("link r -o d --most-jobs 3", "link r -o d --max-jobs 3"),
    ("link r -o d --apart", "link r -o d --split"),
    (
        "cuda record --time-limit 3 -- x",
        "cuda record --timeout 3 -- x",
    ),
    ("cuda run r --time-limit 3", "cuda run r --timeout 3"),
    ("cuda tune r#0 --time-limit 3", "cuda tune r#0 --timeout 3"),
    (
        "cuda judge r#0 --image k --time-limit 3",
        "cuda judge r#0 --image k --timeout 3",
    ),
    (
        "cuda analyse r#0 --time-limit 3",
        "cuda analyse r#0 --timeout 3",
    ),
    ("cuda run r --repetitions 3", "cuda run r --runs 3"),
    ("cuda tune r#0 --repetitions 3", "cuda tune r#0 --runs 3"),
    ("cuda tune r#0 --csv x", "cuda tune r#0 --table x"),
];

const SIGNED: [&str; 14] = [
    "run r",
    "diff r --against model:g31",
    "jobs r",
    "analyse r",
    "verify r",
    "extract r --job 0 -o d",
    "patch r --jobs 0",
    "tune r --jobs 0",
    "cuda run r",
    "cuda tune r#0",
    "cuda verify r",
    "cuda extract r#0 -o d",
    "cuda judge r#0 --image k",
    "cuda analyse r#0",
];

/// Hidden, but no alias: tested in `tests/command/old_names.rs` or with CUDA, or only for our own use.
const RUN: [&str; 28] = [
    "keygen name",
    "jobs html",
    "analyse html",
    "disasm job",
    "dump",
    "extract job",
    "tag",
    "completions",
    "manual",
    "generate",
    "cuda bench",
    "cuda doctor",
    "cuda info",
    "cuda jobs",
    "cuda sign",
    "cuda verify",
    "cuda analyse cold",
    "cuda analyse differences",
    "cuda check compare",
    "cuda check sums",
    "cuda check trim",
    "cuda judge cold",
    "cuda judge differences",
    "cuda run cold",
    "cuda run differences",
    "cuda tune cold",
    "cuda tune differences",
    "cuda tune part",
];

fn pairs() -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = OLD
        .iter()
        .map(|(old, new)| ((*old).to_owned(), (*new).to_owned()))
        .collect();
    for words in SIGNED {
        let with = |flag: &str| format!("{words} --require-signature k --{flag} 2");
        pairs.push((with("minimum-counter"), with("min-counter")));
    }
    pairs
}

fn command() -> Command {
    let mut command = crate::command();
    command.build();
    command
}

#[test]
fn old_names_mean_what_the_new_ones_do() {
    let parsed = |words: &str| {
        let words = format!("gpureplay {words}");
        let matches = command().try_get_matches_from(words.split(' '));
        matches.unwrap_or_else(|error| panic!("{words}: {error}"))
    };
    for (old, new) in pairs() {
        assert_eq!(parsed(&old), parsed(&new), "{old}");
    }
}

fn hidden(command: &Command, path: &str, found: &mut Vec<String>) {
    for arg in command.get_arguments().filter(|arg| !arg.is_global_set()) {
        let visible = arg.get_visible_aliases().unwrap_or_default();
        let old = arg.get_all_aliases().unwrap_or_default();
        let old = old.into_iter().filter(|name| !visible.contains(name));
        found.extend(old.map(|name| format!("{path}--{name}")));
        let visible = arg.get_visible_short_aliases().unwrap_or_default();
        let old = arg.get_all_short_aliases().unwrap_or_default();
        let old = old.into_iter().filter(|name| !visible.contains(name));
        found.extend(old.map(|name| format!("{path}-{name}")));
        if arg.is_hide_set() {
            found.push(format!("{path}{}", arg.get_id()));
        }
    }
    let inner = command.get_subcommands();
    for inner in inner.filter(|inner| inner.get_name() != "help") {
        let path = format!("{path}{} ", inner.get_name());
        found.extend(inner.get_all_aliases().map(|name| format!("{path}{name}")));
        if inner.is_hide_set() {
            found.push(path.trim_end().to_owned());
        } else {
            hidden(inner, &path, found);
        }
    }
}

#[test]
fn each_old_name_has_a_test() {
    let mut found = Vec::new();
    hidden(&command(), "", &mut found);
    assert!(found.len() > 30, "{found:?}");
    let pairs = pairs();
    let named = |name: &String| {
        let (words, flag) = name.rsplit_once(' ').unwrap_or(("", name));
        RUN.contains(&name.as_str())
            || pairs.iter().any(|(old, _)| {
                let mut given = old.split(' ');
                old.starts_with(words) && given.any(|word| word == flag)
            })
    };
    let missing: Vec<&String> = found.iter().filter(|name| !named(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
