// SPDX-License-Identifier: MIT OR Apache-2.0
//! An OpenGL ES app without notes.

use std::{fs, path::Path, process::Command};

use crate::{
    build::{payload, step::logged},
    error::Result,
    files,
    folder::Folder,
    record::tensors::{Tensor, tensors},
    run::driver::Driver,
    run::session::{self, Checked, Options},
};

const SIDE: usize = 32;

const SCRIPT: &str = r#"set -e
gpureplay record --twice -o found -- gles_filter a.raw a.out -- gles_filter b.raw b.out
for set in a b; do gpureplay record --raw $set.trace -- gles_filter $set.raw $set.out; done
gpureplay compile a.trace --second b.trace --suggest > tensors.toml
sed -i 's/name = "input"/name = "picture"/; s/name = "output"/name = "filtered"/; s/f32\[1024\]/f32[32,32]/' tensors.toml
gpureplay compile a.trace --second b.trace --tensors tensors.toml -o recording
gles_filter c.raw live.bin
"#;

const RECORDINGS: [(&str, [&str; 2]); 2] = [
    (
        "found",
        ["input input f32[1024]", "output output f32[1024]"],
    ),
    (
        "recording",
        ["input picture f32[32, 32]", "output filtered f32[32, 32]"],
    ),
];

pub(super) fn unnoted(folder: &Folder) -> Result<()> {
    let share = files::temporary()?;
    let work = share.path();
    for (name, start) in [("a", 3), ("b", 12), ("c", 40)] {
        files::write(work.join(name).with_extension("raw"), picture(start))?;
    }
    let options = Options::sharing(Driver::Patched, work);
    let outcome = session::script(folder, &options, SCRIPT)?;
    outcome.clean()?;
    let program = payload::host_command(folder);
    for (name, expected) in RECORDINGS {
        let found = tensors(&program, &work.join(name))?;
        let found: Vec<String> = found.iter().map(shown).collect();
        if found != expected {
            return Err(format!("{name} has the tensors {found:?}").into());
        }
    }
    let third = picture(40);
    let input = work.join("c.bin");
    files::write(&input, bytes(&numbers(&third)))?;
    let mut run = Command::new(program);
    run.args(["run", "--force"]).arg(work.join("recording"));
    run.arg(format!("--input=picture={}", input.display()));
    run.arg(format!(
        "--output=filtered={}",
        work.join("replayed.bin").display()
    ));
    logged(&mut run, "replaying", &folder.local.join("log/gles.log"))?;
    Ok(compare(work, &bytes(&filtered(&numbers(&third))))?)
}

fn shown(tensor: &Tensor) -> String {
    let Tensor {
        kind,
        name,
        element,
        shape,
        ..
    } = tensor;
    format!("{kind} {name} {element}{shape:?}")
}

fn compare(work: &Path, expected: &[u8]) -> Checked {
    for name in ["live.bin", "replayed.bin"] {
        let found = fs::read(work.join(name)).map_err(|error| format!("{name}: {error}"))?;
        if found != expected {
            let same = found.iter().zip(expected).take_while(|(a, b)| a == b);
            return Err(format!(
                "{name} ({} bytes) is not what the CPU computes, from byte {} on",
                found.len(),
                same.count()
            ));
        }
    }
    Ok(())
}

fn picture(start: usize) -> Vec<u8> {
    let pixel = |i: usize| ((i * 37 + i / SIDE * start + start) % 251) as u8;
    (0..SIDE * SIDE).map(pixel).collect()
}

fn numbers(pixels: &[u8]) -> Vec<f32> {
    let pixels = pixels.iter();
    pixels
        .map(|pixel| (f32::from(*pixel) - 128.0) / 64.0)
        .collect()
}

/// Every step is exact in f32, so bytes must be equal.
fn filtered(x: &[f32]) -> Vec<f32> {
    let smooth = |i: usize| {
        let (first, last) = (i / SIDE * SIDE, i / SIDE * SIDE + SIDE - 1);
        let (left, right) = (i.max(first + 1) - 1, (i + 1).min(last));
        (x[left] + 2.0 * x[i] + x[right]) * 0.25
    };
    let weight = |i: usize| 0.5 + (i * 29 % 64) as f32 / 32.0;
    let all = 0..SIDE * SIDE;
    all.map(|i| smooth(i) * weight(i) - 0.125).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    bytes.collect()
}
