// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays on a device many times.
//!
//! `cargo xtask guest devices` runs this in the guest:
//!
//!     device_test recordings/digits-g52/recording.gpr nano 200 image=3.npy probabilities=expected/3.npy
//!
//!     device_test memory 700
//!     device_test pages
//!     device_test moves
//!     device_test zeroes
//!     device_test hostile saxpy-g52/recording.gpr TWIST x=x.npy y=y.npy out=out.npy
//!     device_test again saxpy-g610/recording.gpr panthor x=x.npy y=y.npy out=out.npy
//!     device_test faulty STRIDE ERRNO COMMAND...
//!     device_test faulty:always STRIDE ERRNO COMMAND...
//!
//! Devices: panfrost, panthor, kbase, nano, nano:shared, devmem. Outputs are compared, other names are inputs.
//! Prints `running` at the start; 0 runs are endless; ends with 1 at the first difference.
//!
//! On the nano driver, `memory` maps so many MiB, `pages` counts pages in use, `zeroes` reads new pages. Modules
//! describe the other commands; `faulty:always` fails calls in one process.

mod again;
mod faulty;
mod hostile;
mod moves;
mod streams;
mod sweep;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use gpureplay_core::{Family, Gpu, Limits, Options, Tensors, Workspace};
use gpureplay_core::{Session, Verified};
use gpureplay_format::{Access, PAGE_SIZE, Recording, TensorKind};
use gpureplay_linux::{DevMem, Mode, Nano, OpenError, Stock, kbase, nano, panfrost};
use mali_drive::verify;

#[derive(Default)]
struct Values {
    given: BTreeMap<u32, Vec<u8>>,
    found: BTreeMap<u32, Vec<u8>>,
    expected: BTreeMap<u32, Vec<u8>>,
}

impl Tensors for Values {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        self.given.get(&tensor).map(Vec::as_slice)
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        self.found.get_mut(&tensor).map(Vec::as_mut_slice)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match test(&arguments) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("device_test: {error}");
            ExitCode::FAILURE
        }
    }
}

fn test(arguments: &[String]) -> Result<String, Box<dyn Error>> {
    let (path, device, how, files) = match arguments {
        [command] if command == "pages" => {
            return Ok(nano::state(Path::new(nano::PATH))?.pages.to_string());
        }
        [command] if command == "moves" => return moves::test(),
        [command] if command == "zeroes" => return zeroes(),
        [command, mib] if command == "memory" => return memory(mib.parse()?),
        [command, stride, errno, program @ ..] if command.starts_with("faulty") => {
            let how = (stride.parse()?, errno.parse()?);
            return match command.ends_with(":always") {
                true => faulty::sweep(how, program),
                false => faulty::test(how, program),
            };
        }
        [command, path, twist, files @ ..] if matches!(command.as_str(), "hostile" | "again") => {
            (path, command, twist, files)
        }
        [path, device, runs, files @ ..] => (path, device, runs, files),
        _ => return Err("usage: device_test RECORDING DEVICE RUNS NAME=FILE.npy...".into()),
    };
    let bytes = std::fs::read(path)?;
    let recording = Recording::parse(&bytes).map_err(|error| format!("{path}: {error:?}"))?;
    let mut values = Values::default();
    for file in files {
        let (name, file) = file.split_once('=').ok_or("files are NAME=FILE")?;
        let (index, entry) = recording
            .tensor_named(name)
            .ok_or_else(|| format!("no tensor {name}"))?;
        let contents = gpureplay_tensors::read_npy(Path::new(file))?
            .bytes()
            .to_vec();
        if entry.kind == TensorKind::Output.code() {
            values.found.insert(index, vec![0; contents.len()]);
            values.expected.insert(index, contents);
        } else {
            values.given.insert(index, contents);
        }
    }
    let agreed = |runs: u32, submits: u32| {
        format!("{path} on {device}: {runs} runs agree, {submits} submissions each")
    };
    match (device.as_str(), how.strip_prefix("stream")) {
        ("panthor", _) => {
            let runs = how.parse()?;
            let submits = streams::run(&recording, &mut values, runs)?;
            return Ok(agreed(runs, submits));
        }
        ("hostile", Some(_)) => {
            let twist = named(streams::TWISTS, how)?;
            return streams::hostile(&recording, &mut values, twist);
        }
        ("again", _) if how == "panthor" => {
            return streams::again(&recording, &mut values);
        }
        _ => {}
    }
    let verified =
        verify(&recording, &Limits::default()).map_err(|error| format!("{path}: {error:?}"))?;
    if device == "again" {
        return again::test(stock(how)?, verified, &mut values);
    }
    if device == "hostile" {
        let gpu = stock(match panfrost::find(Path::new("/")) {
            Ok(_) => "panfrost",
            Err(_) => "kbase",
        })?;
        let twist = named(hostile::TWISTS, how)?;
        return hostile::test(verified, &mut values, twist, gpu);
    }
    let runs: u32 = how.parse()?;
    let mode = match device.as_str() {
        "panfrost" | "kbase" => {
            let submits = replay(&mut stock(device)?, verified, &mut values, runs)?;
            return Ok(agreed(runs, submits));
        }
        "nano" => Mode::Guarded,
        "nano:shared" => Mode::Shared,
        "devmem" => {
            let mut gpu = DevMem::open(None)?;
            let submits = replay(&mut gpu, verified, &mut values, runs)?;
            return Ok(agreed(runs, submits));
        }
        other => return Err(format!("no device {other}").into()),
    };
    let mut gpu = Nano::open(Path::new(nano::PATH), mode)?;
    let started = Instant::now();
    let submits = replay(&mut gpu, verified, &mut values, runs)?;
    let seconds = started.elapsed().as_secs_f64();
    let agreed = agreed(runs, submits);
    Ok(format!(
        "{agreed}, lent {} times, {seconds:.1} s",
        gpu.lent()
    ))
}

fn stock(name: &str) -> Result<Stock, OpenError> {
    match name {
        "kbase" => kbase::open(Path::new(kbase::PATH)),
        _ => panfrost::open(&panfrost::find(Path::new("/"))?),
    }
}

fn replay<F: Family>(
    gpu: &mut impl Gpu,
    verified: Verified<'_, F>,
    values: &mut Values,
    runs: u32,
) -> Result<u32, Box<dyn Error>> {
    let mut workspace = Box::new(Workspace::new());
    let mut session = Session::open(gpu, verified, &mut workspace, Options::default(), values)
        .map_err(|error| format!("{error:?}"))?;
    println!("running");
    for run in 0..if runs == 0 { u32::MAX } else { runs } {
        for output in values.found.values_mut() {
            output.fill(0xa5);
        }
        session
            .run(values)
            .map_err(|error| format!("run {run}: {error:?}"))?;
        if values.found != values.expected {
            return Err(format!("run {run}: an output differs").into());
        }
    }
    let submits = session.submits();
    session.finish().map_err(|error| format!("{error:?}"))?;
    Ok(submits)
}

fn named<T: Copy>(twists: &[(&str, T)], name: &str) -> Result<T, String> {
    let found = twists.iter().find(|(known, _)| *known == name);
    found.map_or_else(|| Err(format!("no twist {name}")), |(_, twist)| Ok(*twist))
}

/// `gpu` makes the first submission wrong.
fn wrong_then_right<F: Family>(
    gpu: &mut impl Gpu,
    verified: Verified<'_, F>,
    values: &mut Values,
) -> Result<String, Box<dyn Error>> {
    let mut workspace = Box::new(Workspace::new());
    let mut session = Session::new(&mut *gpu, verified, &mut workspace, Options::default());
    let error = match session.run(values) {
        Ok(()) => return Err("no error".into()),
        Err(error) => error,
    };
    if session.submits() != 1 {
        return Err(format!("nothing was submitted: {error:?}").into());
    }
    drop(session);
    replay(gpu, verified, values, 1)?;
    Ok(format!("{:?}, then right", error.kind))
}

/// New pages are zero in memory, not only in caches.
fn zeroes() -> Result<String, Box<dyn Error>> {
    const VA: u64 = 0x1000_0000;
    const PAGES: u32 = 64;
    let mut gpu = Nano::open(Path::new(nano::PATH), Mode::Guarded)?;
    let failed = |error| format!("{error:?}");
    gpu.map(VA, PAGES, Access::READ).map_err(failed)?;
    let mut bytes = vec![0xa5; PAGES as usize * PAGE_SIZE as usize];
    gpu.read_memory(VA, &mut bytes).map_err(failed)?;
    gpu.release();
    match bytes.iter().position(|&byte| byte != 0) {
        Some(at) => Err(format!("byte {at} of new pages is not zero").into()),
        None => Ok(format!("{PAGES} new pages are zero")),
    }
}

fn memory(mib: u32) -> Result<String, Box<dyn Error>> {
    const VA: u64 = 0x1000_0000;
    let path = Path::new(nano::PATH);
    let mut gpu = Nano::open(path, Mode::Guarded)?;
    let pages = mib << 8;
    let failed = |error| format!("{error:?}");
    gpu.map(VA, pages, Access::READ).map_err(failed)?;
    gpu.activate().map_err(failed)?;
    let held = nano::state(path)?.pages;
    let places = (0..pages).step_by(97);
    let address = |page: u32| VA + u64::from(page) * u64::from(PAGE_SIZE);
    for page in places.clone() {
        gpu.write_memory(address(page), &page.to_le_bytes())
            .map_err(failed)?;
    }
    for page in places {
        let mut word = [0; 4];
        gpu.read_memory(address(page), &mut word).map_err(failed)?;
        if u32::from_le_bytes(word) != page {
            return Err(format!("page {page} holds another value").into());
        }
    }
    gpu.reset().map_err(failed)?;
    gpu.release();
    let left = nano::state(path)?.pages;
    if held != u64::from(pages) || left != 0 {
        return Err(format!("{held} pages while mapped, {left} afterwards").into());
    }
    Ok(format!("{mib} MiB: {held} pages mapped, all freed"))
}
