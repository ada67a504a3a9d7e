// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lying application: clients get typed errors or right lengths.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use gpureplay_linux::optee::{Client, Error};

const SEED: &str = "LIAR_SEED";
const SESSIONS: u64 = 200;

fn told<T>(result: Result<T, Error>) -> bool {
    let text = result.err().map(|error| error.to_string());
    if let Some(text) = &text {
        assert!(
            text.len() < 400 && !text.contains(char::is_control),
            "{text}"
        );
    }
    text.is_some()
}

fn session() -> (u32, u32) {
    let (mut ran, mut failed) = (0, 0);
    let mut client = match Client::open() {
        Ok(client) => client,
        Err(error) => {
            told::<()>(Err(error));
            return (0, 0);
        }
    };
    for length in [0, 1, 4097, 100_000] {
        told(client.load(&vec![7; length]));
        let before = vec![(3, vec![1; 5]), (9, Vec::new()), (1, vec![2; 5000])];
        let mut outputs = before.clone();
        let inputs: [(u32, &[u8]); 2] = [(0, b"secret"), (4, &[5; 3000])];
        match told(client.run(&inputs, &mut outputs)) {
            true => {
                failed += 1;
                assert_eq!(outputs, before);
            }
            false => ran += 1,
        }
        let shape = |tensors: &[(u32, Vec<u8>)]| -> Vec<(u32, usize)> {
            let shapes = tensors.iter().map(|(index, bytes)| (*index, bytes.len()));
            shapes.collect()
        };
        assert_eq!(shape(&outputs), shape(&before));
        client.canceller().cancel();
        told(client.unload());
    }
    (ran, failed)
}

#[test]
fn child() {
    if std::env::var_os(SEED).is_some() {
        let (ran, failed) = session();
        println!("\nran {ran} failed {failed}");
    }
}

#[test]
fn a_trusted_application_that_lies_is_believed_in_nothing() {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libliar.so");
    let compiled = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args([
            "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o",
        ])
        .arg(&library)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/optee/liar.c"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{text}");
    let (mut ran, mut failed) = (0, 0);
    for seed in 1..=SESSIONS {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env("LD_PRELOAD", &library)
            .env(SEED, seed.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success(),
            "seed {seed}: {:?} {said}",
            child.status
        );
        let line = said.lines().find(|line| line.starts_with("ran ")).unwrap();
        let words: Vec<u32> = line
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        ran += words[0];
        failed += words[1];
    }
    assert!(ran > 50 && failed > 50, "{ran} ran, {failed} failed");
}
