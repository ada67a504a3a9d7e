// SPDX-License-Identifier: MIT OR Apache-2.0
//! A replaced kernel gives the other's recording.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    build::payload,
    compile_kernel,
    error::{Error, Result},
    files,
    folder::Folder,
    run::{
        driver::Driver,
        session::{self, Options},
    },
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Shader,
    Whole,
}

/// Recorded kernel, replacement, how; from `kernels/pairs.cl`.
const PAIRS: [(&str, &str, How); 11] = [
    ("axpy", "axmy", How::Shader),
    ("softmax_group", "softmax_row", How::Whole),
    ("axpy", "axpy4", How::Whole),
    ("axpy", "scale", How::Whole),
    ("axpy", "wave", How::Whole),
    ("axpy", "softmax_group", How::Whole),
    ("reverse", "rotate_group", How::Shader),
    ("axpy", "shuffle", How::Whole),
    ("steps", "nearest", How::Shader),
    ("count_low", "count_high", How::Shader),
    ("bytes_up", "bytes_down", How::Shader),
];
/// The first two: a replaced binary, and a whole job with other barriers and storage.
pub(super) const SAMPLE: usize = 2;

const WRONG: [(&str, &str, &str); 4] = [
    ("axpy", "scale", "uniforms"),
    ("reverse", "axpy", "initial registers"),
    ("shuffle", "axpy", "thread storage"),
    ("reverse", "by_place", "barrier"),
];

const COUNT: usize = 256;

/// Multiples of 1/64, none negative.
fn write_inputs(work: &Path) -> Result<()> {
    for (name, factor) in [("x", 37), ("y", 53)] {
        for (suffix, add) in [("", 0), ("2", 11)] {
            let number = |i: usize| {
                let whole = ((i * factor + add * 7 + i * i) % 97) as f32 * 0.25 - 6.0;
                (whole + add as f32 / 64.0).abs()
            };
            let bytes: Vec<u8> = (0..COUNT).flat_map(|i| number(i).to_le_bytes()).collect();
            files::write(work.join(format!("{name}{suffix}.bin")), bytes)?;
        }
    }
    Ok(())
}

fn app(kernel: &str, set: &str) -> String {
    let global = if kernel == "axpy4" { COUNT / 4 } else { COUNT };
    let whole = ["count", "bytes"]
        .iter()
        .any(|start| kernel.starts_with(start));
    let scalar = if whole { "i32:3" } else { "f32:1.5" };
    format!(
        "launch_kernel /opt/gpureplay/share/kernels/pairs.cl --kernel {kernel} --global {global} --local 16 \
         in:x{set}.bin in:y{set}.bin out:{bytes}:{kernel}{set}.bin {scalar}",
        bytes = 4 * COUNT
    )
}

fn gpureplay(folder: &Folder, work: &Path, arguments: &[&str]) -> Result<(bool, String)> {
    let command = payload::host_command(folder);
    let output = Command::new(&command)
        .current_dir(work)
        .args(arguments)
        .output()
        .map_err(Error::start(command.display().to_string()))?;
    let text = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}

pub(super) fn replaced(folder: &Folder, count: usize, gates: bool) -> Result<()> {
    let share = files::temporary()?;
    let work = share.path();
    write_inputs(work)?;
    let pairs = PAIRS.get(..count).unwrap_or(&PAIRS);
    let mut kernels: Vec<&str> = pairs
        .iter()
        .flat_map(|(old, new, _)| [*old, *new])
        .collect();
    if gates {
        kernels.extend(WRONG.iter().flat_map(|(binary, job, _)| [*binary, *job]));
    }
    kernels.sort_unstable();
    kernels.dedup();
    let recordings = kernels.iter().map(|kernel| {
        format!(
            "gpureplay record --twice -o recording-{kernel} --name {kernel}.x=x --name {kernel}.y=y --name {kernel}.out=out -- {} -- {}\n",
            app(kernel, ""),
            app(kernel, "2")
        )
    });
    let text = format!("set -e\n{}", recordings.collect::<String>());
    let options = Options::sharing(Driver::Patched, work);
    let outcome = session::script(folder, &options, &text)?;
    outcome.clean()?;
    for (old, new, how) in pairs {
        replace(folder, work, old, new, *how)
            .map_err(|reason| format!("{new} in the place of {old}: {reason}"))?;
    }
    for (binary, job, gate) in WRONG.iter().filter(|_| gates) {
        let code = binary_of(folder, work, binary)?;
        let recording = format!("recording-{job}");
        let patch = ["patch", &recording, "--jobs", "0", "--shader", &code];
        let (done, text) = gpureplay(folder, work, &patch)?;
        if done || !text.contains(&format!("{gate}: ")) {
            return Err(format!("{binary} as a binary for {job}: {text}").into());
        }
    }
    Ok(())
}

fn binary_of(folder: &Folder, work: &Path, kernel: &str) -> Result<String> {
    let own = work.join(format!("code-{kernel}"));
    let saved: PathBuf =
        compile_kernel::save(folder, &work.join(format!("recording-{kernel}")), &own)?;
    Ok(saved.display().to_string())
}

fn replace(folder: &Folder, work: &Path, old: &str, new: &str, how: How) -> Result<()> {
    let [recorded, other] = [old, new].map(|kernel| format!("recording-{kernel}"));
    let made = format!("made-{old}-{new}");
    let from = |kernel: &str| -> Result<[String; 2]> {
        Ok(match how {
            How::Shader => ["--shader".into(), binary_of(folder, work, kernel)?],
            How::Whole => ["--from".into(), format!("recording-{kernel}:0")],
        })
    };
    let [option, value] = from(new)?;
    let patch = [
        "patch", &recorded, "--jobs", "0", &option, &value, "-o", &made,
    ];
    let (done, text) = gpureplay(folder, work, &patch)?;
    if !done {
        return Err(text.into());
    }
    for set in ["", "2"] {
        for (recording, out) in [(&made, "replaced.bin"), (&other, "re-recorded.bin")] {
            let values = [
                format!("x=x{set}.bin"),
                format!("y=y{set}.bin"),
                format!("out={out}"),
            ];
            let [x, y, out] = &values;
            let run = [
                "run", recording, "--input", x, "--input", y, "--output", out, "--force",
            ];
            let (done, text) = gpureplay(folder, work, &run)?;
            if !done {
                return Err(format!("{recording}: {text}").into());
            }
        }
        let read = |name: &str| files::read(work.join(name));
        let live = read(&format!("{new}{set}.bin"))?;
        if live.len() != 4 * COUNT || live.iter().all(|byte| *byte == 0) {
            return Err(format!("the live app wrote {} bytes", live.len()).into());
        }
        for name in ["replaced.bin", "re-recorded.bin"] {
            if read(name)? != live {
                return Err(
                    format!("{name} is not what the live app writes with inputs {set:?}").into(),
                );
            }
        }
        if read(&format!("{old}{set}.bin"))? == live {
            return Err("both kernels write the same, so nothing is compared".into());
        }
    }
    let [option, value] = from(old)?;
    let same = format!("same-{old}-{new}");
    let patch = [
        "patch", &recorded, "--jobs", "0", &option, &value, "-o", &same,
    ];
    let (done, text) = gpureplay(folder, work, &patch)?;
    let file = |folder: &str| fs::read(work.join(folder).join("recording.gpr")).ok();
    match done && file(&same).is_some() && file(&same) == file(&recorded) {
        true => Ok(()),
        false => Err(format!("{old} in its own place gives another file: {text}").into()),
    }
}
