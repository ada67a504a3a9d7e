// SPDX-License-Identifier: MIT OR Apache-2.0
//! Oclgrind, an independent OpenCL C simulator.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::cases::{Arg, Case};
use crate::counts::Normalised;

pub(crate) struct Theirs {
    pub(crate) races: bool,
    pub(crate) bytes: [u64; 2],
}

pub(crate) fn is_there() -> bool {
    Command::new("oclgrind-kernel")
        .arg("--version")
        .output()
        .is_ok()
}

pub(crate) fn run(kernels: &Path, case: &Case) -> Theirs {
    let text = text(kernels, case);
    let bytes = |of: &str| {
        let lines = text.lines().filter(|line| line.contains(of));
        let numbers = lines.filter_map(|line| {
            let (_, rest) = line.split_once('(')?;
            rest.split_once(" bytes")?
                .0
                .replace(',', "")
                .parse::<u64>()
                .ok()
        });
        numbers.sum::<u64>()
    };
    // Moves of vectors are calls, counted without bytes: here of four floats.
    let calls = |of: &str| {
        let lines = text.lines().filter(|line| line.contains(of));
        let numbers = lines.filter_map(|line| line.split_once(" - ")?.0.trim().parse::<u64>().ok());
        16 * numbers.sum::<u64>()
    };
    Theirs {
        races: text.contains("race at"),
        bytes: [
            bytes("- load global") + calls("vload4"),
            bytes("- store global") + calls("vstore4"),
        ],
    }
}

pub(crate) fn text(kernels: &Path, case: &Case) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut source = std::fs::read_to_string(kernels.join(case.file)).unwrap();
    let buffers = |to: &mut dyn FnMut(usize, &Arg)| {
        case.args
            .iter()
            .enumerate()
            .for_each(|(at, arg)| to(at, arg));
    };
    let (mut parameters, mut arguments, mut sim) = (Vec::new(), Vec::new(), String::new());
    buffers(&mut |at, arg| match arg {
        Arg::Buffer(data) => {
            parameters.push(format!("__global void*p{at}"));
            arguments.push(format!("p{at}"));
            let words = data.words();
            let _ = writeln!(sim, "<size={} uint>", words.len() * 4);
            for word in words {
                let _ = write!(sim, "{word} ");
            }
            sim.push('\n');
        }
        Arg::Same(other) => arguments.push(format!("p{other}")),
        Arg::Local(bytes) => {
            parameters.push(format!("__local void*p{at}"));
            arguments.push(format!("p{at}"));
            let _ = writeln!(sim, "<size={bytes}>");
        }
        Arg::Int(value) => {
            parameters.push(format!("int p{at}"));
            arguments.push(format!("p{at}"));
            let _ = writeln!(sim, "<size=4 int>\n{value}");
        }
        Arg::Float(value) => {
            parameters.push(format!("float p{at}"));
            arguments.push(format!("p{at}"));
            let _ = writeln!(sim, "<size=4 float>\n{value}");
        }
    });
    // A kernel with group storage cannot be called: its text with one parameter less is.
    let entry = if !case.args.iter().any(|arg| matches!(arg, Arg::Same(_))) {
        case.kernel.to_owned()
    } else if case.kernel == "gemm_tiled" {
        let kept = arguments[2].trim_start_matches('p');
        let same = if kept == "0" { "A" } else { "B" };
        source = source.replace(
            "__global const float*A,__global const float*B,__global float*C,int N){ __local",
            &format!("__global float*A,__global float*B,int N){{ __global float*C={same}; __local"),
        );
        case.kernel.to_owned()
    } else {
        let _ = writeln!(
            source,
            "\n__kernel void case_of_test({}) {{ {}({}); }}",
            parameters.join(","),
            case.kernel,
            arguments.join(",")
        );
        "case_of_test".to_owned()
    };
    let size = |[x, y, z]: [u32; 3]| format!("{x} {y} {z}");
    let sim = format!(
        "kernel.cl\n{entry}\n{}\n{}\n\n{sim}",
        size(case.global),
        size(case.local)
    );
    std::fs::write(folder.path().join("kernel.cl"), source).unwrap();
    std::fs::write(folder.path().join("case.sim"), sim).unwrap();
    let output = Command::new("oclgrind-kernel")
        .args([
            "--data-races",
            "--inst-counts",
            "--max-errors",
            "1",
            "case.sim",
        ])
        .current_dir(&folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("Instructions executed"),
        "{}: {text}",
        case.kernel
    );
    text.into_owned()
}

pub(crate) fn normalised(text: &str) -> Normalised {
    let mut all = Normalised::default();
    for line in text.lines() {
        let Some((count, what)) = line.trim().split_once(" - ") else {
            continue;
        };
        let Ok(count) = count.replace(',', "").parse::<u64>() else {
            continue;
        };
        let bytes = || {
            let (_, rest) = what.split_once('(').unwrap();
            let bytes = rest.split_once(" bytes").unwrap().0;
            bytes.replace(',', "").parse::<u64>().unwrap()
        };
        let elements = if what.contains("Dv4_f") { 4 } else { 1 };
        let calls = |names: &[&str]| names.iter().any(|name| what.contains(name));
        match what {
            "ret" => all.threads += count,
            "fadd" | "fsub" | "fmul" => all.floats += count,
            _ if what.starts_with("load ") => all.loaded += bytes(),
            _ if what.starts_with("store ") => all.stored += bytes(),
            _ if calls(&["vload4"]) => all.loaded += 16 * count,
            _ if calls(&["vstore4"]) => all.stored += 16 * count,
            _ if calls(&["_Z7barrier"]) => all.barriers += count,
            _ if calls(&["atomic_"]) => all.atomics += count,
            _ if calls(&["_Z3fma", "_Z3mad", "fmuladd", "_Z4fmax", "_Z4fmin"]) => {
                all.floats += elements * count;
            }
            _ => {}
        }
    }
    all
}
