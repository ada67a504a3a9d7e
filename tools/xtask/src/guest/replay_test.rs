// SPDX-License-Identifier: MIT OR Apache-2.0
//! Full-system tests of the replayer's own homes: the nano driver and /dev/mem in the guest, firmware without one.

use std::{fs, path::PathBuf};

use super::{
    firmware,
    folder::Folder,
    payload,
    session::{self, Driver, End, Options},
};
use crate::error::{Error, Result};

type Checked = std::result::Result<(), String>;

/// The recording that these tests replay.
fn digits(folder: &Folder) -> PathBuf {
    folder.repository.join("recordings/digits-g52")
}

/// Replays digits on every device that the guest has without panfrost, gives the GPU to panfrost, and runs OpenCL.
///
/// `gpureplay run` ends with 1 when an output differs from the expected one, so the exit codes are the comparison.
const DEVICES: &str = r#"
set -e
gpu=$(ls /sys/bus/platform/devices | grep '\.gpu$')
echo 0 > /proc/sys/vm/compact_unevictable_allowed
for round in 1 2 3; do gpureplay run digits-g52 --device devmem --input digits-g52/inputs/$round.npy; done
insmod /opt/gpureplay/nano/gpureplay_nano.ko
[ -e /dev/gpureplay-nano ]
gpureplay doctor
for device in nano nano:direct; do
  for image in 0 1 2 3 4 5 6 7 8 9; do gpureplay run digits-g52 --device $device --input digits-g52/inputs/$image.npy; done
done
for kill in 1 2 3 4 5; do
  gpureplay run digits-g52 --device nano & sleep 0.0$((kill * 3)); kill -9 $! 2>/dev/null || true; wait || true
  gpureplay run digits-g52 --device nano --input digits-g52/inputs/$kill.npy
done
echo "$gpu" > /sys/bus/platform/drivers/gpureplay-nano/unbind
modprobe panfrost
[ "$(basename $(readlink /sys/bus/platform/devices/$gpu/driver))" = panfrost ]
kernels
echo ALL DEVICES AGREE
"#;

/// The nano driver in both modes and /dev/mem, then panfrost again.
pub(crate) fn devices(folder: &Folder) -> Result<Checked> {
    payload::nano_driver(folder)?;
    let share = tempfile::tempdir().map_err(Error::io("create", std::env::temp_dir()))?;
    copy_dir(&digits(folder), &share.path().join("digits-g52"))?;
    let options = Options {
        driver: Driver::None,
        share: Some(share.path().to_path_buf()),
        ..Options::default()
    };
    let outcome = session::run(
        folder,
        &options,
        Some(&["bash", "-c", DEVICES].map(String::from)),
    )?;
    let said = String::from_utf8_lossy(&outcome.stdout);
    Ok(if outcome.end != End::Exit(0) {
        Err(format!(
            "{:?}, logs: {}",
            outcome.end,
            outcome.logs.display()
        ))
    } else if let Some(fault) = outcome.faults.first() {
        Err(format!("{fault}, logs: {}", outcome.logs.display()))
    } else if said.contains("ALL DEVICES AGREE") {
        Ok(())
    } else {
        Err(format!("ended early, logs: {}", outcome.logs.display()))
    })
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

fn copy_dir(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    fs::create_dir_all(to).map_err(Error::io("create", to))?;
    let entries = fs::read_dir(from).map_err(Error::io("read", from))?;
    for entry in entries {
        let path = entry.map_err(Error::io("read", from))?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_dir(&path, &target)?;
        } else {
            fs::copy(&path, &target).map_err(Error::io("copy", &path))?;
        }
    }
    Ok(())
}
