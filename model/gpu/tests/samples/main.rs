// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sample kernels, run from dumps of the memory that Mesa submitted, compared with references on the host.
#![allow(clippy::unwrap_used)]

mod dump;
mod machine;

use dump::Dump;
use machine::Machine;

#[test]
fn smoke() {
    let Some(folder) = dump::folder() else {
        println!("skipped: no shader samples on this machine");
        return;
    };
    let product = std::env::var("PRODUCT").unwrap_or("7212".into());
    let mut bad = 0;
    let mut paths: Vec<_> = std::fs::read_dir(folder.join(&product))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".trace.txt.xz") else {
            continue;
        };
        let dump = Dump::read(&path);
        let mut machine = Machine::new(u16::from_str_radix(&product, 16).unwrap(), &dump, 1);
        if let Err(error) = machine.run() {
            println!("{name}: {error}");
            bad += 1;
        }
    }
    println!("{bad} bad");
}
