// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drivers that a guest may load for the GPU.

/// Which GPU driver the guest loads before the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Driver {
    /// The kernel's own.
    Stock,
    /// With the recorder's hooks.
    Patched,
    /// None: the GPU is there, nobody drives it.
    None,
}

impl Driver {
    /// As the guest's first program reads it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Driver::Stock => "stock",
            Driver::Patched => "patched",
            Driver::None => "none",
        }
    }
}
