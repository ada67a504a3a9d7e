// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the files of a recording, and numbers that messages state.

/// Name of the recording in its directory.
pub const RECORDING: &str = "recording.gpr";
/// Name of its signature there.
pub const SIGNATURE: &str = "recording.sig";
/// Name of the manifest there.
pub const MANIFEST: &str = "manifest.toml";
/// The most host threads that the model can be told to use.
pub const MAX_THREADS: usize = 512;
