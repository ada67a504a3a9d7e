// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `gpureplay` command: one file per subcommand in `commands`, what they share in `common`. A library only so that fuzzing and tests reach its parser; what programs
//! embed is `gpureplay-library`.
#![forbid(unsafe_code)]

mod commands;
mod common;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{
    analyse, bench, compile, diff, disasm, doctor, dump, extract, import, info, jobs, keygen, pack,
    record, retarget, run, sign, tag, unpack, verify,
};
use common::failure::{Failure, Outcome};
use common::terminal;
use gpureplay_library::{explain, files, manifest, text};

const EXIT_CODES: &str = "\
Exit codes:
  0  done, and outputs match where there was something to compare with
  1  an output differs from what is expected
  2  wrong usage
  3  the recording is damaged, not allowed, or not a recording
  4  an input or another file is missing or does not fit
  5  the device could not be used, or the replay failed on it
  6  a result could not be written
`record` passes on the exit code of an app that fails.";

/// Record a GPU app once, replay it without the GPU stack.
#[derive(Parser)]
#[command(version, about, after_help = EXIT_CODES, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print errors only, and what is asked for by name: results on standard output, JSON
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    Record(record::Record),
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
    Unpack(unpack::Unpack),
    Retarget(retarget::Retarget),
    Cuda(gpureplay_cuda_command::Cuda),
}

/// Whether words, the first the program's name, are a command line; nothing is done.
///
/// # Errors
/// What is wrong with it, as the command says it.
pub fn check(words: impl IntoIterator<Item = OsString>) -> std::result::Result<(), String> {
    match Arguments::try_parse_from(words) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Does what the command line says.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.quiet {
        terminal::be_quiet();
    }
    let outcome = match arguments.command {
        Command::Record(command) => command.execute(),
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
        Command::Unpack(command) => command.execute(),
        Command::Retarget(command) => command.execute(),
        Command::Cuda(command) => return command.execute(),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Mismatch) => ExitCode::from(1),
        Err(failure) => {
            if !failure.is_closed_pipe() {
                terminal::error(&failure);
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// What each subcommand returns.
type Result<T = Outcome> = std::result::Result<T, Failure>;
