// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that the pages show, run as a reader would run them; docs/commands.toml says which need more than this machine has.

use std::{ffi::OsStr, fs, os::unix::fs::symlink, path::Path, process::Command};

use gpureplay_task::checks::{Counts, End};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use serde::Deserialize;

use super::good;
use crate::{
    error::{Error, Result},
    repository::git,
};

/// How the README says `gpureplay`.
const FROM_SOURCE: &str = "cargo run --release -- ";

/// docs/commands.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    left_out: Vec<LeftOut>,
    before: Vec<Before>,
}

/// Commands that are not run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LeftOut {
    /// The page; all pages if it is not there.
    page: Option<String>,
    /// What the command has in it; all commands if it is not there.
    has: Option<String>,
    /// What it would need.
    why: String,
}

/// What a shell does before a command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    page: String,
    /// What the command has in it.
    has: String,
    shell: String,
}

impl LeftOut {
    fn fits(&self, page: &str, command: &str) -> bool {
        let page_fits = self.page.as_ref().is_none_or(|only| only == page);
        page_fits && self.has.as_ref().is_none_or(|part| command.contains(part))
    }
}

/// Runs the commands of all pages but docs/start.md, each page in a folder of its own, which has recordings and tools.
pub(super) fn run(top: &Path, work: &Path, path: &OsStr, counts: &mut Counts) -> Result<()> {
    let file = top.join("docs/commands.toml");
    let text = fs::read_to_string(&file).map_err(Error::io("read", &file))?;
    let rules: Rules = toml::from_str(&text).map_err(|error| Error::FellShort {
        what: format!("reading {}: {error}", file.display()),
        remedy: "write left_out with page, has and why, and before with page, has and shell".into(),
    })?;
    let pages = git(&["ls-files", "*.md"])?;
    let mut unused: Vec<&LeftOut> = rules.left_out.iter().collect();
    let mut idle: Vec<&Before> = rules.before.iter().collect();
    for page in pages.iter().filter(|page| *page != "docs/start.md") {
        let place = top.join(page);
        let text = fs::read_to_string(&place).map_err(Error::io("read", &place))?;
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
            end = good(command, &mut shell).map(drop);
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
            false => Err(Error::FellShort {
                what: format!("no command needs these: {}", stale.join("; ")),
                remedy: "remove them".into(),
            }),
        },
    );
    Ok(())
}

/// The commands of this program in a page's blocks of code, joined where they go on in the next line, without remarks.
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
                found.extend(lines.join("").lines().filter_map(command));
            }
            _ => {}
        }
    }
    found
}

/// The command of a line.
fn command(line: &str) -> Option<String> {
    let line = line.trim();
    let line = match line.strip_prefix(FROM_SOURCE) {
        Some(rest) => format!("gpureplay {rest}"),
        None => line.to_owned(),
    };
    let line = line.split("   ").next()?.split(" # ").next()?.trim();
    let first = line.split(' ').find(|word| !["sudo", "ncu"].contains(word));
    (first == Some("gpureplay")).then(|| line.to_owned())
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
            ["gpureplay b c", "sudo gpureplay d", "gpureplay run e"]
        );
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
