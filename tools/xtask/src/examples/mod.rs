// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask examples`: the pages' programs and commands.

mod commands;

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, ExitCode},
};

use clap::Args;
use gpureplay_task::{
    build,
    checks::{Counts, End},
    digits::{digits, probabilities, same},
    output_of,
    page::shell_blocks,
    started,
};

use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

/// Builds and runs the examples in C, Python and Rust, and compares their answers with the recorded stack's.
///
/// Each classifies the ten digits of digits-g52 and digits-g610; all probabilities must be the same, bit for bit.
/// Without NumPy the example in Python is skipped and counted. Then the commands of all pages run; docs/commands.toml
/// says which need more.
#[derive(Args)]
#[command(
    after_help = "Needs a C compiler (cc, or what CC names); python3 with NumPy (PYTHON names another interpreter).\n\
                        Example:\n  cargo xtask examples"
)]
pub(crate) struct Examples {}

impl Examples {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let top = root();
        let work = files::temporary()?;
        let built = build(
            &top,
            &["--lib", "--bin", "gpureplay", "--example", "layer_on_cpu"],
        )?;
        let library = built.join("libgpureplay.so");
        let mut counts = Counts::default();
        counts.add("C", in_c(&top, &library, work.path()));
        counts.add("Python", in_python(&top, &library));
        counts.add("Rust, a layer on the CPU", in_rust(&top, &built));
        let path = search_path(work.path(), &built);
        counts.add("docs/start.md", start_page(&top, work.path(), &path));
        commands::run(&top, work.path(), &path, &mut counts)?;
        Ok(counts.finish())
    }
}

fn in_c(top: &Path, library: &Path, work: &Path) -> Result<End> {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let program = work.join("digits");
    let mut compile = Command::new(compiler);
    compile
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(top.join("replayer/c/include"))
        .arg(top.join("replayer/c/examples/digits.c"))
        .arg("-o")
        .arg(&program)
        .arg(library);
    // Programs ask for the interface's version.
    let versioned = work.join("libgpureplay.so.0");
    std::os::unix::fs::symlink(library, &versioned).map_err(Error::io("create", &versioned))?;
    compile.arg(format!("-Wl,-rpath,{}", work.display()));
    output_of("compiling the example in C", &mut compile)?;
    let text = all_digits(top, || Command::new(&program))?;

    let recording = digits(top);
    let wrong = recording.join("expected/3.npy");
    let mut run = Command::new(&program);
    run.arg(&recording).arg(wrong);
    let output = started(&mut run)?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() != Some(4)
        || !errors.contains("expected f32[8,8] for input `input`, got f32[10]")
    {
        return Err(Error::Failed {
            what: "the example in C, with an input of another shape: exit code 4 and the two shapes were expected; it".into(),
            status: output.status,
            log: errors,
        });
    }
    Ok(End::Passed(text + "; an input of another shape is refused"))
}

fn in_python(top: &Path, library: &Path) -> Result<End> {
    let python = match python() {
        Ok(python) => python,
        Err(missing) => return Ok(End::Skipped(missing)),
    };
    let text = all_digits(top, || {
        let mut run = Command::new(&python);
        run.arg(top.join("replayer/c/examples/digits.py"));
        run.env("GPUREPLAY_LIBRARY", library);
        run
    })?;
    Ok(End::Passed(text))
}

fn python() -> std::result::Result<OsString, String> {
    let python = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let numpy = Command::new(&python).args(["-c", "import numpy"]).output();
    match numpy.is_ok_and(|output| output.status.success()) {
        true => Ok(python),
        false => Err(format!(
            "{} with NumPy is not there (apt-get install python3-numpy, or set PYTHON)",
            python.to_string_lossy()
        )),
    }
}

fn search_path(work: &Path, built: &Path) -> OsString {
    let mut path = work.as_os_str().to_owned();
    path.push(":");
    path.push(built);
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    path
}

fn start_page(top: &Path, work: &Path, path: &OsStr) -> Result<End> {
    let python = match python() {
        Ok(python) => python,
        Err(missing) => return Ok(End::Skipped(missing)),
    };
    let page = top.join("docs/start.md");
    let text = files::text(&page)?;
    // The page says `python3`.
    let script = work.join("python3");
    let line = format!("#!/bin/sh\nexec '{}' \"$@\"\n", python.to_string_lossy());
    files::write(&script, line)?;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&script, mode).map_err(Error::io("change", &script))?;
    let mut shell = Command::new("bash");
    shell
        .args(["-euc", &shell_blocks(&text)])
        .current_dir(top)
        .env("PATH", path);
    let said = output_of("docs/start.md", &mut shell)?;
    let stated = [
        (
            "→ digit 3 (1.000)",
            "matches the recorded stack bit for bit",
        ),
        ("→ digit 7 (", "nothing to compare with"),
        (
            "  lines ",
            "in 92544 lines; 2.48 lines for each access of a warp",
        ),
        (
            "  lines ",
            "in 74368 lines; 2.00 lines for each access of a warp",
        ),
    ];
    let mut lines = said.lines();
    let missing = stated
        .into_iter()
        .find(|(begins, ends)| !lines.any(|line| line.starts_with(begins) && line.ends_with(ends)));
    let missing = missing.map(|(begins, ends)| format!("{begins} … {ends}"));
    match missing.or((lines.next_back() != Some("3")).then(|| "3 last".to_owned())) {
        None => Ok(End::Passed(
            "digits 3 and 7, a better work group, a signed pack, Python".into(),
        )),
        Some(missing) => Err(Error::fell_short(
            format!("docs/start.md, which printed:\n{said}"),
            format!("it must print `{missing}`"),
        )),
    }
}

fn in_rust(top: &Path, built: &Path) -> Result<End> {
    let mut run = Command::new(built.join("examples/layer_on_cpu"));
    let text = output_of("the example in Rust", run.current_dir(top))?;
    Ok(End::Passed(text.trim().replace('\n', ", ")))
}

/// Of chains and of streams; the last ten words are probabilities.
fn all_digits(top: &Path, program: impl Fn() -> Command) -> Result<String> {
    for recording in [digits(top), top.join("recordings/digits-g610")] {
        for digit in 0..10 {
            let mut run = program();
            run.arg(&recording);
            run.arg(recording.join(format!("inputs/{digit}.npy")));
            let text = output_of("the example", &mut run)?;
            let expected = probabilities(&recording.join(format!("expected/{digit}.npy")))?;
            same(&text, digit, &expected).map_err(|text| {
                Error::Usage(format!("{}, digit {digit}: {text}", recording.display()))
            })?;
        }
    }
    Ok("10 digits on two GPUs, 200 probabilities as the recorded stacks', bit for bit".into())
}
