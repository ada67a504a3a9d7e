// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns the instruction table (`table/*.isa`) into Rust.
//!
//! The build stops at an unknown modifier or option, fixed bits that disagree with their mask, or an undescribed
//! bit.

#[path = "build/emit.rs"]
mod emit;
#[path = "build/parse.rs"]
mod parse;

use std::path::{Path, PathBuf};
use std::{env, fs, process};

fn main() {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=table");
    if let Err(message) = run() {
        eprintln!("instruction table: {message}");
        process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let manifest = env::var("CARGO_MANIFEST_DIR").map_err(|e| e.to_string())?;
    let folder = Path::new(&manifest).join("table");
    let kinds = parse::kinds(&read(&folder.join("modifiers.isa"))?)?;
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(|e| e.to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "isa"))
        .filter(|path| path.file_stem().is_some_and(|s| s != "modifiers"))
        .collect();
    files.sort();
    let mut operations = Vec::new();
    for file in files {
        let part = parse::operations(&read(&file)?, &kinds)
            .map_err(|e| format!("{}: {e}", file.display()))?;
        operations.extend(part);
    }
    operations.sort_by(|a, b| (!a.fma, &a.name).cmp(&(!b.fma, &b.name)));
    for pair in operations.windows(2) {
        if pair[0].fma == pair[1].fma && pair[0].name == pair[1].name {
            return Err(format!("{} is described twice", pair[0].name));
        }
    }
    let out = env::var("OUT_DIR").map_err(|e| e.to_string())?;
    let files = [
        ("names.rs", emit::names(&kinds, &operations)),
        ("table.rs", emit::table(&operations)),
        ("accessors.rs", emit::accessors(&kinds)),
    ];
    for (name, text) in files {
        fs::write(Path::new(&out).join(name), text).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
