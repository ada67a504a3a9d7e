// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device where none is named.

use gpureplay_linux::{kbase, nano, panfrost, panthor};
use std::path::Path;

use crate::choice::Choice;
use crate::device::Device;
use crate::model_options::ModelOptions;
use crate::recording::Recording;

impl Choice {
    /// The kernel's driver if it can replay the recording; else the model. Without the feature `model`, always the
    /// driver, whose opening says what is wrong.
    pub fn for_recording(recording: &Recording) -> Self {
        let root = Path::new("/");
        let fits = |choice: &Self| stock_replays(choice, recording);
        if panthor::find(root).is_ok() && fits(&Self::Panthor) {
            return Self::Panthor;
        }
        let has_model = cfg!(feature = "model");
        match !has_model || panfrost::find(root).is_ok() && fits(&Self::Panfrost) {
            true => Self::Panfrost,
            false => Self::Model(None),
        }
    }

    /// Resolves [`Choice::Best`].
    pub fn resolved(&self, recording: &Recording) -> Self {
        match self {
            Self::Best => Self::for_recording(recording),
            named => named.clone(),
        }
    }

    /// A GPU that is used only by name: with the nano driver or Arm's, if this process may open it.
    pub fn taken_by_name() -> Option<&'static str> {
        match opens(Path::new(nano::PATH)) {
            true => Some("nano"),
            false => kbase::may_open(Path::new(kbase::PATH)).then_some("kbase"),
        }
    }
}

/// Does not take the GPU.
fn opens(path: &Path) -> bool {
    nano::state(path).is_ok()
}

fn stock_replays(choice: &Choice, recording: &Recording) -> bool {
    let gpu_id = recording.verified().recording().gpu_id();
    let Ok(mut device) = Device::open(choice, gpu_id, ModelOptions::default()) else {
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
