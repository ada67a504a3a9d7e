// SPDX-License-Identifier: MIT OR Apache-2.0
//! The option that says what to replay on.

use clap::Args;
use gpureplay_library::device::Choice;

/// What to replay on.
#[derive(Args)]
pub(crate) struct DeviceOption {
    #[arg(
        short,
        long,
        value_name = "DEVICE",
        default_value = "model",
        help = format!("What to replay on: {}", Choice::names()),
        long_help = format!("What to replay on:\n{}", Choice::explained()),
    )]
    pub(crate) device: Choice,
}
