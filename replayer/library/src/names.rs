// SPDX-License-Identifier: MIT OR Apache-2.0
//! File names, and numbers in messages.

/// The recording in its directory.
pub const RECORDING: &str = "recording.gpr";
/// Its signature.
pub const SIGNATURE: &str = "recording.sig";
/// Its manifest.
pub const MANIFEST: &str = "manifest.toml";
/// Host threads of the model.
pub const MAX_THREADS: usize = 512;
