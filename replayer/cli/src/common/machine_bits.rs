// SPDX-License-Identifier: MIT OR Apache-2.0
//! Special functions, subnormals and conversions, which no public source tells: device against model.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::shipped::{ended, fitting, found, own};

/// Results for each word, as in `tools/guest/apps/bits.cl`.
const ROWS: [&str; 19] = [
    "native_recip",
    "native_rsqrt",
    "native_exp2",
    "native_log2",
    "native_sin",
    "native_cos",
    "times 1",
    "plus 0",
    "fma with 1 and 0",
    "fmax with 0",
    "convert_int",
    "convert_uint",
    "convert_int_sat",
    "convert_int_rte",
    "convert_float of int",
    "convert_float of uint",
    "vload_half",
    "vstore_half",
    "vstore_half_rtz",
];
const INPUT: &str = "inputs/x.npy";
const WORDS: usize = 64;

pub(super) fn on(device: &str, valhall: bool) -> String {
    let name = if valhall { "bits-g57" } else { "bits-g52" };
    let said = results(name, device, valhall).and_then(|results| {
        let recording = found(name)?;
        let given = words(&recording.join(INPUT), WORDS)?;
        let model = words(&recording.join("expected/out.npy"), ROWS.len() * WORDS)?;
        Ok(compared(&given, &results, &model))
    });
    match said {
        Ok(lines) => format!("  {name} on {device}, against the model\n{lines}"),
        Err(said) => format!("  {name} on {device}: {said}\n"),
    }
}

fn results(name: &str, device: &str, valhall: bool) -> Result<Vec<u32>, String> {
    let recording = found(name)?;
    let folder = tempfile::tempdir().map_err(|error| format!("not tried: {error}"))?;
    let replayed = fitting(&recording, device, valhall, folder.path())?;
    let output = folder.path().join("out.npy");
    let mut run = Command::new(own());
    run.arg("run").arg(&replayed).args(["--device", device]);
    run.arg("--input")
        .arg(format!("x={}", recording.join(INPUT).display()));
    run.arg("--output").arg(format!("out={}", output.display()));
    ended(&mut run)?;
    words(&output, ROWS.len() * WORDS)
}

fn words(path: &Path, count: usize) -> Result<Vec<u32>, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let start = bytes.len().checked_sub(count * 4);
    let start = start.ok_or_else(|| format!("{}: {} bytes", path.display(), bytes.len()))?;
    let words = bytes[start..].as_chunks().0.iter();
    Ok(words.map(|word| u32::from_le_bytes(*word)).collect())
}

fn compared(words: &[u32], found: &[u32], model: &[u32]) -> String {
    let mut text = String::new();
    let rows = found.chunks(WORDS).zip(model.chunks(WORDS));
    for (name, (found, model)) in ROWS.iter().zip(rows) {
        let all = words.iter().zip(found.iter().zip(model));
        let other: Vec<_> = all.filter(|(_, (found, model))| found != model).collect();
        let _ = match other.len() {
            0 => writeln!(text, "    {name}: the same"),
            count => writeln!(text, "    {name}: {count} of {WORDS} differ"),
        };
        for (word, (found, model)) in other {
            let _ = writeln!(text, "      {word:08x} gives {found:08x}, not {model:08x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_are_named() {
        let words: Vec<u32> = (0..WORDS as u32).collect();
        let model = vec![5; ROWS.len() * WORDS];
        let mut found = model.clone();
        found[WORDS + 3] = 0x3f80_0001;
        let text = compared(&words, &found, &model);
        assert!(text.starts_with("    native_recip: the same\n    native_rsqrt: 1 of 64 differ\n"));
        assert!(text.contains("      00000003 gives 3f800001, not 00000005\n"));
        assert_eq!(text.matches(": the same").count(), ROWS.len() - 1);
    }

    #[test]
    fn rows_are_those_of_the_program() {
        let program = include_str!("../../../../tools/guest/apps/bits.cl");
        assert_eq!(program.matches("\tPUT(").count(), ROWS.len());
    }
}
