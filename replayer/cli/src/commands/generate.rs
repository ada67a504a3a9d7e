// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay generate`.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command, Subcommand};
use clap_complete::Shell;

use crate::common::destinations::{Destinations, Force};
use crate::common::failure::{Failure, Outcome};
use crate::common::terminal;
use crate::{Result, text};
use gpureplay_library::shown;

const EXAMPLES: &str = "\
Examples:
  gpureplay generate completions bash > /etc/bash_completion.d/gpureplay
  gpureplay generate man -o /usr/local/share/man/man1
  gpureplay generate markdown > commands.md";

/// Write completions for a shell, man pages or Markdown
#[derive(Args)]
#[command(after_help = EXAMPLES, hide = true)]
pub(crate) struct Generate {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Completions(Completions),
    Man(Man),
    Markdown(Markdown),
}

impl Generate {
    pub(crate) fn execute(&self) -> Result {
        match &self.what {
            What::Completions(completions) => completions.execute(),
            What::Man(man) => man.execute(),
            What::Markdown(_) => print_markdown(),
        }
    }
}

const COMPLETIONS: &str = "\
Examples:
  gpureplay generate completions bash > /etc/bash_completion.d/gpureplay
  gpureplay generate completions zsh > ~/.zfunc/_gpureplay
  gpureplay generate completions fish > ~/.config/fish/completions/gpureplay.fish";

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = COMPLETIONS, hide = true)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn execute(&self) -> Result {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "gpureplay", &mut script);
        let mut out = gpureplay_host::output();
        out.write_all(&script)?;
        out.flush()?;
        Ok(Outcome::Done)
    }
}

const MAN: &str = "\
Examples:
  gpureplay generate man -o /usr/local/share/man/man1";

/// Write a man page for each command
#[derive(Args)]
#[command(after_help = MAN)]
struct Man {
    /// Directory for the pages
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

impl Man {
    fn execute(&self) -> Result {
        write_pages(&self.output, self.force)
    }
}

const MARKDOWN: &str = "\
Examples:
  gpureplay generate markdown > commands.md";

/// Print the help of all commands as one page of Markdown
#[derive(Args)]
#[command(after_help = MARKDOWN)]
struct Markdown {}

const MANUAL: &str = "\
Examples:
  gpureplay generate man -o /usr/local/share/man/man1";

/// Write the help as man pages or Markdown: an old name of `generate man` and `generate markdown`
#[derive(Args)]
#[command(after_help = MANUAL, hide = true)]
pub(crate) struct Manual {
    /// Directory for man pages, one for each command
    #[arg(short, long, value_name = "DIR", required_unless_present = "markdown")]
    output: Option<PathBuf>,
    /// Print one page of Markdown instead
    #[arg(long, conflicts_with = "output")]
    markdown: bool,
    #[command(flatten)]
    force: Force,
}

impl Manual {
    pub(crate) fn execute(&self) -> Result {
        match &self.output {
            Some(directory) => write_pages(directory, self.force),
            None => print_markdown(),
        }
    }
}

fn print_markdown() -> Result {
    terminal::stdout().write_all(markdown().as_bytes())?;
    Ok(Outcome::Done)
}

fn write_pages(directory: &Path, force: Force) -> Result {
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::Output(format!("{}: {error}", shown(directory))))?;
    let mut destinations = Destinations::new(force.force);
    let pages = pages().map_err(|error| Failure::Output(error.to_string()))?;
    for (name, _) in &pages {
        destinations.claim_here(&directory.join(name))?;
    }
    for (name, page) in &pages {
        destinations.write_here(&directory.join(name), page)?;
    }
    writeln!(
        terminal::report(false),
        "{}: {}",
        shown(directory),
        text::count(pages.len() as u64, "page")
    )?;
    Ok(Outcome::Done)
}

fn all() -> Vec<(String, Command)> {
    fn collect(command: &Command, before: &str, into: &mut Vec<(String, Command)>) {
        let name = format!("{before}{}", command.get_name());
        into.push((name.clone(), command.clone()));
        let shown = |inner: &&Command| inner.get_name() != "help" && !inner.is_hide_set();
        for inner in command.get_subcommands().filter(shown) {
            collect(inner, &format!("{name} "), into);
        }
    }
    let mut root = crate::command().disable_help_subcommand(true);
    root.build();
    let mut commands = Vec::new();
    collect(&root, "", &mut commands);
    commands
}

fn pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let page = |(name, command): (String, Command)| {
        let title = name.replace(' ', "-");
        let mut page = Vec::new();
        // Without a date, for reproducible builds.
        clap_mangen::Man::new(command)
            .title(title.to_uppercase())
            .section("1")
            .render(&mut page)?;
        Ok((format!("{title}.1"), page))
    };
    all().into_iter().map(page).collect()
}

fn markdown() -> String {
    let mut page = String::from(
        "# Commands\n\nWhat `gpureplay COMMAND --help` says, made by `gpureplay generate markdown`.\n",
    );
    for (name, mut command) in all() {
        let help = command.render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = write!(
            page,
            "\n## {name}\n\n```text\n{}\n```\n",
            lines.join("\n").trim_end()
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_man_page() {
        let pages = pages().unwrap();
        let named = |wanted: &str| pages.iter().find(|(name, _)| name == wanted).unwrap();
        let run = String::from_utf8(named("gpureplay-run.1").1.clone()).unwrap();
        assert!(
            run.contains(".SH OPTIONS") && run.contains("tolerance"),
            "{run}"
        );
        let command = crate::command();
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        let count = shown.count();
        assert!(pages.len() > count && markdown().matches("\n## ").count() > count);
    }
}
