// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device of a recording where none is named.

use gpureplay_linux::{kbase, nano, panfrost};
use std::path::Path;

use crate::choice::Choice;
use crate::device::Device;
use crate::model_options::ModelOptions;
use crate::recording::Recording;

impl Choice {
    /// Panfrost, where it drives the GPU of a recording and can replay it; the model of that GPU elsewhere. Without the feature `model`
    /// there is only panfrost, and opening it says what stands in the way.
    pub fn for_recording(recording: &Recording) -> Self {
        let has_model = cfg!(feature = "model");
        match !has_model || panfrost::find(Path::new("/")).is_ok() && panfrost_replays(recording) {
            true => Self::Panfrost,
            false => Self::Model(None),
        }
    }

    /// The device itself, but for [`Choice::Best`].
    pub fn resolved(&self, recording: &Recording) -> Self {
        match self {
            Self::Best => Self::for_recording(recording),
            named => named.clone(),
        }
    }

    /// The name of a device with a GPU of this machine that is taken by its name only: the nano driver's or Arm's, where this process may
    /// open it.
    pub fn taken_by_name() -> Option<&'static str> {
        match opens(Path::new(nano::PATH)) {
            true => Some("nano"),
            false => kbase::may_open(Path::new(kbase::PATH)).then_some("kbase"),
        }
    }
}

/// Whether the nano driver answers there. The GPU is not taken.
fn opens(path: &Path) -> bool {
    nano::state(path).is_ok()
}

fn panfrost_replays(recording: &Recording) -> bool {
    let gpu_id = recording.verified().recording().gpu_id();
    let Ok(mut device) = Device::open(&Choice::Panfrost, gpu_id, ModelOptions::default()) else {
        return false;
    };
    let Ok(recording) = recording.for_device(&mut device) else {
        return false;
    };
    let view = recording.verified().recording();
    device.check_identity(view).is_ok() && device.check_fit(view).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_place_of_the_driver_is_no_device() {
        let file = std::env::temp_dir().join(format!("gpureplay-no-nano-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        assert!(!opens(&file));
        std::fs::remove_file(&file).unwrap();
        assert!(!opens(&file));
    }
}
