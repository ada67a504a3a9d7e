// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay doctor --report`, for owners of new boards.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpureplay_core::Gpu;
use gpureplay_library::shown;
use gpureplay_linux::machine::Finding;
use gpureplay_linux::{Stock, panfrost, panthor};
use mali_drive::{identify, kinds};
use mali_model::Product;

use crate::VERSION;
use crate::common::shipped::{ended, fitting, found, own};
use crate::common::{machine_bits, machine_gpu};

/// No recording of one converts into another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bifrost,
    Valhall,
    Streams,
}

struct Trial {
    recording: &'static str,
    kind: Kind,
    /// Option, tensor, and file below the recording.
    files: &'static [(&'static str, &'static str, &'static str)],
}

const DIGIT: &[(&str, &str, &str)] = &[
    ("--input", "input", "inputs/3.npy"),
    ("--expect", "probabilities", "expected/3.npy"),
];

const TRIALS: [Trial; 4] = [
    Trial {
        recording: "saxpy-g52",
        kind: Kind::Bifrost,
        files: &[
            ("--input", "x", "inputs/x2.npy"),
            ("--input", "y", "inputs/y2.npy"),
            ("--expect", "out", "expected/out2.npy"),
        ],
    },
    Trial {
        recording: "digits-g52",
        kind: Kind::Bifrost,
        files: DIGIT,
    },
    Trial {
        recording: "digits-g57",
        kind: Kind::Valhall,
        files: DIGIT,
    },
    Trial {
        recording: "digits-g610",
        kind: Kind::Streams,
        files: DIGIT,
    },
];

pub(crate) fn written(checks: &str, ways: &[Finding]) -> String {
    let root = Path::new("/");
    let line = |path: &str| {
        let text = fs::read(root.join(path)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).replace('\0', " ");
        text.lines().next().unwrap_or("unknown").trim().to_owned()
    };
    let system = fs::read_to_string(root.join("etc/os-release")).unwrap_or_default();
    let system = system
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .unwrap_or("unknown")
        .trim_matches('"');
    let mut text = format!(
        "gpureplay {VERSION}\nmachine: {}\nboard: {}\nkernel: {}\nsystem: {system}\n\n{checks}\n",
        env::consts::ARCH,
        line("sys/firmware/devicetree/base/model"),
        line("proc/sys/kernel/osrelease"),
    );
    text += &registers(root);
    text += "Self test\n";
    let devices = ways.iter().filter(|way| way.good);
    let devices = devices.filter_map(|way| way.subject.strip_prefix("run --device "));
    // A board must be named for it.
    let devices = devices.filter(|device| *device != "devmem");
    let kind = kind(root);
    let mut bits = String::new();
    for device in devices {
        for trial in TRIALS.iter().filter(|trial| trial.kind == kind) {
            let _ = writeln!(text, "{}", tried(trial, device));
        }
        // No shipped recording shows a G610's.
        if kind != Kind::Streams {
            bits += &machine_bits::on(device, kind == Kind::Valhall);
        }
    }
    text += &format!("\nBits\n{bits}");
    text
}

fn driver(root: &Path) -> Option<(&'static str, Stock)> {
    let panfrost = panfrost::find(root).and_then(|path| panfrost::open(&path));
    let panthor = || panthor::find(root).and_then(|path| panthor::open(&path));
    let panfrost = panfrost.ok().map(|gpu| ("panfrost", gpu));
    panfrost.or_else(|| Some(("panthor", panthor().ok()?)))
}

fn kind(root: &Path) -> Kind {
    let valhall = match driver(root) {
        Some(("panthor", _)) => return Kind::Streams,
        Some((_, mut gpu)) => {
            let product = Product::by_id(identify(&mut gpu));
            product.map(|product| product.profile().architecture.has_resource_tables())
        }
        None => None,
    };
    match valhall.unwrap_or_else(|| machine_gpu::is_valhall(root)) {
        true => Kind::Valhall,
        false => Kind::Bifrost,
    }
}

fn registers(root: &Path) -> String {
    let Some((name, mut gpu)) = driver(root) else {
        return String::new();
    };
    let mut text = format!("GPU, by {name}\n");
    for register in kinds::identity() {
        let value = gpu.read32(register);
        if value != 0 {
            let name = crate::text::register(register);
            let _ = writeln!(text, "  {name} = {value:#x}");
        }
    }
    text + "\n"
}

fn tried(trial: &Trial, device: &str) -> String {
    let said = match replayed(trial, device) {
        Ok(()) => "right".into(),
        Err(said) => said,
    };
    format!("  {} on {device}: {said}", trial.recording)
}

fn replayed(trial: &Trial, device: &str) -> Result<(), String> {
    let recording = found(trial.recording)?;
    let folder = tempfile::tempdir().map_err(|error| format!("not tried: {error}"))?;
    let as_it_is = trial.kind != Kind::Bifrost;
    let fitting = fitting(&recording, device, as_it_is, folder.path())?;
    let mut run = Command::new(own());
    run.arg("run").arg(&fitting).args(["--device", device]);
    for (option, tensor, file) in trial.files {
        run.arg(option)
            .arg(format!("{tensor}={}", recording.join(file).display()));
    }
    ended(&mut run)
}

pub(crate) fn told(path: &Path) -> String {
    format!(
        "report in {}: read it, and send it with a report about this board",
        shown(path)
    )
}
