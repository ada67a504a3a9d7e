// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU on the command line, by its name or by a board that has it.

use mali_facts::Profile;

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
