// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device of a recording where none is named.

use gpureplay_linux::panfrost;
use std::path::Path;

use crate::choice::Choice;
use crate::device::Device;
use crate::model_options::ModelOptions;
use crate::recording::Recording;

impl Choice {
    /// Panfrost, where it drives the GPU of a recording and can replay it; the model of that GPU elsewhere.
    pub fn for_recording(recording: &Recording) -> Self {
        match panfrost::find(Path::new("/")).is_ok() && panfrost_replays(recording) {
            true => Self::Panfrost,
            false => Self::Model(None),
        }
    }
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
