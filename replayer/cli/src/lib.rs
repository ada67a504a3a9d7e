// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `gpureplay` command. A library only for tests; programs embed `gpureplay-library`.
#![forbid(unsafe_code)]
// `terminal` escapes text and fails without a panic.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

#[cfg(test)]
mod aliases;
mod commands;
mod common;
mod hand_on;
mod help;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod random_words;
#[cfg(test)]
mod schemas;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use commands::{
    analyse, bench, compile, diff, disasm, doctor, dump, extract, generate, import, info, jobs,
    keygen, link, node, pack, patch, record, retarget, run, sign, tag, tune, unpack, verify,
};
use common::failure::{Failure, Outcome};
use common::terminal;
use gpureplay_library::{escaped, explain, files, manifest, text};

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done, and outputs match where there was something to compare with
  1  an output differs from what is expected
  2  wrong usage
  3  the recording is damaged, not allowed, or not a recording
  4  an input or another file is missing or does not fit
  5  the device could not be used, or the replay failed on it
  6  a result could not be written; a pipe whose reader has seen enough (`| head`) is no error
130  interrupted before there was anything to report
With --json a failure is on standard output too: {\"error\":{\"kind\":\"input\",\"exit_code\":4,\"text\":\"...\"}}
`record` passes on the exit code of an app that fails.";

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("GPUREPLAY_COMMIT"));

/// Record a GPU app once, replay it without the GPU stack.
#[derive(Parser)]
#[command(name = "gpureplay", version = VERSION, about, after_help = "Exit codes: gpureplay help exit-codes", after_long_help = EXIT_CODES, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    says: Says,
}

/// How much is printed.
#[derive(Args)]
struct Says {
    /// Print errors only, and what is asked for by name: results on standard output, JSON
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    Record(record::Record),
    Node(node::Node),
    Compile(compile::Compile),
    Tag(tag::Tag),
    Run(run::Run),
    Extract(extract::Extract),
    Info(info::Info),
    Jobs(jobs::Jobs),
    Analyse(analyse::Analyse),
    Bench(bench::Bench),
    Verify(verify::Verify),
    Dump(dump::Dump),
    Disasm(disasm::Disasm),
    Import(import::Import),
    Doctor(doctor::Doctor),
    Diff(diff::Diff),
    Keygen(keygen::Keygen),
    Sign(sign::Sign),
    Pack(pack::Pack),
    Patch(patch::Patch),
    Tune(tune::Tune),
    Unpack(unpack::Unpack),
    Retarget(retarget::Retarget),
    Link(link::Link),
    Cuda(gpureplay_cuda_replay::command::Cuda),
    Generate(generate::Generate),
    Completions(generate::Completions),
    Manual(generate::Manual),
}

fn command() -> clap::Command {
    help::shaped(Arguments::command())
}

fn parsed<I>(words: I) -> std::result::Result<Arguments, clap::Error>
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    let mut matches = command().try_get_matches_from(words)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command()))
}

/// Parses `run` without setting up other commands, which takes longer than verifying a small recording. Errors and
/// help are for [`parsed`].
fn replay(words: &[OsString]) -> Option<Arguments> {
    let own = words
        .get(1..)
        .filter(|own| own.first().is_some_and(|word| word == "run"))?;
    let command = Says::augment_args(run::Run::augment_args(clap::Command::new("run")));
    let mut matches = command.try_get_matches_from(own).ok()?;
    Some(Arguments {
        command: Command::Run(run::Run::from_arg_matches_mut(&mut matches).ok()?),
        says: Says::from_arg_matches_mut(&mut matches).ok()?,
    })
}

/// `help exit-codes` is no command.
fn asks_for_exit_codes(words: &[OsString]) -> bool {
    words
        .get(1..)
        .is_some_and(|words| words == ["help", "exit-codes"])
}

/// Runs the process's command line.
pub fn main() -> ExitCode {
    execute(std::env::args_os())
}

/// The first word is the program's name.
pub fn execute(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = hand_on::to_cuda(words.into_iter().collect());
    if words.len() <= 1 {
        // A failure cannot be reported.
        let _ = write!(std::io::stderr(), "{}", help::NO_COMMAND);
        return ExitCode::from(2);
    }
    if asks_for_exit_codes(&words) {
        let text = format!("{EXIT_CODES}\n");
        return match terminal::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(6),
        };
    }
    let arguments = match replay(&words).map_or_else(|| parsed(&words), Ok) {
        Ok(arguments) => arguments,
        Err(error) => {
            let error = in_plain_words(&words, error);
            if error.use_stderr() && wants_json(&words) {
                let text = error.to_string().trim_end().to_owned();
                failed_in_json(&Failure::Usage(text));
            }
            // A failure cannot be reported.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if arguments.says.quiet {
        terminal::be_quiet();
    }
    let outcome = match arguments.command {
        Command::Record(command) => command.execute(),
        Command::Node(command) => command.execute(),
        Command::Compile(command) => command.execute(),
        Command::Tag(command) => command.execute(),
        Command::Run(command) => command.execute(),
        Command::Extract(command) => command.execute(),
        Command::Info(command) => command.execute(),
        Command::Jobs(command) => command.execute(),
        Command::Analyse(command) => command.execute(),
        Command::Bench(command) => command.execute(),
        Command::Verify(command) => command.execute(),
        Command::Dump(command) => command.execute(),
        Command::Disasm(command) => command.execute(),
        Command::Import(command) => command.execute(),
        Command::Doctor(command) => command.execute(),
        Command::Diff(command) => command.execute(),
        Command::Keygen(command) => command.execute(),
        Command::Sign(command) => command.execute(),
        Command::Pack(command) => command.execute(),
        Command::Patch(command) => command.execute(),
        Command::Tune(command) => command.execute(),
        Command::Unpack(command) => command.execute(),
        Command::Retarget(command) => command.execute(),
        Command::Link(command) => command.execute(),
        Command::Cuda(command) => return command.execute(),
        Command::Generate(command) => command.execute(),
        Command::Completions(command) => command.execute(),
        Command::Manual(command) => command.execute(),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Mismatch) => ExitCode::from(1),
        Err(failure) => {
            if !failure.is_closed_pipe() {
                if wants_json(&words) && !terminal::has_printed() {
                    failed_in_json(&failure);
                }
                terminal::error(&failure);
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

fn in_plain_words(words: &[OsString], error: clap::Error) -> clap::Error {
    let plain: Vec<String> = words
        .iter()
        .map(|word| escaped(&word.to_string_lossy()).into_owned())
        .collect();
    let same = words
        .iter()
        .zip(&plain)
        .filter(|(word, plain)| *word.as_os_str() == *plain.as_str());
    if same.count() == words.len() {
        return error;
    }
    if error.kind() == ErrorKind::InvalidUtf8 {
        let wrong = words.iter().zip(&plain);
        let wrong = wrong.filter(|(word, _)| word.to_str().is_none());
        let wrong = wrong.map(|(_, plain)| plain.as_str()).collect::<Vec<_>>();
        let text = format!("not UTF-8, so it cannot be used here: {}", wrong.join(", "));
        return command().error(ErrorKind::InvalidUtf8, text);
    }
    match parsed(&plain) {
        Err(error) => error,
        Ok(_) => command().error(error.kind(), escaped(&error.to_string())),
    }
}

/// Ignores words of an app to record.
fn wants_json(words: &[OsString]) -> bool {
    let mut own = words.iter().take_while(|word| *word != "--");
    own.any(|word| word == "--json")
}

fn failed_in_json(failure: &Failure) {
    // Standard error says it in any case.
    if let Ok(text) = failure.json() {
        let _ = writeln!(terminal::stdout(), "{text}");
    }
}

type Result<T = Outcome> = std::result::Result<T, Failure>;

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{Command, parsed, replay};

    #[test]
    fn a_command_line_of_run_is_right_alone_as_among_all() {
        for (line, right) in [
            ("gpureplay run x", true),
            (
                "gpureplay run x -q --input a=b.npy --output c.bin --device panfrost --retry 2",
                true,
            ),
            (
                "gpureplay run --quiet x --inject job-fault@300 --json",
                true,
            ),
            ("gpureplay run x --repeat 3 --inputs y", true),
            ("gpureplay run", false),
            ("gpureplay run x y", false),
            ("gpureplay run x --retry -1", false),
            ("gpureplay run x --help", false),
            ("gpureplay run x --version", false),
            ("gpureplay run x --nothing", false),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (alone, among) = (replay(&words), parsed(&words));
            assert_eq!((alone.is_some(), among.is_ok()), (right, right), "{line}");
            let quiet = line.contains(" -q") || line.contains("--quiet");
            for found in alone.iter().chain(&among) {
                assert!(matches!(found.command, Command::Run(_)), "{line}");
                assert_eq!(found.says.quiet, quiet, "{line}");
            }
        }
        let other = ["gpureplay", "info", "x"].map(OsString::from);
        assert!(replay(&other).is_none() && parsed(&other).is_ok());
    }
}
