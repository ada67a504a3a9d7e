// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest firmware`: the bare-metal replayer, built for a recording and booted in QEMU with the model as its GPU.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use clap::Args;

use super::{
    folder::{Folder, create_dir},
    machine, payload,
    step::{last_lines, logged},
};
use crate::error::{Error, Result};

/// Target of the image: no floating-point registers, no operating system.
const TARGET: &str = "aarch64-unknown-none-softfloat";
/// Where the image looks for a recording that is not linked in (`replayer/firmware/src/machine.rs`).
const LOAD_ADDRESS: &str = "0x50000000";
/// Memory in MiB; the image relies on this much.
const MEMORY: u32 = 512;
/// A boot that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Builds the bare-metal image with a recording in it, boots it in QEMU, and prints what it says.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask guest firmware recordings/digits-g52 recordings/digits-g52/inputs/3.npy\n  \
                        cargo xtask guest firmware --gpu g71 mnist conv1.weight.npy conv1.bias.npy … input.npy\n\n\
                        Ends with 0 when the image says DONE."
)]
pub(crate) struct Firmware {
    /// Directory with a recording.gpr.
    recording: PathBuf,
    /// Values of the tensors that need one, as .npy files in the recording's order.
    inputs: Vec<PathBuf>,
    /// The GPU's model.
    #[arg(long, default_value = "g52")]
    gpu: String,
    /// Do not boot.
    #[arg(long)]
    build_only: bool,
}

impl Firmware {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let image = build(&folder, Some(&self.recording), &self.inputs)?;
        println!("{}", image.display());
        if self.build_only {
            return Ok(ExitCode::SUCCESS);
        }
        payload::prepare(&folder, super::session::Driver::None)?;
        let said = boot(&folder, &image, &self.gpu, None)?;
        print!("{said}");
        Ok(ExitCode::from(u8::from(!said.contains("\nDONE"))))
    }
}

/// Builds the image; without a recording it takes the one that the machine loads.
pub(crate) fn build(
    folder: &Folder,
    recording: Option<&Path>,
    inputs: &[PathBuf],
) -> Result<PathBuf> {
    let source = folder.repository.join("replayer/firmware");
    let linked = folder.local.join("firmware");
    create_dir(&linked)?;
    let absolute = |path: &Path| path.canonicalize().map_err(Error::io("find", path));
    // Inside the build root only this work tree can be seen: what is linked in is copied here.
    let copy = |from: &Path, name: String| -> Result<PathBuf> {
        let to = linked.join(name);
        fs::copy(absolute(from)?, &to).map_err(Error::io("copy", from))?;
        Ok(to)
    };
    let recording = match recording {
        Some(dir) => copy(&dir.join("recording.gpr"), "recording.gpr".into())?.into_os_string(),
        None => Default::default(),
    };
    let mut values = std::ffi::OsString::new();
    for (index, input) in inputs.iter().enumerate() {
        if index > 0 {
            values.push(":");
        }
        values.push(copy(input, format!("{index}.npy"))?);
    }
    let home = payload::cargo_home();
    let mut visible = home.clone().into_os_string();
    // core is built from source: cargo asks the registry for the crates of the standard library's lock file.
    visible.push(":/etc/ssl/certs");
    let mut command = Command::new(folder.guest.join("in-root"));
    command
        .current_dir(&source)
        .env("GPUREPLAY_BIND", visible)
        .args(["env", "RUSTC_BOOTSTRAP=1"])
        .arg(payload::with("CARGO_HOME=", &home))
        .arg(payload::with("GPUREPLAY_RECORDING=", Path::new(&recording)))
        .arg(payload::with("GPUREPLAY_INPUTS=", Path::new(&values)))
        .args(["cargo", "build", "--locked", "--release", "--target-dir"])
        .arg(folder.local.join("firmware-cargo"));
    let log = folder.local.join("log/firmware.log");
    logged(&mut command, "firmware", &log)?;
    Ok(folder
        .local
        .join("firmware-cargo")
        .join(TARGET)
        .join("release/gpureplay-firmware"))
}

/// Boots the image and returns what it said on its serial port.
pub(crate) fn boot(
    folder: &Folder,
    image: &Path,
    gpu: &str,
    loaded: Option<&Path>,
) -> Result<String> {
    let private = tempfile::Builder::new()
        .prefix("gpureplay-")
        .tempdir()
        .map_err(Error::io("create", env::temp_dir()))?;
    let socket = machine::socket(private.path(), "gpu");
    let said = private.path().join("uart");
    let complaints = private.path().join("qemu.log");
    let create = |path: &Path| fs::File::create(path).map_err(Error::io("create", path));
    let start = |program: &str, command: &mut Command| {
        command
            .stdin(Stdio::null())
            .spawn()
            .map_err(|source| Error::Start {
                program: program.into(),
                source,
            })
    };
    let mut server = Command::new("setpriv");
    server
        .args(["--pdeathsig", "KILL", "--"])
        .arg(payload::model_server(folder)?)
        .args(["--gpu", gpu, "--socket"])
        .arg(&socket)
        .arg("--log")
        .arg(private.path().join("model.log"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut model = start("mali-vfio-user", &mut server)?;
    let begin = Instant::now();
    while !socket.exists() && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut qemu = Command::new("setpriv");
    qemu.args(["--pdeathsig", "KILL", "--"]);
    machine::program(&mut qemu, &folder.guest, "qemu-system-aarch64");
    qemu.args(["-M", machine::MACHINE, "-cpu", machine::CPUS[0]])
        .args(["-nodefaults", "-no-reboot", "-display", "none"])
        .args(["-monitor", "none", "-serial", "stdio"])
        .args(["-m", &MEMORY.to_string(), "-object"])
        .arg(format!(
            "memory-backend-memfd,id=ram0,size={MEMORY}M,share=on"
        ))
        .arg("-device")
        .arg(machine::with_path(
            r#"{"driver":"vfio-user-pci","addr":"01.0","socket":{"type":"unix","path":""#,
            &socket,
            r#""}}"#,
        ))
        .arg("-kernel")
        .arg(image)
        .stdout(create(&said)?)
        .stderr(create(&complaints)?);
    if let Some(recording) = loaded {
        qemu.arg("-device").arg(machine::with_path(
            "loader,force-raw=on,file=",
            recording,
            &format!(",addr={LOAD_ADDRESS}"),
        ));
    }
    let mut qemu = start("qemu-system-aarch64", &mut qemu)?;
    let begin = Instant::now();
    let ended = loop {
        if let Ok(Some(_)) = qemu.try_wait() {
            break true;
        }
        if begin.elapsed() > TIMEOUT {
            break false;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    for child in [&mut qemu, &mut model] {
        let _ = child.kill();
        let _ = child.wait();
    }
    let mut text = fs::read_to_string(&said).unwrap_or_default();
    if !ended {
        text.push_str("\nHANGS\n");
    }
    if text.is_empty() {
        return Err(Error::Model(last_lines(&complaints, 10)));
    }
    Ok(text)
}
