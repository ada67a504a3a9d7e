// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest optee measure`: the time of a call against the same replay in the normal world, and the sizes of the parts.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    options,
    rig::{Rig, Share, failed, pack, read, recording},
    run, test_key,
};
use crate::{
    build::payload,
    document,
    error::{Error, Result},
    firmware::bare,
    folder::copy_dir,
    run::{
        driver::{Driver, TAKE_BY_NANO},
        session::{self, End, Options, Outcome},
    },
};

/// Recordings that are measured, and how often each runs.
const RECORDINGS: [(&str, u32); 2] = [("digits-g52", 100), ("lenet-g52", 20)];
/// Seconds that a guest may take.
const TIMEOUT: u64 = 900;

/// Measures, and gives the tables of the document. `write` puts them there.
pub(super) fn measure(rig: &Rig<'_>, write: bool) -> Result<()> {
    payload::nano_driver(rig.folder)?;
    let share = Share::new()?;
    for (name, _) in RECORDINGS {
        let from = recording(rig.folder, name);
        copy_dir(&from, &share.path(name))?;
        let file = read(&from.join("recording.gpr"))?;
        share.write(&format!("{name}.pack"), &pack(&file, &test_key()?, 1)?)?;
        let inputs = share.path(&format!("{name}-inputs"));
        fs::create_dir_all(&inputs).map_err(Error::io("create", &inputs))?;
        let first = first_input(&from)?;
        fs::copy(&first, inputs.join("input.npy")).map_err(Error::io("copy", &first))?;
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
    let mut text = String::from(
        "\n| | First call: load and run, ms | Every further call, ms | Runs |\n| --- | --: | --: | --: |\n",
    );
    for (name, runs) in RECORDINGS {
        for (device, world) in [
            ("nano", "normal world, nano driver"),
            ("optee", "secure world"),
        ] {
            let once = json(&share.path(&format!("{name}-{device}-once.json")))?;
            let many = json(&share.path(&format!("{name}-{device}-many.json")))?;
            let seconds = |table: &serde_json::Value, key: &str| {
                table
                    .get(key)
                    .and_then(serde_json::Value::as_f64)
                    .unwrap_or(f64::NAN)
            };
            // Writing to a String does not fail.
            let _ = writeln!(
                text,
                "| `{name}`, {world} | {:.0} | {:.1} | {runs} |",
                1000.0 * (seconds(&once, "load_seconds") + seconds(&once, "replay_seconds")),
                1000.0 * seconds(&many, "seconds") / f64::from(runs)
            );
        }
    }
    text += &sizes(rig)?;
    println!("{text}");
    if write {
        let page = rig.folder.repository.join("docs/optee.md");
        document::replace(&page, "measured", &text)?;
    }
    Ok(())
}

fn words(script: &str) -> Vec<String> {
    ["bash", "-c", script].map(String::from).to_vec()
}

/// One run, and many in one session, of each recording.
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
    match outcome.end == End::Exit(0) && outcome.faults.is_empty() {
        true => Ok(()),
        false => Err(Error::Usage(failed(outcome))),
    }
}

fn json(path: &Path) -> Result<serde_json::Value> {
    serde_json::from_slice(&read(path)?)
        .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
}

/// An input of the recording.
fn first_input(recording: &Path) -> Result<PathBuf> {
    let folder = recording.join("inputs");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(Error::io("read", &folder))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    files.into_iter().next().ok_or_else(|| Error::Missing {
        what: format!("an input in {}", folder.display()),
        remedy: "take the recording from the tree".into(),
    })
}

/// Bytes of the parts, by the tools of the build root.
fn sizes(rig: &Rig<'_>) -> Result<String> {
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
    let mut text = String::from("\n| Part | Code and constants, bytes |\n| --- | --: |\n");
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
        let _ = writeln!(text, "| {part} | {} |", thousands(bytes));
    }
    Ok(text)
}

/// What `size` calls text: code and constants.
fn text_bytes(rig: &Rig<'_>, file: &str) -> Result<u64> {
    let said = bare::tool(rig.folder, "aarch64-linux-gnu-size", &[file])?;
    let line = said.lines().nth(1).unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| Error::Usage(format!("size says of {file}: {said}")))
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(1234), "1,234");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
