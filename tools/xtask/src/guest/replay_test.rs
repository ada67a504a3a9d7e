// SPDX-License-Identifier: MIT OR Apache-2.0
//! Full-system tests of the firmware image.

use std::{fs, path::PathBuf};

use super::{firmware, folder::Folder};
use crate::error::{Error, Result};

type Checked = std::result::Result<(), String>;

/// The recording that these tests replay.
fn digits(folder: &Folder) -> PathBuf {
    folder.repository.join("recordings/digits-g52")
}

/// The image with digits linked in prints the right digit.
pub(crate) fn firmware_linked(folder: &Folder) -> Result<Checked> {
    let recording = digits(folder);
    let image = firmware::build(folder, Some(&recording), &[recording.join("inputs/3.npy")])?;
    let said = firmware::boot(folder, &image, "g52", None)?;
    let bits = fs::read(recording.join("expected/3.npy"))
        .map_err(Error::io("read", recording.join("expected/3.npy")))?;
    let expected = largest(&bits);
    Ok(
        if said.contains(&format!("\nanswer {expected}\n")) && said.contains("\nDONE\n") {
            Ok(())
        } else {
            Err(format!(
                "expected answer {expected}, the image said: {said}"
            ))
        },
    )
}

/// Index of the largest of the last ten f32 of a .npy file.
fn largest(npy: &[u8]) -> usize {
    let values: Vec<f32> = npy
        .chunks_exact(4)
        .rev()
        .take(10)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap_or_default()))
        .collect();
    let values: Vec<f32> = values.into_iter().rev().collect();
    (0..values.len())
        .max_by(|&a, &b| values[a].total_cmp(&values[b]))
        .unwrap_or(0)
}

/// A damaged recording, a recording for another GPU, and no recording at all end in a message, not in a hang.
pub(crate) fn firmware_refuses(folder: &Folder) -> Result<Checked> {
    let image = firmware::build(folder, None, &[])?;
    let path = digits(folder).join("recording.gpr");
    let good = fs::read(&path).map_err(Error::io("read", &path))?;
    let dir = tempfile::tempdir().map_err(Error::io("create", std::env::temp_dir()))?;
    let mut damaged = good.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let cases = [
        ("damaged", damaged, "g52", "REFUSED damaged section"),
        ("whole", good.clone(), "g31", "FAILED another GPU"),
        ("unbound", good, "g52", "FAILED"),
        ("empty", vec![0; 64], "g52", "REFUSED damaged section"),
    ];
    for (name, bytes, gpu, message) in cases {
        let file = dir.path().join(name);
        fs::write(&file, bytes).map_err(Error::io("write", &file))?;
        let said = firmware::boot(folder, &image, gpu, Some(&file))?;
        if !said.contains(message) || said.contains("DONE") || said.contains("HANGS") {
            return Ok(Err(format!("{name}: expected `{message}`, got: {said}")));
        }
    }
    Ok(Ok(()))
}
