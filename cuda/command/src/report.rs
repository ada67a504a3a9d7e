// SPDX-License-Identifier: MIT OR Apache-2.0
//! How numbers and launches look.

use gpureplay_cuda_recording::Launch;

/// `16x4x1`.
pub(crate) fn sizes([x, y, z]: [u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}

/// Bytes in the unit that fits.
pub(crate) fn bytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.2} GB", value / 1e9),
    }
}

/// One line for a launch.
pub(crate) fn line(number: u32, launch: &Launch) -> String {
    format!(
        "{number:>5}  {:<18} {:<12} {:>5} regions {:>10}  {} changed  {}",
        sizes(launch.grid),
        sizes(launch.block),
        launch.regions.len() + launch.variables.len(),
        bytes(launch.bytes()),
        launch.changed(),
        launch.kernel
    )
}
