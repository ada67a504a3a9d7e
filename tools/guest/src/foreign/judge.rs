// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of a foreign program's recording.

use std::{fs, path::Path, process::Command};

use super::{App, Found};
use crate::{
    build::{payload, step::logged},
    folder::Folder,
    record::{registers, tensors::info},
    run::session::Checked,
};

pub(super) fn judge(folder: &Folder, app: &App, work: &Path) -> Found {
    let program = payload::host_command(folder);
    let recording = work.join("recording");
    let info = info(&program, &recording).map_err(|error| error.to_string())?;
    let of = |kind: &str| -> Vec<&str> {
        let tensors = info.tensors.iter().filter(|tensor| tensor.kind == kind);
        tensors.map(|tensor| tensor.name.as_str()).collect()
    };
    let (inputs, outputs) = (of("input"), of("output"));
    let ([input], [out]) = (inputs.as_slice(), outputs.as_slice()) else {
        return Err(format!(
            "inputs {inputs:?} and outputs {outputs:?}, expected one of each"
        ));
    };
    let weights = of("weight");
    if weights.len() != app.weights {
        return Err(format!(
            "{} weights, expected {}: {weights:?}",
            weights.len(),
            app.weights
        ));
    }

    for set in ["b", "c"] {
        let replayed = work.join(format!("replayed-{set}.bin"));
        let from = work.join(format!("inputs/{set}.bin"));
        let mut replay = Command::new(&program);
        replay
            .args(["run", "--force"])
            .arg(&recording)
            .arg(format!("--input={input}={}", from.display()))
            .arg(format!("--output={out}={}", replayed.display()));
        logged(&mut replay, "replaying", &work.join("replay.log"))
            .map_err(|error| error.to_string())?;
        same(&replayed, &work.join(format!("live-{set}.bin")))?;
    }
    varied(&work.join("live-c.bin"), &work.join("live-b.bin"))?;

    for way in ["with", "without"] {
        same(&work.join(format!("{way}.bin")), &work.join("live-c.bin"))?;
    }
    let with = registers::starts(&work.join("with"))?;
    let without = registers::starts(&work.join("without"))?;
    if with != without {
        return Err(format!(
            "with the layer the driver starts {} chains or streams, without it {}, or others",
            with.len(),
            without.len()
        ));
    }
    let manifest = recording.join("manifest.toml");
    let manifest = fs::read_to_string(&manifest)
        .map_err(|error| format!("{}: {error}", manifest.display()))?;
    let named = all_named(&manifest, info.jobs)?;
    if app.unnoted {
        without_notes(&program, work)?;
    }
    Ok(format!(
        "{named} jobs, input {input}, output {out}, {} weights; replays of two inputs equal the live program; the layer changes nothing",
        weights.len()
    ))
}

/// Counts jobs if all have names. The driver starts more: a queue begins with streams without a dispatch.
fn all_named(manifest: &str, jobs: usize) -> std::result::Result<usize, String> {
    let named = manifest.lines().filter(|line| *line == "[[job]]").count();
    match named == jobs && jobs > 0 {
        true => Ok(named),
        false => Err(format!("{named} of {jobs} jobs have names")),
    }
}

fn without_notes(program: &Path, work: &Path) -> Checked {
    let mut compile = Command::new(program);
    compile
        .current_dir(work)
        .args(["compile", "without", "--second", "without-b", "--force"])
        .args(["-o", "unnoted"]);
    logged(
        &mut compile,
        "compiling without notes",
        &work.join("unnoted.log"),
    )
    .map_err(|error| error.to_string())?;
    let unnoted = work.join("unnoted");
    for (name, file) in [("input", "inputs/c.bin"), ("output", "live-c.bin")] {
        let kind = if name == "input" {
            "inputs"
        } else {
            "expected"
        };
        let path = unnoted.join(kind).join(format!("{name}.npy"));
        let found = gpureplay_tensors::read_npy(&path)
            .map_err(|error| format!("without notes: {}: {error}", path.display()))?;
        if found.bytes() != read(&work.join(file))? {
            return Err(format!(
                "without notes: {} has {} bytes that are not {file}",
                path.display(),
                found.bytes().len()
            ));
        }
    }
    Ok(())
}

fn same(found: &Path, expected: &Path) -> Checked {
    let (have, want) = (read(found)?, read(expected)?);
    if have == want {
        return Ok(());
    }
    let differs = have.iter().zip(&want).position(|(a, b)| a != b);
    Err(format!(
        "{} ({} bytes) is not {} ({} bytes): the first difference is at {}",
        found.display(),
        have.len(),
        expected.display(),
        want.len(),
        differs.unwrap_or(have.len().min(want.len()))
    ))
}

fn varied(one: &Path, other: &Path) -> Checked {
    let (one_bytes, other_bytes) = (read(one)?, read(other)?);
    let words: std::collections::BTreeSet<&[u8]> = one_bytes.chunks(4).collect();
    if one_bytes == other_bytes || words.len() < 8 {
        return Err(format!(
            "{} has {} values, and differs from {}: {}",
            one.display(),
            words.len(),
            other.display(),
            one_bytes != other_bytes
        ));
    }
    Ok(())
}

fn read(path: &Path) -> std::result::Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{all_named, same, varied};

    #[test]
    fn files_are_compared_and_must_say_something() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).expect("file");
            path
        };
        let numbers: Vec<u8> = (0..64).collect();
        let a = file("a", &numbers);
        let b = file("b", &numbers[..60]);
        let flat = file("flat", &[0; 64]);
        assert!(same(&a, &a).is_ok());
        let error = same(&b, &a).expect_err("shorter");
        assert!(error.ends_with("the first difference is at 60"), "{error}");
        assert!(varied(&a, &b).is_ok());
        assert!(varied(&a, &a).is_err(), "the same answer");
        assert!(varied(&flat, &a).is_err(), "one value");
    }

    #[test]
    fn every_job_of_a_recording_has_a_name() {
        let manifest = "[[job]]\nlaunch = 0\n\n[[job]]\nlaunch = 1\n";
        assert_eq!(all_named(manifest, 2), Ok(2));
        for jobs in [0, 1, 3] {
            assert!(all_named(manifest, jobs).is_err(), "{jobs}");
        }
        assert!(all_named("", 0).is_err(), "a recording without jobs");
    }
}
