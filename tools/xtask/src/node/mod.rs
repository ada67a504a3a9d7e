// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask node`: OpenCL on Mesa and the model.

mod equal;
mod piglit;
mod tuners;
mod twins;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Args;
use gpureplay_task::{
    cases,
    checks::{Counts, End},
    output,
};

use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

const ELEMENTS: usize = 1000;
const STREAMS: &str = "g610";
/// Images of these kinds are filled by a draw.
const DRAWN: [&str; 7] = [
    "1d", "1d_array", "2d", "2d_array", "3d", "large", "large_3d",
];
const NO_DRAW: &str = "is part of a draw, which is neither modelled nor replayed";
const SELF_CHECKING: [(&str, &[&str]); 5] = [
    ("kernels", &["--dir", "KERNELS"]),
    ("image_fill", &[]),
    ("image_formats", &[]),
    ("image_samplers", &[]),
    ("kernel_printf", &[]),
];

/// Runs OpenCL programs of the guest on this machine, on Mesa and the model, and compares their answers
///
/// Skipped, with a reason, without Mesa with panfrost or a C compiler.
#[derive(Args)]
#[command(
    after_help = "Needs cc, the headers and the loader of OpenCL (apt-get install gcc ocl-icd-opencl-dev), and what cargo xtask mesa makes.\n\
                        Example:\n  cargo xtask mesa && cargo xtask node"
)]
pub(crate) struct Node {
    /// Run on this GPU only [default: the kernels on all, images on g52, g57 and g72, the others on g52]
    #[arg(long)]
    gpu: Option<String>,
}

impl Node {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let work = files::temporary()?;
        let mut counts = Counts::default();
        if let Some(reason) = missing() {
            counts.add("OpenCL programs", Ok(End::Skipped(reason)));
            return Ok(counts.finish());
        }
        let here = Here {
            command: build()?.join("gpureplay"),
            work: work.path().to_owned(),
        };
        let all = ["g31", "g52", "g57", STREAMS, "g71", "g72", "g76"];
        let one = self.gpu.as_deref();
        let gpus = one.map_or(all.to_vec(), |gpu| vec![gpu]);
        for (program, arguments) in SELF_CHECKING {
            here.compile(program)?;
            for gpu in gpus
                .iter()
                .filter(|gpu| one.is_some() || tried(program, gpu))
            {
                let end = match (program, *gpu) {
                    ("image_fill", STREAMS) => here.undrawn(),
                    _ => here.checked(program, arguments, gpu),
                };
                counts.add(&format!("{program}, {gpu}"), end);
            }
        }
        if one.is_none_or(|gpu| ["g57", STREAMS].contains(&gpu)) {
            counts.add(
                "every kernel leaves the same bytes on a G57 and a G610 as on a G52",
                equal::all(&here),
            );
        }
        let gpu = one.unwrap_or("g52");
        for (program, names) in [
            ("opencl_cases", cases::names().collect::<Vec<_>>()),
            ("opencl_misuse", cases::misused().collect()),
        ] {
            here.compile(program)?;
            for (case, end) in here.cases(gpu, &names)? {
                counts.add(case, end);
            }
        }
        here.compile("twins")?;
        counts.add(
            "kernels of equal code keep their names, which change nothing else",
            here.end("twins", twins::all(&here, gpu)?),
        );
        counts.add(
            "a sample of piglit's OpenCL tests passes",
            piglit::sample(&here, gpu),
        );
        let gpu = one.unwrap_or("g57");
        for (name, end) in tuners::all(&here, gpu) {
            counts.add(&format!("CLBlast's tuner {name}, {gpu}"), end);
        }
        here.compile("saxpy")?;
        let recorded = one.map_or(vec!["g52", "g57", STREAMS], |gpu| vec![gpu]);
        for gpu in recorded {
            counts.add(
                &format!("saxpy is recorded, and replayed with other inputs, {gpu}"),
                here.recorded(gpu),
            );
        }
        Ok(counts.finish())
    }
}

/// With the libraries that programs load. Returns their directory.
pub(crate) fn build() -> Result<PathBuf> {
    gpureplay_task::build(&root(), &["--lib", "--bin", "gpureplay"])
}

fn unpacked(name: &str, file: &str, script: &str) -> Result<PathBuf> {
    let above = root().join("target");
    let own = above.join(name);
    if own.join(file).exists() {
        return Ok(own);
    }
    let work = tempfile::tempdir_in(&above).map_err(Error::io("create", &above))?;
    let to = work.path().join("unpacked");
    fs::create_dir(&to).map_err(Error::io("create", &to))?;
    let mut unpack = Command::new("bash");
    unpack.current_dir(work.path());
    output(unpack.args(["-c", script, "bash"]).arg(&to))?;
    fs::rename(&to, &own).map_err(Error::io("create", &own))?;
    Ok(own)
}

/// Images on one GPU per kind of texture descriptor, printing on one, kernels on all.
fn tried(program: &str, gpu: &str) -> bool {
    match program {
        "kernels" => true,
        "kernel_printf" => gpu == "g52",
        "image_fill" if gpu == STREAMS => true,
        _ => ["g52", "g57", "g72"].contains(&gpu),
    }
}

pub(crate) fn missing() -> Option<String> {
    let mut node = Command::new("cc");
    let headers = node.args([
        "-fsyntax-only",
        "-include",
        "CL/cl.h",
        "-x",
        "c",
        "/dev/null",
    ]);
    if output(headers).is_err() {
        return Some("no cc or no CL/cl.h (apt-get install gcc ocl-icd-opencl-dev)".into());
    }
    let chosen = env::var_os("OCL_ICD_VENDORS").is_some();
    let built = crate::mesa::link().join(crate::mesa::RUNTIME).exists();
    let arm =
        cfg!(target_arch = "aarch64") && Path::new("/etc/OpenCL/vendors/rusticl.icd").exists();
    (!chosen && !built && !arm).then(|| "no Mesa with panfrost (cargo xtask mesa)".into())
}

struct Here {
    command: PathBuf,
    work: PathBuf,
}

impl Here {
    fn compile(&self, program: &str) -> Result<()> {
        let apps = root().join("tools/guest/apps");
        let mut sources = vec![format!("{program}.c"), "opencl_gpu.c".into()];
        match program {
            "kernels" => sources.push("own_cases.c".into()),
            "saxpy" => sources.push("npy.c".into()),
            _ if program.starts_with("image_") => sources.push("image_cases.c".into()),
            _ => {}
        }
        let mut compiler = Command::new("cc");
        compiler.current_dir(apps).args([
            "-std=gnu11",
            "-O1",
            "-ffp-contract=off",
            "-fwrapv",
            "-o",
        ]);
        compiler.arg(self.work.join(program)).args(sources);
        output(compiler.args(["-lOpenCL", "-lm", "-lpthread"])).map(drop)
    }

    fn program(&self, program: &str, gpu: &str) -> Command {
        let mut command = Command::new(&self.command);
        command
            .current_dir(&self.work)
            .args(["node", "--gpu", gpu, "--"]);
        command.arg(self.work.join(program));
        command
    }

    fn checked(&self, program: &str, arguments: &[&str], gpu: &str) -> Result<End> {
        let kernels = root().join("tools/guest/apps/kernels");
        let mut command = self.program(program, gpu);
        for argument in arguments {
            match *argument {
                "KERNELS" => command.arg(&kernels),
                argument => command.arg(argument),
            };
        }
        let text = output(&mut command)?;
        let last = text.lines().next_back().unwrap_or_default();
        if last.ends_with("passed, 0 failed") && !last.starts_with("0 ") {
            return Ok(End::Passed(last.to_owned()));
        }
        Err(Error::fell_short(program, format!("it said: {last}")))
    }

    /// Image fills with command streams: of a buffer they are right; other kinds draw and are refused, as
    /// recordings are.
    fn undrawn(&self) -> Result<End> {
        let fell_short = |remedy: String| Err(Error::fell_short("image_fill", remedy));
        let right = self.checked("image_fill", &["1d_buffer"], STREAMS)?;
        let End::Passed(right) = right else {
            return Ok(right);
        };
        let trace = self.work.join("fill.trace");
        for kind in DRAWN {
            let case = format!("{kind} r unorm_int8");
            let mut record = self.gpureplay();
            record.args(["record", "--recorder", "model", "--gpu", STREAMS, "--force"]);
            record.args(["--keep", "--raw"]).arg(&trace).arg("--");
            record.arg(self.work.join("image_fill")).arg(&case);
            let mut compile = self.gpureplay();
            compile
                .args(["compile", "--force", "-o", "filled"])
                .arg(&trace);
            for command in [&mut record, &mut compile] {
                match output(command) {
                    Err(error) if error.to_string().contains(NO_DRAW) => {}
                    Err(error) => return fell_short(format!("{case}: {error}")),
                    Ok(_) => return fell_short(format!("{case} is not refused")),
                }
            }
        }
        let kinds = DRAWN.len();
        Ok(End::Passed(format!(
            "of a buffer {right}; {kinds} kinds are refused: the fill {NO_DRAW}"
        )))
    }

    fn gpureplay(&self) -> Command {
        let mut command = Command::new(&self.command);
        command.current_dir(&self.work);
        command
    }

    fn script(&self, text: &str, arguments: &[&str], gpu: &str) -> Command {
        let own = self.command.parent().unwrap_or(&self.work);
        let others = env::var_os("PATH").unwrap_or_default();
        let folders = [own, &self.work].map(Path::to_path_buf);
        let path = env::join_paths(folders.into_iter().chain(env::split_paths(&others)));
        let mut bash = Command::new("bash");
        bash.current_dir(&self.work);
        bash.args(["-c", text, "bash"]).args(arguments);
        bash.env("PATH", path.unwrap_or(others));
        bash.env("RECORD", format!("--recorder model --gpu {gpu}"));
        bash.env("ALONE", format!("gpureplay node --gpu {gpu} --"));
        bash
    }

    fn end(&self, what: &str, found: std::result::Result<(), String>) -> Result<End> {
        match found {
            Ok(()) => Ok(End::Passed("right".into())),
            Err(remedy) => Err(Error::fell_short(what, remedy)),
        }
    }

    fn cases(&self, gpu: &str, names: &[&'static str]) -> Result<Vec<(&'static str, Result<End>)>> {
        cases::write_inputs(&self.work)?;
        let printed = output(&mut self.script(cases::SCRIPT, names, gpu))?;
        let judged = |name: &'static str| {
            let case = (name, gpu == STREAMS);
            let found = cases::judge(&self.command, &self.work, case, &printed);
            (name, self.end(name, found))
        };
        Ok(names.iter().copied().map(judged).collect())
    }

    fn through_panthor(&self) -> Result<()> {
        let shipped = root().join("recordings/digits-g610");
        for digit in 0..10 {
            let file = |folder: &str| shipped.join(format!("{folder}/{digit}.npy"));
            let mut replay = self.gpureplay();
            replay.args(["node", "--gpu", STREAMS, "--"]);
            replay.arg(&self.command).arg("run").arg(&shipped);
            replay.args(["--device", "panthor", "--input"]);
            replay
                .arg(file("inputs"))
                .arg("--expect")
                .arg(file("expected"));
            let text = output(&mut replay)?;
            if !text.contains("bit for bit") {
                return Err(Error::fell_short(
                    "a replay through panthor",
                    format!("digit {digit}: {text}"),
                ));
            }
        }
        Ok(())
    }

    fn recorded(&self, gpu: &str) -> Result<End> {
        let folder = format!("recorded-{gpu}");
        let shipped = root().join("recordings/saxpy-g52");
        let input = |name: &str| shipped.join("inputs").join(name);
        let mut record = self.gpureplay();
        record.args([
            "record",
            "--recorder",
            "model",
            "--gpu",
            gpu,
            "--output",
            "out=out.npy",
            "-o",
            &folder,
        ]);
        for name in ["x", "y"] {
            let file = input(&format!("{name}.npy"));
            record
                .arg("--input")
                .arg(format!("{name}={}", file.display()));
        }
        record.arg("--").arg(self.work.join("saxpy"));
        for name in ["x", "y"] {
            record
                .arg(format!("--{name}"))
                .arg(input(&format!("{name}.npy")));
        }
        output(record.args(["--a", "2.5", "--out", "out.npy"]))?;
        let fell_short =
            |remedy: &str| Err(Error::fell_short("recording saxpy on the model", remedy));
        let file = |folder: &Path| files::read(folder.join("recording.gpr"));
        if gpu == "g52" && file(&self.work.join(&folder))? != file(&shipped)? {
            return fell_short(
                "the recording is not the one that ships; another Mesa compiles other shaders",
            );
        }
        let mut replay = self.gpureplay();
        let replayed = format!("replayed-{gpu}.npy");
        replay.args(["run", &folder, "--output", &replayed]);
        for name in ["x", "y"] {
            let file = input(&format!("{name}2.npy"));
            replay
                .arg("--input")
                .arg(format!("{name}={}", file.display()));
        }
        output(&mut replay)?;
        if gpu == STREAMS {
            self.through_panthor()?;
        }
        let numbers = |bytes: Vec<u8>| -> Vec<f32> {
            let start = bytes.len().saturating_sub(4 * ELEMENTS);
            let words = bytes[start..].as_chunks().0.iter();
            words.map(|word| f32::from_le_bytes(*word)).collect()
        };
        let [x, y, found] = [input("x2.npy"), input("y2.npy"), self.work.join(&replayed)]
            .map(|path| files::read(path).map(numbers));
        let (x, y, found) = (x?, y?, found?);
        let right = x.iter().zip(&y).map(|(x, y)| 2.5f32.mul_add(*x, *y));
        match found.len() == ELEMENTS && right.eq(found.iter().copied()) {
            true => Ok(End::Passed(format!("{ELEMENTS} numbers"))),
            false => fell_short("the replay with other inputs is wrong"),
        }
    }
}
