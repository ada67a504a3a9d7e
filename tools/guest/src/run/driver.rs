// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drivers for the guest's GPU.

/// Sets `$gpu`; ends the shell on failure.
pub(crate) const TAKE_BY_NANO: &str = "\
gpu=$(ls /sys/bus/platform/devices | grep '\\.gpu$')
insmod /opt/gpureplay/nano/gpureplay_nano.ko || exit 1
echo gpureplay-nano > /sys/bus/platform/devices/$gpu/driver_override
echo $gpu > /sys/bus/platform/drivers_probe
";

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
    pub(super) fn name(self) -> &'static str {
        match self {
            Driver::Stock => "stock",
            Driver::Patched => "patched",
            Driver::None => "none",
        }
    }
}
