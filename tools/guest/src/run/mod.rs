// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest run`: one command.

pub(crate) mod board;
pub(crate) mod driver;
pub(crate) mod kernel_log;
pub(crate) mod machine;
pub(crate) mod secure_log;
pub(crate) mod session;
pub(crate) mod shader_cache;
pub(crate) mod shell;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, builder::PossibleValuesParser};

use self::{
    board::Board,
    driver::Driver,
    machine::{CPUS, MEMORY},
    session::{End, Options, Outcome},
};
use crate::{
    build::payload,
    error::{Error, Result},
    folder::Folder,
};

/// Options that every command which boots a guest has.
#[derive(Args, Clone)]
pub(crate) struct BootOptions {
    /// Which GPU the model is.
    #[arg(long, default_value = "g52", value_name = "NAME")]
    pub(crate) gpu: String,
    /// Which driver the guest loads for it.
    #[arg(long, value_enum, default_value = "stock")]
    pub(crate) driver: Driver,
    /// Which CPU QEMU emulates.
    #[arg(long, default_value = CPUS[0], value_parser = PossibleValuesParser::new(CPUS))]
    pub(crate) cpu: String,
    /// The guest's memory in MiB.
    #[arg(long, default_value_t = MEMORY, value_name = "MIB", value_parser = clap::value_parser!(u32).range(256..=65536))]
    pub(crate) memory: u32,
    /// Directory that the guest sees as /share, where commands start; an empty one if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) share: Option<PathBuf>,
    /// Environment variable of the command; may be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub(crate) environment: Vec<String>,
    /// Further option of the model server; may be repeated.
    #[arg(
        long = "model-option",
        value_name = "OPTION",
        allow_hyphen_values = true
    )]
    pub(crate) model_options: Vec<String>,
    /// Further word of the kernel's command line; may be repeated.
    #[arg(long = "kernel-option", value_name = "WORD")]
    pub(crate) kernel_options: Vec<String>,
    /// Caches that are not coherent with the GPU: what is not cleaned or invalidated gives wrong results.
    #[arg(long)]
    pub(crate) non_coherent: bool,
    /// A power domain and a supply of the GPU's own.
    #[arg(long)]
    pub(crate) power_domain: bool,
    /// Where to leave kernel.log, model.log, stdout and stderr; target/guest/runs if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) logs: Option<PathBuf>,
    /// The guest's clock counts instructions: a busy host changes no times.
    #[arg(long)]
    pub(crate) counted: bool,
    /// Start without the host's cache of compiled shaders: everything is compiled anew.
    #[arg(long)]
    pub(crate) cold: bool,
    /// Use the programs in target/guest/opt as they are.
    #[arg(long)]
    pub(crate) no_build: bool,
}

impl BootOptions {
    pub(crate) fn session(&self, timeout: u64, stream: bool) -> Result<Options> {
        let environment = self
            .environment
            .iter()
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) if is_name(name) => Ok((name.to_owned(), value.to_owned())),
                _ => Err(Error::Usage(format!(
                    "--env {pair}: expected NAME=VALUE with a name of letters, digits and _"
                ))),
            })
            .collect::<Result<_>>()?;
        let absolute =
            |path: &PathBuf| std::path::absolute(path).map_err(Error::io("find", path.clone()));
        let share = self.share.as_ref().map(absolute).transpose()?;
        if let Some(share) = share.as_ref().filter(|path| !path.is_dir()) {
            return Err(Error::Usage(format!(
                "--share {}: not a directory",
                share.display()
            )));
        }
        Ok(Options {
            gpu: self.gpu.clone(),
            driver: self.driver,
            cpu: self.cpu.clone(),
            memory: self.memory,
            counted: self.counted,
            timeout: Duration::from_secs(timeout),
            share,
            extra: None,
            environment,
            model_options: self.model_options.clone(),
            kernel_options: self.kernel_options.clone(),
            logs: self.logs.as_ref().map(absolute).transpose()?,
            stream,
            warm: !self.cold,
            firmware: None,
            quiet_secure_world: false,
            board: Board {
                non_coherent: self.non_coherent,
                power_domain: self.power_domain,
                ..Board::default()
            },
        })
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Runs a command in the guest and returns its exit code.
///
/// The guest sees target/guest/opt as /opt/gpureplay (our programs, in the PATH) and --share as /share. A GPU fault
/// in the kernel log is a failure.
#[derive(Args)]
#[command(after_help = "\
Exit codes: the command's own, or
  120  a GPU or kernel fault in the kernel log (the command itself ended with 0)
  121  the guest died before the command ended
  122  the model server died
  123  the GPU driver did not come up
  124  time is up

Examples:
  cargo xtask guest run -- clinfo
  cargo xtask guest run --share data -- saxpy --x x.npy --y y.npy --a 2.5 --out out.npy
  cargo xtask guest run --driver none --timeout 60 -- sh -c 'dmesg | tail'")]
pub(crate) struct Run {
    #[command(flatten)]
    boot: BootOptions,
    /// Seconds until the run is given up.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    timeout: u64,
    /// A GPU fault in the kernel log does not fail the run.
    #[arg(long)]
    allow_gpu_errors: bool,
    /// Say how long boot and command took.
    #[arg(long, short)]
    verbose: bool,
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Run {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        let options = self.boot.session(self.timeout, true)?;
        folder.require_built()?;
        if !self.boot.no_build {
            payload::prepare(&folder, options.driver)?;
            if options.board.has_modules() {
                payload::board_modules(&folder)?;
            }
        }
        let outcome = session::run(&folder, &options, Some(&self.command))?;
        if self.verbose {
            eprintln!(
                "boot {:.1} s, total {:.1} s, logs {}",
                outcome.boot.unwrap_or(0.0),
                outcome.total,
                outcome.logs.display()
            );
        }
        Ok(ExitCode::from(report(
            &outcome,
            self.allow_gpu_errors,
            self.timeout,
        )))
    }
}

pub(crate) fn report(outcome: &Outcome, allow_gpu_errors: bool, timeout: u64) -> u8 {
    let (what, code) = match &outcome.end {
        End::Exit(0) if !outcome.faults.is_empty() && !allow_gpu_errors => {
            eprintln!("error: the guest's kernel log reports faults:");
            for fault in outcome.faults.iter().take(10) {
                eprintln!("  {fault}");
            }
            eprintln!("  logs: {}", outcome.logs.display());
            return 120;
        }
        End::Exit(code) => {
            for fault in outcome.faults.iter().take(10) {
                eprintln!("kernel log: {fault}");
            }
            return u8::try_from(*code).unwrap_or(1);
        }
        End::GuestDied => ("the guest died before the command ended".to_owned(), 121),
        End::ModelDied => ("the model server died".to_owned(), 122),
        End::NoDriver(why) => (format!("the GPU driver did not come up: {why}"), 123),
        End::SecureWorld(lines) => (format!("the secure world complains: {lines}"), 125),
        End::Timeout => (format!("no end after {timeout} s"), 124),
    };
    outcome.print_logs();
    eprintln!("error: {what}");
    code
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_of_variables() {
        assert!(is_name("PAN_MESA_DEBUG") && is_name("_x1"));
        assert!(!is_name("") && !is_name("1x") && !is_name("a b") && !is_name("a$(b)"));
    }
}
