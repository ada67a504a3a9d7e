// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest compile-kernel`: Mesa's code of an OpenCL kernel.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;

use crate::{
    build::{payload, step::logged},
    error::{Error, Result},
    files,
    folder::Folder,
    run::{
        driver::Driver,
        report,
        session::{self, Options},
    },
};

/// Compiles an OpenCL kernel with the guest's Mesa; writes its binary, and its interface beside it.
///
/// The kernel is launched once on the model with the recorder: what Mesa gave the GPU is the binary. What the launch
/// gave it stands in the .toml file beside it, but for Valhall; `gpureplay patch --shader` checks that a job gives as
/// much. Without arguments the kernel gets zeros, 4096 bytes for each pointer.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask guest compile-kernel blur.cl -o blur.bin\n  \
                        cargo xtask guest compile-kernel nn.cl --kernel softmax --gpu g71 --options '-DWIDTH=8' --global 64 --local 16 \
                        --recording softmax -o softmax.bin out:4096:out.bin i32:16\n  \
                        gpureplay patch recordings/digits-g52 --jobs 11 --shader blur.bin -o patched"
)]
pub(crate) struct CompileKernel {
    /// File with OpenCL C.
    file: PathBuf,
    /// The kernel, if the file has several.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Which GPU it is compiled for.
    #[arg(long, default_value = "g52", value_name = "NAME")]
    gpu: String,
    /// Options of the compiler.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    options: Option<String>,
    /// Work-items of the launch.
    #[arg(long, value_name = "XxYxZ")]
    global: Option<String>,
    /// Work-items of a group.
    #[arg(long, value_name = "XxYxZ")]
    local: Option<String>,
    /// File for the binary.
    #[arg(short, long, value_name = "FILE.bin")]
    output: PathBuf,
    /// Keep the launch's recording in this new directory: `gpureplay patch --from DIR:0` takes its job.
    #[arg(long, value_name = "DIR")]
    recording: Option<PathBuf>,
    /// Use the programs in target/guest/opt and target/debug as they are.
    #[arg(long)]
    no_build: bool,
    /// Arguments in order: out:BYTES:FILE (zeros; the file is left in the guest), local:BYTES, i32:N, f32:X.
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

const RECORDING: &str = "recording";
const SOURCE: &str = "kernel.cl";
const TIMEOUT: Duration = Duration::from_secs(300);

impl CompileKernel {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let interface = self.output.with_extension("toml");
        if interface == self.output {
            return Err(Error::Usage(format!(
                "-o {}: the interface goes to the file of this name; choose another ending, such as .bin",
                self.output.display()
            )));
        }
        if let Some(directory) = self
            .recording
            .as_ref()
            .filter(|directory| directory.exists())
        {
            return Err(Error::Usage(format!(
                "--recording {}: exists",
                directory.display()
            )));
        }
        let folder = Folder::find()?;
        folder.require_built()?;
        if !self.no_build {
            payload::prepare(&folder, Driver::Patched)?;
            payload::build_host_command(&folder)?;
        }
        let share = files::temporary()?;
        files::copy(&self.file, share.path().join(SOURCE))?;
        let options = Options {
            gpu: self.gpu.clone(),
            driver: Driver::Patched,
            share: Some(share.path().to_path_buf()),
            timeout: TIMEOUT,
            stream: true,
            ..Options::default()
        };
        let outcome = session::run(&folder, &options, Some(&self.command()))?;
        if outcome.clean().is_err() {
            return Ok(ExitCode::from(
                report(&outcome, false, TIMEOUT.as_secs()).max(1),
            ));
        }
        let code = save(&folder, &share.path().join(RECORDING), share.path())?;
        files::copy(&code, &self.output)?;
        files::copy(code.with_extension("toml"), &interface)?;
        if let Some(directory) = &self.recording {
            files::create_dir(directory)?;
            for name in ["recording.gpr", "manifest.toml"] {
                files::copy(
                    share.path().join(RECORDING).join(name),
                    directory.join(name),
                )?;
            }
        }
        println!("{}, {}", self.output.display(), interface.display());
        Ok(ExitCode::SUCCESS)
    }

    fn command(&self) -> Vec<String> {
        let mut words: Vec<String> = [
            "gpureplay",
            "record",
            "-o",
            RECORDING,
            "--",
            "launch_kernel",
            SOURCE,
        ]
        .map(String::from)
        .into();
        for (option, value) in [
            ("--kernel", &self.kernel),
            ("--options", &self.options),
            ("--global", &self.global),
            ("--local", &self.local),
        ] {
            words.extend(
                value
                    .iter()
                    .flat_map(|value| [option.to_owned(), value.clone()]),
            );
        }
        words.extend(self.arguments.iter().cloned());
        words
    }
}

pub(crate) fn save(folder: &Folder, recording: &Path, work: &Path) -> Result<PathBuf> {
    let code = work.join("code");
    let mut disasm = Command::new(payload::host_command(folder));
    disasm.args(["disasm", "--jobs", "0"]);
    disasm.arg(payload::with("--save=", &code)).arg(recording);
    logged(
        &mut disasm,
        "the binary",
        &folder.local.join("log/compile-kernel.log"),
    )?;
    let mut files = files::entries(&code)?.into_iter();
    let found = files.find(|path| path.extension().is_some_and(|end| end == "bin"));
    found.ok_or_else(|| {
        Error::missing(
            "the kernel's binary",
            "look at target/guest/log/compile-kernel.log",
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::CompileKernel;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        command: CompileKernel,
    }

    #[test]
    fn the_guest_records_one_launch() {
        let line =
            "x k.cl --kernel f --options=-DN=8 --global 64 --local 16x2 -o k.bin out:64:o i32:-3";
        let line = Line::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            line.command.command().join(" "),
            "gpureplay record -o recording -- launch_kernel kernel.cl --kernel f --options -DN=8 --global 64 --local 16x2 out:64:o i32:-3"
        );
    }
}
