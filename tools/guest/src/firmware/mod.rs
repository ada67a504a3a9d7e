// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest firmware`: the bare-metal replayer in QEMU.

pub(crate) mod bare;
pub(crate) mod checks;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use clap::Args;

use self::bare::Linked;
use crate::{
    build::{payload, step::last_lines},
    error::{Error, Result},
    folder::Folder,
    run::{driver::Driver, machine},
};

/// From `replayer/devices/firmware/src/machine.rs`.
const LOAD_ADDRESS: &str = "0x50000000";
const MEMORY_MIB: u32 = 512;
const TIMEOUT: Duration = Duration::from_secs(60);
const LONG_TIMEOUT: Duration = Duration::from_secs(3600);

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
    /// Values of the tensors that need one, as .npy files in the recording's order; with --runs a file may hold a value for each run.
    inputs: Vec<PathBuf>,
    /// The GPU's model.
    #[arg(long, default_value = "g52")]
    gpu: String,
    /// How often it runs, each time from the states that the run before left.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Disturb a step at every N-th call of the device in four ways, do it again, and compare the states.
    #[arg(long, default_value_t = 0, value_name = "N")]
    faults: u32,
    /// Do not boot.
    #[arg(long)]
    build_only: bool,
}

impl Firmware {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let linked = Linked {
            recording: Some(&self.recording.join("recording.gpr")),
            inputs: &self.inputs,
            trust: None,
            runs: self.runs,
            faults: self.faults,
        };
        let image = bare::firmware(&folder, &linked, &[])?;
        println!("{}", image.display());
        if self.build_only {
            return Ok(ExitCode::SUCCESS);
        }
        payload::prepare(&folder, Driver::None)?;
        let has = Machine {
            long: self.runs > 1 || self.faults > 0,
            ..Machine::of(Gpu::Model(&self.gpu))
        };
        let said = boot(&folder, &image, &has)?;
        print!("{said}");
        Ok(ExitCode::from(u8::from(!said.contains("\nDONE"))))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Gpu<'a> {
    Model(&'a str),
    /// QEMU's teaching device: has the model's identity, but is no GPU.
    Dead,
    None,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) gpu: Gpu<'a>,
    pub(crate) loaded: Option<&'a Path>,
    /// Second bank, 64 MiB.
    pub(crate) flash: Option<&'a Path>,
    pub(crate) long: bool,
}

impl<'a> Machine<'a> {
    pub(crate) fn of(gpu: Gpu<'a>) -> Self {
        Self {
            gpu,
            loaded: None,
            flash: None,
            long: false,
        }
    }
}

pub(crate) fn boot(folder: &Folder, image: &Path, has: &Machine<'_>) -> Result<String> {
    let gpu = has.gpu;
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
            .map_err(Error::start(program))
    };
    let mut model = match gpu {
        Gpu::Model(name) => {
            let mut server = Command::new("setpriv");
            server
                .args(["--pdeathsig", "KILL", "--"])
                .arg(payload::model_server(folder)?)
                .args(["--gpu", name, "--socket"])
                .arg(&socket)
                .arg("--log")
                .arg(private.path().join("model.log"))
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let model = start("mali-vfio-user", &mut server)?;
            let begin = Instant::now();
            while !socket.exists() && begin.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(10));
            }
            Some(model)
        }
        Gpu::Dead | Gpu::None => None,
    };
    let mut qemu = Command::new("setpriv");
    qemu.args(["--pdeathsig", "KILL", "--"]);
    machine::program(&mut qemu, &folder.guest, "qemu-system-aarch64");
    qemu.args(["-M", machine::MACHINE, "-cpu", machine::CPUS[0]])
        .args(["-nodefaults", "-no-reboot", "-display", "none"])
        .args(["-monitor", "none", "-serial", "stdio"])
        .args(["-m", &MEMORY_MIB.to_string(), "-object"])
        .arg(format!(
            "memory-backend-memfd,id=ram0,size={MEMORY_MIB}M,share=on"
        ))
        .arg("-kernel")
        .arg(image)
        .stdout(create(&said)?)
        .stderr(create(&complaints)?);
    match gpu {
        Gpu::Model(_) => {
            qemu.arg("-device").arg(machine::with_path(
                r#"{"driver":"vfio-user-pci","addr":"01.0","socket":{"type":"unix","path":""#,
                &socket,
                r#""}}"#,
            ));
        }
        Gpu::Dead => {
            qemu.args(["-device", "edu,addr=01.0"]);
        }
        Gpu::None => {}
    }
    if let Some(flash) = has.flash {
        qemu.arg("-drive").arg(machine::with_path(
            "if=pflash,unit=1,format=raw,file=",
            flash,
            "",
        ));
    }
    if let Some(recording) = has.loaded {
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
        if begin.elapsed() > if has.long { LONG_TIMEOUT } else { TIMEOUT } {
            break false;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    for child in [Some(&mut qemu), model.as_mut()].into_iter().flatten() {
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
