// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest record`: makes a recording of an example program.

pub(crate) mod app;
pub(crate) mod both;
pub(crate) mod by_user;
mod manifest;
mod noted;
pub(crate) mod registers;
pub(crate) mod tensors;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;
use mali_facts::StreamGpu;

use self::{
    app::{App, SETS},
    manifest::Case,
};
use crate::{
    build::{payload, step::logged},
    error::{Error, Result},
    files,
    folder::Folder,
    run::{
        board::Board,
        driver::Driver,
        report,
        session::{self, Options, Outcome},
    },
};

/// Records an example program or a network on the patched driver.
///
/// Runs it live, then twice under `gpureplay record` with other inputs; compiles the first trace, checks it against
/// the second, and replays it on the model with inputs that were not recorded. Prints where the recording is. On a GPU
/// with command streams the driver is panthor, and an ordinary user records in the app.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask guest record saxpy\n  cargo xtask guest record resnet50    # a network, into target/guest/networks\n  \
                        cargo xtask guest record acl-gemm --keep gemm -o gemm/recording    # traces stay there\n\n\
                        Programs are those of tools/guest/recordable.toml; a name that is not there gets the list. Networks with their sizes and times: docs/measurements.md."
)]
pub(crate) struct Record {
    /// Name of the program or network; hyphens may be left out.
    name: String,
    /// Which GPU the model is.
    #[arg(long, default_value = "g52", value_name = "NAME")]
    gpu: String,
    /// Where the recording goes; if not given, recordings/NAME-GPU, or target/guest/networks/NAME/NAME-GPU for networks that the
    /// repository does not hold.
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Keep traces, inputs and outputs of the guest in this directory; those of networks stay in target/guest/networks/NAME.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Caches that are not coherent: what the recorder does not clean is wrong in the log.
    #[arg(long)]
    non_coherent: bool,
    /// Do not boot: compile the traces that an earlier run kept in the directory of --keep.
    #[arg(long, requires = "keep")]
    no_boot: bool,
    /// Use the programs in target/guest/opt and target/debug as they are.
    #[arg(long)]
    no_build: bool,
    /// Seconds until the run is given up.
    #[arg(long, default_value_t = 7200, value_name = "SECONDS")]
    timeout: u64,
}

impl Record {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        let name = App::named(&folder, &self.name)?;
        let app = App::find(&folder, &name)?;
        folder.require_built()?;
        if !self.no_build {
            payload::prepare(&folder, Driver::Patched)?;
            payload::build_host_command(&folder)?;
        }
        if self.non_coherent && !self.no_build {
            payload::board_modules(&folder)?;
        }
        let temporary = files::temporary()?;
        let work = match &self.keep {
            Some(dir) => std::path::absolute(dir).map_err(Error::io("find", dir))?,
            None if app.network => network_dir(&folder, &name, &self.gpu),
            None => temporary.path().to_path_buf(),
        };
        files::create_dir(&work)?;
        let job = Recording {
            folder: &folder,
            name: &name,
            app: &app,
            gpu: &self.gpu,
            work: &work,
            timeout: Duration::from_secs(self.timeout),
            non_coherent: self.non_coherent,
        };
        if !self.no_boot {
            let outcome = job.trace(true)?;
            if outcome.clean().is_err() {
                let code = report(&outcome, false, self.timeout);
                return Ok(ExitCode::from(if code == 0 { 1 } else { code }));
            }
        }
        let output = match &self.output {
            Some(dir) => std::path::absolute(dir).map_err(Error::io("find", dir))?,
            None => job.default_output(),
        };
        job.compile(&output)?;
        println!("{}", output.display());
        match job.compare_noted(&payload::host_command(&folder), &output)? {
            Ok(noted) => println!("  OpenCL calls alone show the same tensors: {noted}"),
            Err(text) => println!("  OpenCL calls alone show other tensors: {text}"),
        }
        for name in &app.outputs {
            match job.replay(&output, name) {
                Ok(error) => println!("  {name} for a second input: relative error {error:.1e}"),
                Err(text) => {
                    eprintln!("error: replay with a second input: {text}");
                    return Ok(ExitCode::FAILURE);
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

const PROLOGUE: &str = r#"set -e
mkdir -p live
[ ! -e shader-cache.tar ] || tar -C /tmp/cache -xf shader-cache.tar
: > times
took() { echo "$1 = $((($(date +%s%N) - begin) / 1000000))" >> times; }
begin=$(date +%s%N)
"#;

pub(crate) fn network_dir(folder: &Folder, name: &str, gpu: &str) -> PathBuf {
    let name = match gpu {
        "g52" => name.to_owned(),
        gpu => format!("{name}-{gpu}"),
    };
    folder.local.join("networks").join(name)
}

pub(crate) struct Recording<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) name: &'a str,
    pub(crate) app: &'a App,
    pub(crate) gpu: &'a str,
    pub(crate) work: &'a Path,
    pub(crate) timeout: Duration,
    pub(crate) non_coherent: bool,
}

impl Recording<'_> {
    /// The kernel's recorder knows job chains only.
    fn takes_streams(&self) -> bool {
        StreamGpu::by_name(self.gpu).is_some()
    }

    pub(crate) fn trace(&self, stream: bool) -> Result<Outcome> {
        if self.takes_streams() {
            return self.trace_by_user(stream);
        }
        app::write_files(self.folder, self.name, self.work)?;
        if self.app.uses_clblast() {
            payload::clblast(self.folder)?;
        }
        // Compared runs must allocate alike: filled shader cache, equal host addresses, threads in turns. The first
        // is the live stack's answer.
        let mut script = String::from(PROLOGUE);
        script += &format!("{}\ntook live\n", self.app.command(SETS[1]));
        for output in &self.app.outputs {
            script += &format!("mv {output}{}.npy live/\n", SETS[1]);
        }
        // Small files cost the guest several messages each.
        script += "tar -C /tmp/cache -cf shader-cache.tar .\n";
        script += &self.app.sample_script();
        // The second recording looks at every page, and fails if the first would have missed a change.
        for (set, dirty) in SETS.into_iter().zip([1, 2]) {
            script += &format!(
                "echo {dirty} > /sys/module/gpureplay_recorder/parameters/dirty\n\
                 begin=$(date +%s%N)\n\
                 gpureplay record --force --raw trace{set} -- taskset -c 0 chrt -f 1 setarch --addr-no-randomize {}\n\
                 took record{set}\n",
                self.app.command(set)
            );
        }
        let options = Options {
            gpu: self.gpu.to_owned(),
            driver: Driver::Patched,
            memory: self.app.memory,
            timeout: self.timeout,
            share: Some(self.work.to_path_buf()),
            model_options: vec![
                "--register-log".into(),
                self.register_log().display().to_string(),
            ],
            stream,
            board: Board {
                non_coherent: self.non_coherent,
                ..Board::default()
            },
            ..Options::default()
        };
        let command = ["bash", "-c", &script].map(String::from);
        session::run(self.folder, &options, Some(&command))
    }

    fn command(&self) -> String {
        let gpu = match self.gpu {
            "g52" => String::new(),
            gpu => format!(" --gpu {gpu}"),
        };
        format!("cargo xtask guest record {}{gpu}", self.name)
    }

    pub(crate) fn default_output(&self) -> PathBuf {
        let name = format!("{}-{}", self.name, self.gpu);
        if self.app.network && !(self.app.ships && self.gpu == "g52") {
            self.work.join(name)
        } else {
            self.folder.repository.join("recordings").join(name)
        }
    }

    pub(crate) fn register_log(&self) -> PathBuf {
        self.work.join("registers")
    }

    pub(crate) fn compile(&self, output: &Path) -> Result<()> {
        self.live_is_recorded()?;
        self.compile_with(&payload::host_command(self.folder), output, &[])?;
        self.complete(output)
    }

    pub(crate) fn live_is_recorded(&self) -> Result<()> {
        for name in &self.app.outputs {
            let recorded = self.work.join(format!("{name}{}.npy", SETS[1]));
            match app::identical(&self.live(name), &recorded) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(Error::Usage(format!(
                        "{}: recording changed what the app computes: {name} differs",
                        self.name
                    )));
                }
                Err(text) => return Err(Error::Usage(text)),
            }
        }
        Ok(())
    }

    /// The live stack's answer to the second input set.
    pub(crate) fn live(&self, output: &str) -> PathBuf {
        self.work
            .join("live")
            .join(format!("{output}{}.npy", SETS[1]))
    }

    pub(crate) fn compile_with(
        &self,
        program: &Path,
        output: &Path,
        options: &[&str],
    ) -> Result<()> {
        let mut compile = Command::new(program);
        compile
            .current_dir(self.work)
            .args(["compile", "trace", "--second", "trace2", "--force"])
            .args(["--description", &self.app.description])
            .arg("--command")
            .arg(self.command());
        if let Some(tensors) = &self.app.tensors {
            let tools = self.folder.repository.join("tools");
            compile.arg("--tensors").arg(tools.join(tensors));
        }
        let from_files = self.app.tensors.is_none();
        for name in self.app.inputs.iter().filter(|_| from_files) {
            compile.arg(format!("--reads={name}=inputs/{name}.npy"));
            compile.arg(format!("--second-input={name}=inputs/{name}2.npy"));
        }
        for name in &self.app.layers {
            compile.arg(format!("--intermediate={name}=layers/{name}.npy"));
        }
        let chosen = options
            .iter()
            .any(|option| option.starts_with("--granularity"));
        if !self.app.layers.is_empty() && !chosen {
            compile.arg("--granularity=layer");
        }
        for name in &self.app.weights {
            compile.arg(format!("--weight={name}=inputs/{name}.npy"));
        }
        if self.app.network {
            compile.args(["--weights", "weights"]);
        }
        for name in &self.app.outputs {
            let tolerance = if self.app.exact {
                0.0
            } else {
                self.app.tolerance
            };
            compile.arg(format!("--tolerance={name}={tolerance}"));
            if from_files {
                compile.arg(format!("--writes={name}={name}.npy"));
                compile.arg(format!("--second-output={name}={name}2.npy"));
            }
        }
        for (key, value) in self.provenance()? {
            compile.arg(format!("--provenance={key}={value}"));
        }
        compile.args(options).arg("-o").arg(output);
        let log = self.folder.local.join("log/compile.log");
        logged(&mut compile, "compiling the recording", &log)
    }

    pub(crate) fn complete(&self, output: &Path) -> Result<()> {
        let copy = |kind: &str, name: &str, set: &str| {
            let from = if self.app.exact && kind == "expected" {
                self.work.join(format!("{name}{set}.npy"))
            } else {
                app::file(self.work, kind, name, set)
            };
            let to = app::file(output, kind, name, set);
            files::copy(&from, &to)
        };
        let mut cases = Vec::new();
        for name in &self.app.samples {
            copy("inputs", name, "")?;
            copy("expected", name, "")?;
            cases.push(self.case("the recorded stack", |_| name.clone()));
        }
        let reference = if self.app.exact {
            "the recorded stack"
        } else {
            "NumPy, double precision"
        };
        for set in SETS {
            for name in &self.app.inputs {
                copy("inputs", name, set)?;
            }
            for name in &self.app.outputs {
                copy("expected", name, set)?;
            }
            cases.push(self.case(reference, |name| format!("{name}{set}")));
        }
        manifest::change(&output.join("manifest.toml"), |manifest| {
            manifest.cases = cases;
            manifest.images.clone_from(&self.app.images);
            if let (false, Some(output)) = (self.app.labels.is_empty(), self.app.outputs.first()) {
                let known = manifest.outputs.entry(output.clone()).or_default();
                known.labels.clone_from(&self.app.labels);
            }
        })
    }

    fn case(&self, reference: &str, file: impl Fn(&str) -> String) -> Case {
        let files = |kind: &str, tensors: &[String]| {
            let path = |tensor: &String| format!("{kind}/{}.npy", file(tensor));
            let pairs = tensors.iter().map(|tensor| (tensor.clone(), path(tensor)));
            pairs.collect()
        };
        Case {
            inputs: files("inputs", &self.app.inputs),
            expected: files("expected", &self.app.outputs),
            reference: reference.into(),
        }
    }

    /// Second input set; gives the largest relative error.
    pub(crate) fn replay(
        &self,
        recording: &Path,
        output: &str,
    ) -> std::result::Result<f64, String> {
        let result = self.replayed(output);
        self.replay_with(&payload::host_command(self.folder), recording)
            .map_err(|error| error.to_string())?;
        if self.app.network && !app::identical(&result, &self.live(output))? {
            return Err(format!("{output} is not what the live stack answers"));
        }
        let expected = app::file(self.work, "expected", output, SETS[1]);
        app::check(&result, &expected, self.app.tolerance)
    }

    pub(crate) fn replayed(&self, output: &str) -> PathBuf {
        self.work.join(format!("replayed-{output}.npy"))
    }

    pub(crate) fn replay_with(&self, program: &Path, recording: &Path) -> Result<()> {
        let mut replay = Command::new(program);
        replay.args(["run", "--force"]).arg(recording);
        for name in &self.app.inputs {
            let file = app::file(self.work, "inputs", name, SETS[1]);
            replay.arg(format!("--input={name}={}", file.display()));
        }
        for output in &self.app.outputs {
            replay.arg(format!(
                "--output={output}={}",
                self.replayed(output).display()
            ));
        }
        let log = self.folder.local.join("log/replay.log");
        logged(&mut replay, "replaying", &log)
    }

    fn provenance(&self) -> Result<Vec<(&'static str, String)>> {
        let version = |package: &str| {
            let path = format!("userland/usr/share/doc/{package}/changelog.Debian.gz");
            let output = Command::new("zcat")
                .arg(self.folder.guest.join(path))
                .output()
                .map_err(Error::start("zcat"))?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok::<_, Error>(changelog_version(&text).unwrap_or("unknown").to_owned())
        };
        let mut pairs = vec![
            ("app", self.app.command("")),
            ("runtime", format!("Mesa {}", version("mesa-opencl-icd")?)),
        ];
        pairs.push(("kernel", self.folder.stock_kernel()?));
        let driver = match self.takes_streams() {
            true => "panthor",
            false => "panfrost",
        };
        pairs.push(("driver", driver.into()));
        if self.app.uses_compute_library() {
            let library = version("libarm-compute-dev")?;
            pairs.push(("framework", format!("Arm Compute Library {library}")));
        }
        if self.app.uses_clblast() {
            let version = files::text(self.folder.local.join("clblast/version"))?;
            pairs.push(("framework", format!("CLBlast {}", version.trim())));
        }
        if self.app.network {
            let weights = "generated from a seed by tools/networks/layers.py: not trained";
            pairs.push(("weights", weights.to_owned()));
        }
        Ok(pairs)
    }
}

/// Line: `mesa (25.0.7-2) trixie; urgency=medium`.
fn changelog_version(text: &str) -> Option<&str> {
    let (_, rest) = text.lines().next()?.split_once('(')?;
    Some(rest.split_once(')')?.0)
}

#[cfg(test)]
mod tests {
    use super::changelog_version;

    #[test]
    fn versions_come_from_changelogs() {
        let text = "mesa (25.0.7-2) trixie; urgency=medium\n\n  * Something (else).\n";
        assert_eq!(changelog_version(text), Some("25.0.7-2"));
        assert_eq!(changelog_version(""), None);
        assert_eq!(changelog_version("broken (line\n"), None);
    }
}
