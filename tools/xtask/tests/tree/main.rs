// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures, patches, numbers and names in pages.
#![allow(clippy::unwrap_used)]

mod c_files;
mod driver_patch;
mod figures;
mod kselftest;
mod numbers;
mod passed_on;
mod troubleshooting;

fn top() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
