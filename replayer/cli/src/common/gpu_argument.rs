// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU on the command line, by its name or by a board that has it.

use mali_facts::{Profile, StreamGpu};

/// A GPU, and what the user called it.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    /// The name that was given, in small letters.
    pub(crate) name: String,
    /// The GPU.
    pub(crate) profile: &'static Profile,
}

/// Reads the name of a GPU or a board.
pub(crate) fn gpu(name: &str) -> Result<Gpu, String> {
    match Profile::by_name(name) {
        Some(profile) => Ok(Gpu {
            name: name.to_ascii_lowercase(),
            profile,
        }),
        None => {
            let names: Vec<_> = Profile::names().collect();
            Err(format!("GPUs and boards are: {}", names.join(", ")))
        }
    }
}

/// Reads the name of a GPU or a board that a render node can have: also one with command streams.
pub(crate) fn node_gpu(name: &str) -> Result<String, String> {
    match StreamGpu::by_name(name) {
        Some(_) => Ok(name.to_ascii_lowercase()),
        None => gpu(name).map(|gpu| gpu.name).map_err(|text| {
            let names: Vec<_> = StreamGpu::names().collect();
            format!("{text}, {}", names.join(", "))
        }),
    }
}
