// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask node`: OpenCL programs on Mesa through the model's render node, without guest; their answers are compared, and one is recorded.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Args;
use gpureplay_task::{
    checks::{Counts, End},
    output,
};

use crate::{
    error::{Error, Result},
    repository::root,
};

/// Elements of a tensor of saxpy.
const ELEMENTS: usize = 1000;
/// Numbers in the files of `opencl_cases`.
const COUNT: usize = 256;
/// Programs that check their own results, and their arguments.
const CHECKED: [(&str, &[&str]); 5] = [
    ("kernels", &["--dir", "KERNELS"]),
    ("image_fill", &[]),
    ("image_formats", &[]),
    ("image_samplers", &[]),
    ("kernel_printf", &[]),
];

/// Runs OpenCL programs of the guest on this machine, on Mesa and the model, and compares their answers
///
/// Nothing of the guest is needed. Skipped, with a reason, where no Mesa with panfrost or no C compiler is found.
#[derive(Args)]
#[command(
    after_help = "Needs cc, the headers and the loader of OpenCL (apt-get install gcc ocl-icd-opencl-dev), and what cargo xtask mesa makes.\n\
                        Example:\n  cargo xtask mesa && cargo xtask node"
)]
pub(crate) struct Node {
    /// Run on this GPU only [default: the kernels on all, the others on g52]
    #[arg(long)]
    gpu: Option<String>,
}

/// What the CPU makes of a number of the input at an index.
type Values = fn(&[f32], usize) -> f32;

/// The program's own factors.
fn factor(i: usize) -> f32 {
    0.5 + (i * 29 % 64) as f32 / 32.0
}

fn scaled(x: &[f32], i: usize) -> f32 {
    x[i] * factor(i)
}

fn sum(x: &[f32], i: usize) -> f32 {
    scaled(x, i) + x[i]
}

/// Cases of `opencl_cases`, and their answers.
const CASES: [(&str, Values); 14] = [
    ("read-back", scaled),
    ("written-twice", |x, i| scaled(x, i) + x[COUNT - 1 - i]),
    ("image", |x, i| 2.0 * x[i]),
    ("user-pointers", scaled),
    ("sub-buffers", scaled),
    ("print", |x, i| x[i] + 1.0),
    ("out-of-order", sum),
    ("two-queues", sum),
    ("two-contexts", |x, i| scaled(x, i) * factor(i)),
    ("sampler", |x, i| 2.0 * (x[i] + 1.0)),
    ("image-read", |x, i| x[i] + 1.0),
    ("copied", |x, i| scaled(x, i) * factor(i)),
    ("copied-too", sum),
    ("copied-result", scaled),
];

impl Node {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let work = tempfile::tempdir().map_err(Error::io("create", env::temp_dir()))?;
        let mut counts = Counts::default();
        if let Some(reason) = missing() {
            counts.add("OpenCL programs", Ok(End::Skipped(reason)));
            return Ok(counts.finish());
        }
        build()?;
        let here = Here {
            command: root().join("target/debug/gpureplay"),
            work: work.path().to_owned(),
        };
        let all = ["g31", "g52", "g57", "g71", "g72", "g76"];
        let one = self.gpu.as_deref();
        let gpus = one.map_or(all.to_vec(), |gpu| vec![gpu]);
        for (program, arguments) in CHECKED {
            here.compile(program)?;
            let gpus = if program == "kernels" {
                &gpus[..]
            } else {
                &[one.unwrap_or("g52")]
            };
            for gpu in gpus {
                // Mesa fills images with draws, which the model runs on Bifrost only.
                let draws = program != "image_fill" || *gpu != "g57";
                let end = match draws {
                    true => here.checked(program, arguments, gpu),
                    false => Ok(End::Skipped("the model does not draw on this GPU".into())),
                };
                counts.add(&format!("{program}, {gpu}"), end);
            }
        }
        here.compile("opencl_cases")?;
        for (case, values) in CASES {
            counts.add(case, here.case(case, values, one.unwrap_or("g52")));
        }
        here.compile("saxpy")?;
        let recorded = one.map_or(vec!["g52", "g57"], |gpu| vec![gpu]);
        for gpu in recorded {
            counts.add(
                &format!("saxpy is recorded, and replayed with other inputs, {gpu}"),
                here.recorded(gpu),
            );
        }
        Ok(counts.finish())
    }
}

/// Builds the command, and what it loads into an app.
pub(crate) fn build() -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(root()).args(["build", "--quiet"]);
    let packages = [
        "gpureplay",
        "gpureplay-node",
        "gpureplay-opencl",
        "gpureplay-recorder",
    ];
    build.args(packages.iter().flat_map(|package| ["-p", package]));
    output(&mut build).map(drop)
}

/// What is missing on this machine, in words.
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

/// Where programs are and run.
struct Here {
    command: PathBuf,
    work: PathBuf,
}

impl Here {
    /// Compiles a program as the guest's makefile does.
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

    /// A program on the node.
    fn program(&self, program: &str, gpu: &str) -> Command {
        let mut command = Command::new(&self.command);
        command
            .current_dir(&self.work)
            .args(["node", "--gpu", gpu, "--"]);
        command.arg(self.work.join(program));
        command
    }

    /// A program that ends with `N passed, 0 failed`.
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
        Err(Error::FellShort {
            what: program.to_owned(),
            remedy: format!("it said: {last}"),
        })
    }

    /// A case, whose file must hold what the CPU computes.
    fn case(&self, case: &str, values: Values, gpu: &str) -> Result<End> {
        let input: Vec<f32> = (0..COUNT)
            .map(|i| (i * 37 % 101) as f32 / 16.0 - 3.0)
            .collect();
        let bytes: Vec<u8> = input.iter().flat_map(|value| value.to_le_bytes()).collect();
        let file = self.work.join("in.bin");
        fs::write(&file, bytes).map_err(Error::io("write", &file))?;
        let out = self.work.join(format!("{case}.out"));
        output(
            self.program("opencl_cases", gpu)
                .args([case, "in.bin"])
                .arg(&out),
        )?;
        let bytes = fs::read(&out).map_err(Error::io("read", &out))?;
        let found: Vec<f32> = bytes
            .chunks_exact(4)
            .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let expected: Vec<f32> = (0..COUNT).map(|i| values(&input, i)).collect();
        // Sums and products of these numbers have few bits: the GPU's are the same, fused or not.
        match found.len() == COUNT && found == expected {
            true => Ok(End::Passed(format!("{COUNT} numbers"))),
            false => Err(Error::FellShort {
                what: case.to_owned(),
                remedy: format!(
                    "expected {:?}…, found {:?}…",
                    &expected[..4],
                    found.get(..4)
                ),
            }),
        }
    }

    /// An app that is recorded on the model: of the G52, the recording is the one that ships, byte for byte; it gives the right answer to other inputs.
    fn recorded(&self, gpu: &str) -> Result<End> {
        let folder = format!("recorded-{gpu}");
        let shipped = root().join("recordings/saxpy-g52");
        let input = |name: &str| shipped.join("inputs").join(name);
        let mut record = Command::new(&self.command);
        record.current_dir(&self.work);
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
        let read = |path: PathBuf| fs::read(&path).map_err(Error::io("read", path));
        let fell_short = |remedy: &str| {
            let what = "recording saxpy on the model".to_owned();
            Err(Error::FellShort {
                what,
                remedy: remedy.into(),
            })
        };
        let file = |folder: &Path| read(folder.join("recording.gpr"));
        if gpu == "g52" && file(&self.work.join(&folder))? != file(&shipped)? {
            return fell_short(
                "the recording is not the one that ships; another Mesa compiles other shaders",
            );
        }
        let mut replay = Command::new(&self.command);
        replay.current_dir(&self.work);
        let replayed = format!("replayed-{gpu}.npy");
        replay.args(["run", &folder, "--output", &replayed]);
        for name in ["x", "y"] {
            let file = input(&format!("{name}2.npy"));
            replay
                .arg("--input")
                .arg(format!("{name}={}", file.display()));
        }
        output(&mut replay)?;
        let numbers = |bytes: Vec<u8>| -> Vec<f32> {
            let start = bytes.len().saturating_sub(4 * ELEMENTS);
            let words = bytes[start..].as_chunks().0.iter();
            words.map(|word| f32::from_le_bytes(*word)).collect()
        };
        let [x, y, found] = [input("x2.npy"), input("y2.npy"), self.work.join(&replayed)]
            .map(|path| read(path).map(numbers));
        let (x, y, found) = (x?, y?, found?);
        let right = x.iter().zip(&y).map(|(x, y)| 2.5f32.mul_add(*x, *y));
        match found.len() == ELEMENTS && right.eq(found.iter().copied()) {
            true => Ok(End::Passed(format!("{ELEMENTS} numbers"))),
            false => fell_short("the replay with other inputs is wrong"),
        }
    }
}
