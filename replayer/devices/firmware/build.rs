// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links a recording and inputs into the image.
//!
//! - `GPUREPLAY_RECORDING`: a recording.gpr; default: the machine's load address.
//! - `GPUREPLAY_INPUTS`: .npy files, separated by colons, for tensors that need a value, in order; a first
//!   dimension may hold a value per run.
//! - `GPUREPLAY_RUNS`: runs (default 1), each from the last one's states.
//! - `GPUREPLAY_FAULTS`: only disturbs a step at every n-th device call (`src/faults.rs`).
//! - Feature `signature`: the recording is a signed pack, checked with `GPUREPLAY_PUBLIC_KEY` (64 hexadecimal
//!   digits; none: no trust) and `GPUREPLAY_COUNTER` (smallest accepted).

use std::{env, fs, path::Path};

fn elements(path: &str) -> Vec<u8> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(
        bytes.starts_with(b"\x93NUMPY\x01\x00"),
        "{path}: not a .npy file of version 1.0"
    );
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let text = String::from_utf8_lossy(&bytes[10..10 + header]);
    assert!(
        text.contains("'fortran_order': False"),
        "{path}: not in C order"
    );
    bytes[10 + header..].to_vec()
}

fn trust() -> String {
    println!("cargo::rerun-if-env-changed=GPUREPLAY_PUBLIC_KEY");
    println!("cargo::rerun-if-env-changed=GPUREPLAY_COUNTER");
    if env::var_os("CARGO_FEATURE_SIGNATURE").is_none() {
        return String::new();
    }
    let text = env::var("GPUREPLAY_PUBLIC_KEY").unwrap_or_default();
    let text = if text.is_empty() { "0".repeat(64) } else { text };
    assert!(text.len() == 64, "GPUREPLAY_PUBLIC_KEY has not 64 digits");
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16);
    let key: Result<Vec<u8>, _> = (0..64).step_by(2).map(digit).collect();
    let key = key.expect("GPUREPLAY_PUBLIC_KEY is not hexadecimal");
    let counter = env::var("GPUREPLAY_COUNTER").unwrap_or_default();
    let counter: u64 = if counter.is_empty() {
        0
    } else {
        counter.parse().expect("GPUREPLAY_COUNTER is no number")
    };
    format!("const PUBLIC_KEY: [u8; 32] = {key:?};\nconst COUNTER: u64 = {counter};\n")
}

fn main() {
    println!("cargo::rerun-if-env-changed=GPUREPLAY_RECORDING");
    println!("cargo::rerun-if-env-changed=GPUREPLAY_INPUTS");
    println!("cargo::rerun-if-changed=firmware.ld");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let out = Path::new(&out);
    let mut source = String::new();
    let recording = env::var("GPUREPLAY_RECORDING").unwrap_or_default();
    let bytes = if recording.is_empty() {
        Vec::new()
    } else {
        println!("cargo::rerun-if-changed={recording}");
        fs::read(&recording).unwrap_or_else(|error| panic!("{recording}: {error}"))
    };
    fs::write(out.join("recording"), &bytes).expect("write");
    source += &format!(
        "#[unsafe(link_section = \".recording\")]\nstatic LINKED: [u8; {}] = *include_bytes!(\"recording\");\n",
        bytes.len()
    );
    let inputs = env::var("GPUREPLAY_INPUTS").unwrap_or_default();
    source += "static INPUTS: &[&[u8]] = &[";
    for (index, path) in inputs
        .split(':')
        .filter(|path| !path.is_empty())
        .enumerate()
    {
        println!("cargo::rerun-if-changed={path}");
        let name = format!("input{index}");
        fs::write(out.join(&name), elements(path)).expect("write");
        source += &format!("include_bytes!(\"{name}\"), ");
    }
    source += "];\n";
    source += &trust();
    println!("cargo::rerun-if-env-changed=GPUREPLAY_RUNS");
    let runs = env::var("GPUREPLAY_RUNS").unwrap_or_default();
    let runs: u32 = if runs.is_empty() {
        1
    } else {
        runs.parse::<u32>().expect("GPUREPLAY_RUNS is no number").max(1)
    };
    source += &format!("const RUNS: u32 = {runs};\n");
    println!("cargo::rerun-if-env-changed=GPUREPLAY_FAULTS");
    let faults = env::var("GPUREPLAY_FAULTS").unwrap_or_default();
    let faults: u64 = if faults.is_empty() {
        0
    } else {
        faults.parse().expect("GPUREPLAY_FAULTS is no number")
    };
    source += &format!("const FAULTS: u64 = {faults};\n");
    fs::write(out.join("linked.rs"), source).expect("write");
}
