// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest optee measure`: secure calls against normal replays.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use gpureplay_task::measured::{self, Table};
use serde_json::{Value, json};

use super::{
    options,
    rig::{Rig, Share, failed, pack, recording},
    run, test_key,
};
use crate::{
    build::payload,
    error::{Error, Result},
    files,
    firmware::bare,
    folder::copy_dir,
    run::{
        driver::{Driver, TAKE_BY_NANO},
        session::{self, Options, Outcome},
    },
};

const RECORDINGS: [(&str, u32); 2] = [("digits-g52", 100), ("lenet-g52", 20)];
const TIMEOUT: u64 = 900;

pub(super) fn measure(rig: &Rig<'_>, write: bool) -> Result<()> {
    payload::nano_driver(rig.folder)?;
    let share = Share::new()?;
    for (name, _) in RECORDINGS {
        let from = recording(rig.folder, name);
        copy_dir(&from, &share.path(name))?;
        let file = files::read(from.join("recording.gpr"))?;
        share.write(&format!("{name}.pack"), &pack(&file, &test_key()?, 1)?)?;
        let inputs = share.path(&format!("{name}-inputs"));
        files::create_dir(&inputs)?;
        files::copy(first_input(&from)?, inputs.join("input.npy"))?;
    }
    let outcome = session::run(
        rig.folder,
        &Options {
            driver: Driver::None,
            share: Some(share.path("")),
            timeout: Duration::from_secs(TIMEOUT),
            ..Options::default()
        },
        Some(&words(&(TAKE_BY_NANO.to_owned() + &script("nano", "")))),
    )?;
    ended(&outcome)?;
    let outcome = run(
        rig.folder,
        &Options {
            share: Some(share.path("")),
            quiet_secure_world: true,
            ..options(&rig.built, TIMEOUT)
        },
        &words(&script("optee", ".pack")),
    )?;
    ended(&outcome)?;
    let mut times = Table::new(
        "",
        "Recording and world | First call: load and run, ms | Every further call, ms | Runs",
    );
    for (name, runs) in RECORDINGS {
        for (device, world) in [
            ("nano", "normal world, nano driver"),
            ("optee", "secure world"),
        ] {
            let once: Value = files::from_json(share.path(&format!("{name}-{device}-once.json")))?;
            let many: Value = files::from_json(share.path(&format!("{name}-{device}-many.json")))?;
            let ms = |table: &Value, key: &str| 1e3 * table[key].as_f64().unwrap_or(f64::NAN);
            let first = ms(&once, "load_seconds") + ms(&once, "replay_seconds");
            let further = ms(&many, "seconds") / f64::from(runs);
            times.row(json!([format!("{name}, {world}"), first, further, runs]));
        }
    }
    let sizes = sizes(rig)?;
    println!("{times}\n{sizes}");
    if write {
        measured::keep("optee", &[times, sizes])?;
    }
    Ok(())
}

fn words(script: &str) -> Vec<String> {
    ["bash", "-c", script].map(String::from).to_vec()
}

fn script(device: &str, ending: &str) -> String {
    let mut text = String::from("cd /share\n");
    for (name, runs) in RECORDINGS {
        let _ = writeln!(
            text,
            "gpureplay run {name}{ending} --input {name}-inputs/input.npy --device {device} --json > {name}-{device}-once.json || exit 1\n\
             gpureplay run {name}{ending} --repeat {runs} --inputs {name}-inputs --device {device} --json > {name}-{device}-many.json || exit 1"
        );
    }
    text
}

fn ended(outcome: &Outcome) -> Result<()> {
    match outcome.clean().is_ok() {
        true => Ok(()),
        false => Err(Error::Usage(failed(outcome))),
    }
}

fn first_input(recording: &Path) -> Result<PathBuf> {
    let folder = recording.join("inputs");
    let first = files::entries(&folder)?.into_iter().next();
    first.ok_or_else(|| {
        Error::missing(
            format!("an input in {}", folder.display()),
            "take the recording from the tree",
        )
    })
}

fn sizes(rig: &Rig<'_>) -> Result<Table> {
    let core = "/guest/optee/optee-os/out/core";
    let elf = format!("{core}/tee.elf");
    let symbols = bare::tool(rig.folder, "aarch64-linux-gnu-nm", &["-S", &elf])?;
    let mut ours = 0;
    for line in symbols.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, size, kind, name] = fields[..] else {
            continue;
        };
        let rust = ["gpureplay", "mali"].iter().any(|word| name.contains(word));
        let size = u64::from_str_radix(size, 16).unwrap_or(0);
        if rust && "tTrRwW".contains(kind) {
            ours += size;
        }
    }
    let object = format!("{core}/pta/gpureplay_pta.o");
    let application = rig
        .folder
        .local
        .join("optee/ta/3d6f5c1e-7a42-4c0b-9e57-218db460fe13.elf");
    let application = application.display().to_string();
    let mut table = Table::new("", "Part | Code and constants, B");
    let rows = [
        (
            "parser, verifier, engine, page tables and the functions of C in OP-TEE's core",
            ours,
        ),
        ("pseudo-TA (`gpureplay_pta.o`)", text_bytes(rig, &object)?),
        ("OP-TEE's core with both", text_bytes(rig, &elf)?),
        (
            "trusted application: OP-TEE's C library, SHA-512 and Ed25519",
            text_bytes(rig, &application)?,
        ),
    ];
    for (part, bytes) in rows {
        table.row(json!([part, bytes]));
    }
    Ok(table)
}

fn text_bytes(rig: &Rig<'_>, file: &str) -> Result<u64> {
    let said = bare::tool(rig.folder, "aarch64-linux-gnu-size", &[file])?;
    let line = said.lines().nth(1).unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| Error::Usage(format!("size says of {file}: {said}")))
}
