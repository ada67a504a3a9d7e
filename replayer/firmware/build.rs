// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links a recording and the values of its inputs into the image.
//!
//! `GPUREPLAY_RECORDING` names a recording.gpr; without it the image takes what lies at the machine's load address.
//! `GPUREPLAY_INPUTS` names .npy files, separated by colons, in the order of the recording's tensors that need
//! a value (inputs, and weights that it does not hold).

use std::{env, fs, path::Path};

/// The elements of a .npy file, as they lie in it.
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
    fs::write(out.join("linked.rs"), source).expect("write");
}
