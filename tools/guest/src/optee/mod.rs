// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest optee`: a secure world under QEMU.

mod beside;
mod build;
pub(crate) mod checks;
mod clients;
mod leftovers;
mod measure;
mod refusals;
mod rig;
mod values;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use gpureplay_sign::{PublicKey, SecretKey};

use crate::{
    error::{Error, Result},
    files,
    folder::Folder,
    run::{
        driver::Driver,
        report,
        session::{self, Options, Outcome},
    },
};

/// Seed of the tests' key, which protects nothing.
const TEST_SEED: [u8; 32] = [7; 32];
/// The secure world's GPU pages follow (`pta/gpureplay_board.h`).
const KERNEL_MEMORY: &str = "mem=1792M";

/// Replays in a trusted execution environment: builds the secure world, runs programs beside it, tests it.
///
/// TF-A and OP-TEE are the distribution's. Only packs signed with --key (or the tests' key) run there.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask guest optee build --key mine.pub.pem\n  \
                        cargo xtask guest optee run --share packs -- gpureplay_tee digits.pack \\\n      \
                        -i input:256=three.npy -o probabilities:40=answer.bin\n  \
                        cargo xtask guest optee test\n  cargo xtask guest optee test xtest"
)]
pub(crate) struct Optee {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Builds the secure world and the programs that use it.
    Build(Key),
    /// Runs a command in the normal world.
    Run {
        #[command(flatten)]
        key: Key,
        /// Directory that the guest sees as /share; the secure world's storage is in its folder `tee`.
        #[arg(long, value_name = "DIR")]
        share: Option<PathBuf>,
        /// Seconds until the run is given up.
        #[arg(long, default_value_t = 600, value_name = "SECONDS")]
        timeout: u64,
        /// The command and its arguments.
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Measures the time of a call against the same replay in the normal world, and the sizes of the parts.
    Measure {
        /// Write the tables to measurements/optee.json.
        #[arg(long)]
        write: bool,
    },
    /// Runs the tests.
    Test {
        /// Only tests whose name contains this.
        filter: Option<String>,
        /// All inputs and counts, not a sample.
        #[arg(long)]
        full: bool,
    },
}

/// Whose signatures count.
#[derive(Args, Clone, Debug)]
struct Key {
    /// Public key, as `gpureplay keygen` writes it.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl Key {
    fn read(&self) -> Result<PublicKey> {
        let Some(path) = &self.key else {
            return Ok(test_key()?.public());
        };
        let text = files::text(path)?;
        PublicKey::from_text(&text)
            .map_err(|_| Error::Usage(format!("{}: not a public key", path.display())))
    }
}

fn test_key() -> Result<SecretKey> {
    SecretKey::from_seed(TEST_SEED).map_err(|error| Error::Usage(format!("{error:?}")))
}

impl Optee {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        match self.task {
            Task::Build(key) => {
                let built = build::build(&folder, &key.read()?)?;
                println!("{}", built.firmware.display());
                Ok(ExitCode::SUCCESS)
            }
            Task::Run {
                key,
                share,
                timeout,
                command,
            } => {
                let built = build::build(&folder, &key.read()?)?;
                let share = share
                    .map(|path| std::path::absolute(&path).map_err(Error::io("find", path)))
                    .transpose()?;
                let options = Options {
                    share,
                    stream: true,
                    ..options(&built, timeout)
                };
                let outcome = run(&folder, &options, &command)?;
                Ok(ExitCode::from(report(&outcome, false, timeout)))
            }
            Task::Measure { write } => {
                let rig = rig::Rig {
                    folder: &folder,
                    built: build::build(&folder, &test_key()?.public())?,
                    full: false,
                };
                measure::measure(&rig, write)?;
                Ok(ExitCode::SUCCESS)
            }
            Task::Test { filter, full } => checks::all(&folder, filter.as_deref(), full),
        }
    }
}

fn options(built: &build::Built, timeout: u64) -> Options {
    Options {
        driver: Driver::None,
        firmware: Some(built.firmware.clone()),
        kernel_options: vec![KERNEL_MEMORY.into()],
        timeout: Duration::from_secs(timeout),
        warm: false,
        ..Options::default()
    }
}

fn run(folder: &Folder, options: &Options, command: &[String]) -> Result<Outcome> {
    let mut words = vec!["bash".to_owned(), "/opt/gpureplay/optee/start.sh".into()];
    words.extend(command.iter().cloned());
    session::run(folder, options, Some(&words))
}
