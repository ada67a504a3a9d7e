// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the pages' shell lines; docs/commands.toml names exceptions.

use std::{ffi::OsStr, fs, os::unix::fs::symlink, path::Path, process::Command};

use gpureplay_task::{
    checks::{Counts, End},
    output_of,
};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use serde::Deserialize;

use crate::{
    error::{Error, Result},
    files,
    repository::git,
};

const FROM_SOURCE: &str = "cargo run --release -- ";

const SHELL: [&str; 28] = [
    ".",
    "apt",
    "cargo",
    "cat",
    "cc",
    "cp",
    "driver-patch",
    "echo",
    "for",
    "git",
    "gpureplay",
    "insmod",
    "ln",
    "make",
    "mkdir",
    "modprobe",
    "ncu",
    "nvcc",
    "pip",
    "python3",
    "rmmod",
    "rustup",
    "scripts",
    "sh",
    "sudo",
    "systemctl",
    "tools",
    "venv",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    left_out: Vec<LeftOut>,
    before: Vec<Before>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LeftOut {
    /// All if missing.
    page: Option<String>,
    /// Part of the command; all if missing.
    has: Option<String>,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    page: String,
    has: String,
    shell: String,
}

impl LeftOut {
    fn fits(&self, page: &str, command: &str) -> bool {
        let page_fits = self.page.as_ref().is_none_or(|only| only == page);
        page_fits && self.has.as_ref().is_none_or(|part| command.contains(part))
    }
}

pub(super) fn run(top: &Path, work: &Path, path: &OsStr, counts: &mut Counts) -> Result<()> {
    let file = top.join("docs/commands.toml");
    let text = files::text(&file)?;
    let rules: Rules = toml::from_str(&text).map_err(|error| {
        Error::fell_short(
            format!("reading {}: {error}", file.display()),
            "write left_out with page, has and why, and before with page, has and shell",
        )
    })?;
    let pages = git(&["ls-files", "*.md"])?;
    let mut unused: Vec<&LeftOut> = rules.left_out.iter().collect();
    let mut idle: Vec<&Before> = rules.before.iter().collect();
    for page in pages.iter().filter(|page| *page != "docs/start.md") {
        let text = files::text(top.join(page))?;
        let all = commands(&text);
        let out = |command: &String| rules.left_out.iter().find(|it| it.fits(page, command));
        unused.retain(|rule| !all.iter().any(|command| rule.fits(page, command)));
        let runs: Vec<&String> = all
            .iter()
            .filter(|command| out(command).is_none())
            .collect();
        if runs.is_empty() {
            continue;
        }
        let folder = work.join(page.replace('/', "-"));
        fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
        for shared in ["recordings", "tools"] {
            let link = folder.join(shared);
            symlink(top.join(shared), &link).map_err(Error::io("create", &link))?;
        }
        let mut end = Ok(());
        for command in &runs {
            let needs = |it: &&Before| it.page == *page && command.contains(&it.has);
            idle.retain(|it| !needs(it));
            let prepared = rules
                .before
                .iter()
                .filter(needs)
                .map(|it| it.shell.as_str());
            let script: Vec<&str> = prepared.chain([command.as_str()]).collect();
            let mut shell = Command::new("bash");
            shell
                .args(["-euo", "pipefail", "-c", &script.join("\n")])
                .current_dir(&folder)
                .env("PATH", path);
            end = output_of(command, &mut shell).map(drop);
            if end.is_err() {
                break;
            }
        }
        let left = all.len() - runs.len();
        counts.add(
            page,
            end.map(|()| End::Passed(format!("{} commands; {left} left out", runs.len()))),
        );
    }
    let stale = unused.iter().map(|rule| rule.why.as_str());
    let stale: Vec<&str> = stale
        .chain(idle.iter().map(|it| it.shell.as_str()))
        .collect();
    counts.add(
        "docs/commands.toml",
        match stale.is_empty() {
            true => Ok(End::Passed(format!("{} rules", rules.left_out.len()))),
            false => Err(Error::fell_short(
                format!("no command needs these: {}", stale.join("; ")),
                "remove them",
            )),
        },
    );
    Ok(())
}

/// All of shell blocks, this program's of others; continued lines are joined.
fn commands(page: &str) -> Vec<String> {
    let (mut found, mut inside, mut text) = (Vec::new(), false, String::new());
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => inside = true,
            Event::Text(part) if inside => text.push_str(&part),
            Event::End(TagEnd::CodeBlock) => {
                inside = false;
                let whole = std::mem::take(&mut text);
                let lines: Vec<&str> = whole.split("\\\n").map(str::trim_start).collect();
                // Markdown joins blocks with only an empty line between.
                for part in lines.join("").split("\n\n") {
                    let lines: Vec<String> = part.lines().filter_map(command).collect();
                    let shell = lines.first().is_some_and(|line| begins_shell(line));
                    found.extend(lines.into_iter().filter(|line| shell || is_ours(line)));
                }
            }
            _ => {}
        }
    }
    found
}

fn command(line: &str) -> Option<String> {
    let line = line.trim();
    let line = match line.strip_prefix(FROM_SOURCE) {
        Some(rest) => format!("gpureplay {rest}"),
        None => line.to_owned(),
    };
    let line = line.split("   ").next()?.split(" # ").next()?.trim();
    (!line.is_empty() && !line.starts_with("# ")).then(|| line.to_owned())
}

fn is_ours(line: &str) -> bool {
    let mut words = line.split(' ');
    words.find(|word| !["sudo", "ncu"].contains(word)) == Some("gpureplay")
}

fn begins_shell(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    let variable = word.split_once('=').map_or("", |(name, _)| name);
    let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let sets = !variable.is_empty() && variable.chars().all(letter);
    sets || word
        .split('/')
        .next()
        .is_some_and(|first| SHELL.contains(&first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_in_blocks() {
        let page = "`gpureplay a`\n\n    gpureplay b \\\n      c   a remark\n    ls\n\n```\nsudo gpureplay d # x\ngpureplayed\n```\n\
                    \n    cargo run --release -- run e\n";
        let all = commands(page);
        assert_eq!(
            all,
            [
                "gpureplay b c",
                "ls",
                "sudo gpureplay d",
                "gpureplayed",
                "gpureplay run e"
            ]
        );
    }

    #[test]
    fn all_lines_of_shell_are_commands_and_no_line_of_output() {
        let page = "    # as root\n    rmmod a   remark\n    other b\n\ntext\n\n    x 3.7 kB\n    cargo c\n    gpureplay d\n\ntext\n\n    \
                    A=b ./run\n\n    import x\n\ntext\n\n    version = 1\n\ntext\n\n    driver-patch/build x \\\n      y\n";
        let all = commands(page);
        let wanted = [
            "rmmod a",
            "other b",
            "gpureplay d",
            "A=b ./run",
            "driver-patch/build x y",
        ];
        assert_eq!(all, wanted);
    }

    #[test]
    fn rules_name_pages_and_parts() {
        let rule = |page: Option<&str>, has: Option<&str>| LeftOut {
            page: page.map(str::to_owned),
            has: has.map(str::to_owned),
            why: String::new(),
        };
        assert!(rule(None, Some("--device nano")).fits("a.md", "gpureplay run x --device nano"));
        assert!(!rule(None, Some("--device nano")).fits("a.md", "gpureplay run x"));
        assert!(rule(Some("a.md"), None).fits("a.md", "gpureplay run x"));
        assert!(!rule(Some("b.md"), None).fits("a.md", "gpureplay run x"));
    }
}
