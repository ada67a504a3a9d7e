// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bare-metal builds in the build root.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use gpureplay_task::output_of;

use crate::{
    build::{
        payload::{self, in_root},
        step::logged,
    },
    error::{Error, Result},
    files,
    folder::Folder,
};

const IMAGE_TARGET: &str = "aarch64-unknown-none-softfloat";

pub(crate) struct Build<'a> {
    /// `build`, or `rustc` for its own options.
    pub(crate) subcommand: &'a str,
    pub(crate) source: &'a str,
    pub(crate) target: &'a str,
    pub(crate) output: &'a Path,
    pub(crate) arguments: &'a [&'a str],
    pub(crate) environment: &'a [(&'a str, OsString)],
}

impl Build<'_> {
    pub(crate) fn run(&self, folder: &Folder) -> Result<PathBuf> {
        let home = payload::cargo_home();
        let mut visible = home.clone().into_os_string();
        // Building core asks the registry for the standard library's dependencies.
        visible.push(":/etc/ssl/certs");
        let mut command = in_root(folder);
        command
            .current_dir(folder.repository.join(self.source))
            .env("GPUREPLAY_BIND", visible)
            .args(["env", "RUSTC_BOOTSTRAP=1"])
            .arg(payload::with("CARGO_HOME=", &home));
        for (name, value) in self.environment {
            command.arg(payload::with(&format!("{name}="), Path::new(value)));
        }
        command
            .args(["cargo", self.subcommand, "--locked", "--release"])
            .arg("--target")
            .arg(self.target)
            .args(self.arguments)
            .arg("--target-dir")
            .arg(self.output);
        let name = self.source.replace('/', "-");
        let log = folder.local.join(format!("log/{name}.log"));
        logged(&mut command, self.source, &log)?;
        Ok(self.output.join(self.target).join("release"))
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Linked<'a> {
    /// If `None`, the image replays what the machine loads.
    pub(crate) recording: Option<&'a Path>,
    /// .npy files of tensors that need a value, in order.
    pub(crate) inputs: &'a [PathBuf],
    /// Public key in hexadecimal, and smallest accepted counter.
    pub(crate) trust: Option<(&'a str, u64)>,
    pub(crate) runs: u32,
    /// If not 0: disturbs a step at every n-th device call instead.
    pub(crate) faults: u32,
}

pub(crate) fn firmware(folder: &Folder, linked: &Linked<'_>, features: &[&str]) -> Result<PathBuf> {
    let copies = folder.local.join("firmware");
    files::create_dir(&copies)?;
    let absolute = |path: &Path| path.canonicalize().map_err(Error::io("find", path));
    let copy = |from: &Path, name: String| -> Result<PathBuf> {
        let to = copies.join(name);
        fs::copy(absolute(from)?, &to).map_err(Error::io("copy", from))?;
        Ok(to)
    };
    let recording = match linked.recording {
        Some(path) => copy(path, "recording.gpr".into())?.into_os_string(),
        None => OsString::new(),
    };
    let mut values = OsString::new();
    for (index, input) in linked.inputs.iter().enumerate() {
        if index > 0 {
            values.push(":");
        }
        values.push(copy(input, format!("{index}.npy"))?);
    }
    let (key, counter) = linked.trust.unwrap_or_default();
    let environment = [
        ("GPUREPLAY_RECORDING", recording),
        ("GPUREPLAY_INPUTS", values),
        ("GPUREPLAY_RUNS", linked.runs.to_string().into()),
        ("GPUREPLAY_FAULTS", linked.faults.to_string().into()),
        ("GPUREPLAY_PUBLIC_KEY", key.into()),
        ("GPUREPLAY_COUNTER", counter.to_string().into()),
    ];
    let features = features.join(",");
    let build = Build {
        subcommand: "build",
        source: "replayer/devices/firmware",
        target: IMAGE_TARGET,
        output: &folder.local.join("firmware-cargo"),
        arguments: &["--features", &features],
        environment: &environment,
    };
    Ok(build.run(folder)?.join("gpureplay-firmware"))
}

pub(crate) fn embedding(folder: &Folder, language: &str, input: &Path) -> Result<PathBuf> {
    let rust = language == "rs";
    let mut arguments = vec![
        "-Zbuild-std=core",
        "-Zbuild-std-features=optimize_for_size,compiler-builtins-mem",
    ];
    let artefact = if rust { "--example" } else { "--crate-type" };
    arguments.extend([artefact, if rust { "embed" } else { "staticlib" }]);
    let build = Build {
        subcommand: if rust { "build" } else { "rustc" },
        source: "replayer/devices/bare",
        target: IMAGE_TARGET,
        output: &folder.local.join("bare-cargo"),
        arguments: &arguments,
        environment: &[("RUSTFLAGS", "-Crelocation-model=static".into())],
    };
    let built = build.run(folder)?;
    let image = built.join(format!("embed-{language}"));
    let copy = built.join("input.npy");
    files::copy(input, &copy)?;
    let mut compiler = String::from(
        "-std=gnu11 -Os -Wall -Wextra -Wno-unused-parameter -Werror -ffreestanding -mgeneral-regs-only \
         -mstrict-align -ffunction-sections -nostdlib -static -no-pie -Wl,--gc-sections,--build-id=none \
         -Wl,-Treplayer/devices/firmware/firmware.ld -Ireplayer/devices/bare/include replayer/devices/bare/examples/start.S",
    );
    let library = if rust {
        compiler.push_str(" replayer/devices/bare/examples/board.c");
        "examples/libembed.a"
    } else {
        compiler.push_str(" replayer/devices/bare/examples/embed.c");
        "libgpureplay_bare.a"
    };
    let layout = "-fsyntax-only -Wall -Wextra -Werror -Ireplayer/devices/bare/include replayer/devices/bare/examples/layout.c";
    let layout: Vec<&str> = layout.split(' ').collect();
    tool(folder, "aarch64-linux-gnu-gcc", &layout)?;
    let mut words: Vec<String> = compiler.split(' ').map(String::from).collect();
    words.push(format!("-Wa,-I{}", built.display()));
    words.push(built.join(library).display().to_string());
    words.extend(["-o".into(), image.display().to_string()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    tool(folder, "aarch64-linux-gnu-gcc", &words)?;
    Ok(image)
}

/// OP-TEE's core has `memcpy` and is position-independent.
pub(crate) fn for_secure_core(folder: &Folder) -> Result<PathBuf> {
    let library = secure(folder, "replayer/devices/bare", "secure-core-cargo")?;
    Ok(library.join("libgpureplay_bare.a"))
}

pub(crate) fn for_trusted_application(folder: &Folder) -> Result<PathBuf> {
    let library = secure(folder, "replayer/devices/optee/trust", "trust-cargo")?;
    Ok(library.join("libgpureplay_optee_trust.a"))
}

fn secure(folder: &Folder, source: &str, output: &str) -> Result<PathBuf> {
    let build = Build {
        subcommand: "rustc",
        source,
        target: IMAGE_TARGET,
        output: &folder.local.join(output),
        arguments: &[
            "--crate-type",
            "staticlib",
            "-Zbuild-std=core",
            "-Zbuild-std-features=optimize_for_size",
        ],
        environment: &[("RUSTFLAGS", "-Crelocation-model=pic".into())],
    };
    build.run(folder)
}

pub(crate) fn tool(folder: &Folder, program: &str, arguments: &[&str]) -> Result<String> {
    output_of(program, in_root(folder).arg(program).args(arguments))
}
