// SPDX-License-Identifier: MIT OR Apache-2.0
//! The option that says what to replay on.

use std::sync::OnceLock;

use clap::Args;
use gpureplay_library::Recording;
use gpureplay_library::device::Choice;

use crate::common::terminal;

/// What to replay on.
#[derive(Args)]
pub(crate) struct DeviceOption {
    #[arg(
        short,
        long,
        value_name = "DEVICE",
        help = format!("What to replay on: {} [default: panfrost if it can, else model]", Choice::names()),
        long_help = format!(
            "What to replay on:\n{}\n[default: panfrost where it drives the GPU that was recorded and fits the recording, else model]",
            Choice::explained()
        ),
    )]
    device: Option<Choice>,
    /// What was chosen where the option is not given.
    #[arg(skip)]
    chosen: OnceLock<Choice>,
}

impl DeviceOption {
    /// Chooses a device for a recording, unless one is named; the model if what is asked for needs it.
    pub(crate) fn choose(&self, recording: &Recording, needs_model: bool) {
        if self.device.is_some() {
            return;
        }
        let chosen = self.chosen.get_or_init(|| match needs_model {
            true => Choice::Model(None),
            false => Choice::for_recording(recording),
        });
        let other = Choice::taken_by_name();
        if let (false, Choice::Model(_), Some(other)) = (needs_model, chosen, other) {
            terminal::note(format_args!(
                "on the model; --device {other} takes this machine's GPU (`gpureplay doctor` says whether it is ready)"
            ));
        }
    }

    /// The device that is named, or the one that was chosen.
    pub(crate) fn device(&self) -> &Choice {
        const MODEL: &Choice = &Choice::Model(None);
        let named = self.device.as_ref();
        named.or_else(|| self.chosen.get()).unwrap_or(MODEL)
    }
}
