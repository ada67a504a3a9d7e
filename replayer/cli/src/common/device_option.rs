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
        default_value = "best",
        help = format!("What to replay on: {}", Choice::names()),
        long_help = format!("What to replay on:\n{}", Choice::explained()),
    )]
    device: Choice,
    /// What [`Choice::Best`] is for the recording.
    #[arg(skip)]
    chosen: OnceLock<Choice>,
}

impl DeviceOption {
    pub(crate) fn choose(&self, recording: &Recording, needs_model: bool) {
        if self.device != Choice::Best {
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

    pub(crate) fn device(&self) -> &Choice {
        const MODEL: &Choice = &Choice::Model(None);
        match &self.device {
            Choice::Best => self.chosen.get().unwrap_or(MODEL),
            named => named,
        }
    }
}
