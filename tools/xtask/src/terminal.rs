// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask terminal`: runs the commands of figs/terminal.toml, and draws them with what they print.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Args;
use serde::Deserialize;

use gpureplay_task::output;

use crate::{
    error::{Error, Result},
    repository::root,
};

/// Draws figs/terminal.svg: a terminal in which the commands of figs/terminal.toml run.
///
/// They run for real: some in the full-system guest, which must be built.
#[derive(Args)]
#[command(after_help = "Example:\n  cargo xtask terminal")]
pub(crate) struct Terminal {
    /// The command to show; built if it is not given.
    #[arg(long, value_name = "FILE")]
    gpureplay: Option<PathBuf>,
}

/// What figs/terminal.toml says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    prepare: String,
    step: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Said before the command.
    comment: String,
    /// The command as the picture shows it, and as it runs if `guest` does not say another.
    shown: String,
    /// A script for the guest.
    guest: Option<String>,
    /// How the lines begin that are shown; all of them if there is nothing here.
    #[serde(default)]
    lines: Vec<String>,
}

impl Terminal {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let top = root();
        let source = top.join("figs/terminal.toml");
        let text = fs::read_to_string(&source).map_err(Error::io("read", &source))?;
        let script: Script = toml::from_str(&text)
            .map_err(|error| Error::Usage(format!("{}: {error}", source.display())))?;
        let command = match self.gpureplay {
            Some(command) => command
                .canonicalize()
                .map_err(Error::io("find", &command))?,
            None => build(&top)?,
        };
        let folder =
            tempfile::tempdir().map_err(Error::io("create", "a folder for the commands"))?;
        shell(&script.prepare, folder.path(), &top, &command)?;
        let mut screen = Vec::new();
        for step in &script.step {
            let printed = match &step.guest {
                Some(guest) => in_guest(guest, folder.path(), &top)?,
                None => shell(&step.shown, folder.path(), &top, &command)?,
            };
            screen.push((Kind::Comment, format!("# {}", step.comment)));
            screen.push((Kind::Command, format!("$ {}", step.shown)));
            let shown = |line: &&str| {
                step.lines.is_empty() || step.lines.iter().any(|start| line.starts_with(start))
            };
            let lines: Vec<&str> = printed.lines().filter(shown).collect();
            let some_left_out = lines.len() < printed.lines().count();
            screen.extend(lines.iter().map(|line| (Kind::Output, line.to_string())));
            if some_left_out {
                screen.push((Kind::Output, "  …".into()));
            }
            screen.push((Kind::Output, String::new()));
        }
        screen.pop();
        let picture = top.join("figs/terminal.svg");
        fs::write(&picture, draw(&screen)).map_err(Error::io("write", &picture))?;
        println!("{} lines in {}", screen.len(), picture.display());
        Ok(ExitCode::SUCCESS)
    }
}

fn build(top: &Path) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    output(
        cargo
            .current_dir(top)
            .args(["build", "--release", "--locked", "-p", "gpureplay"]),
    )?;
    Ok(top.join("target/release/gpureplay"))
}

fn shell(script: &str, folder: &Path, top: &Path, command: &Path) -> Result<String> {
    let beside = command.parent().unwrap_or(Path::new("."));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell
        .args(["-ec", script])
        .current_dir(folder)
        .env("ROOT", top);
    output(shell.env("PATH", format!("{}:{path}", beside.display())))
}

fn in_guest(script: &str, folder: &Path, top: &Path) -> Result<String> {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(top)
        .args(["xtask", "guest", "run", "--driver", "patched", "--share"]);
    output(cargo.arg(folder).args(["--", "sh", "-ec", script]))
}

/// How a line looks.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Comment,
    Command,
    Output,
}

/// Letters in a line of the picture; what is longer ends with three dots.
const COLUMNS: usize = 104;
/// Size of a letter, in pixels.
const LETTER: (f64, f64) = (7.8, 19.0);
/// Room around the text, in pixels.
const MARGIN: f64 = 16.0;
/// Seconds until the next line comes: after a command, and after any other line.
const PAUSES: (f64, f64) = (1.2, 0.25);
/// Seconds that the whole picture stands before it begins again.
const REST: f64 = 8.0;

/// The picture: each line appears when its time has come, and all are there for readers who want no motion.
fn draw(screen: &[(Kind, String)]) -> String {
    let mut times = Vec::new();
    let mut time = 0.5;
    for (kind, _) in screen {
        times.push(time);
        time += if *kind == Kind::Command {
            PAUSES.0
        } else {
            PAUSES.1
        };
    }
    let whole = time + REST;
    let width = COLUMNS as f64 * LETTER.0 + 2.0 * MARGIN;
    let height = screen.len() as f64 * LETTER.1 + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\" \
         aria-label=\"A terminal: gpureplay records an app, replays it, replays it with another picture, and verifies it\">\n<style>\n\
         text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d6deeb; white-space: pre; }}\n\
         .comment {{ fill: #7f93a8; }} .command {{ fill: #ffffff; font-weight: 600; }}\n"
    );
    for (line, time) in times.iter().enumerate() {
        let percent = 100.0 * time / whole;
        let _ = writeln!(
            svg,
            "@keyframes l{line} {{ 0%, {percent:.2}% {{ opacity: 0 }} {:.2}%, 100% {{ opacity: 1 }} }}\n\
             #l{line} {{ animation: l{line} {whole:.1}s infinite; }}",
            percent + 0.01
        );
    }
    svg.push_str("@media (prefers-reduced-motion: reduce) { text { animation: none !important; } }\n</style>\n");
    let _ = writeln!(
        svg,
        "<rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"8\" fill=\"#10202f\"/>"
    );
    for (line, (kind, text)) in screen.iter().enumerate() {
        let class = match kind {
            Kind::Comment => "comment",
            Kind::Command => "command",
            Kind::Output => "output",
        };
        let y = MARGIN + (line as f64 + 0.75) * LETTER.1;
        let _ = writeln!(
            svg,
            "<text id=\"l{line}\" class=\"{class}\" x=\"{MARGIN:.0}\" y=\"{y:.0}\">{}</text>",
            escaped(&fitting(text))
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn fitting(line: &str) -> String {
    if line.chars().count() <= COLUMNS {
        return line.into();
    }
    let mut cut: String = line.chars().take(COLUMNS - 1).collect();
    cut.push('…');
    cut
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_markup_is_text() {
        let screen = [
            (Kind::Command, "$ cat <file> & more".to_string()),
            (Kind::Output, "x".repeat(COLUMNS + 1)),
        ];
        let svg = draw(&screen);
        assert!(svg.contains("$ cat &lt;file&gt; &amp; more"));
        assert!(svg.contains(&format!("{}…<", "x".repeat(COLUMNS - 1))));
    }
}
