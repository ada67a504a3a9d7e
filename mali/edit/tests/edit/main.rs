// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shipped recordings, taken apart and changed.
#![allow(clippy::unwrap_used)]

mod effects;
mod extracted;
mod gates;
mod launches;
mod shaders;
mod whole;

use std::path::PathBuf;

use gpureplay_edit::{Change, Kernel, Launch, Subject};
use gpureplay_jobs::{Compute, Jobs};
use gpureplay_library::{Bindings, Recording};

fn folder(name: &str) -> PathBuf {
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings");
    PathBuf::from(recordings).join(name)
}

fn shipped(name: &str) -> (Recording, Jobs, Bindings) {
    let recording = Recording::open(folder(name)).unwrap().apart().unwrap();
    let jobs = Jobs::of(&recording).unwrap();
    let view = recording.verified().recording();
    let mut bindings = Bindings::new(view, &recording.files().path);
    for (name, file) in &recording.files().case().unwrap().inputs {
        let file = recording.files().directory.join(file);
        bindings.bind_file(recording.files(), name, &file).unwrap();
    }
    (recording, jobs, bindings)
}

fn code(subject: &Subject<'_>) -> Vec<u8> {
    let code = &subject.compute().unwrap().code;
    code.as_ref().unwrap().bytes.clone()
}

fn sized(launch: Launch) -> Change {
    Change {
        launch,
        kernel: Kernel::Recorded,
    }
}

fn with_code(subject: &Subject<'_>, code: Vec<u8>) -> Change {
    Change {
        launch: subject.launch(),
        kernel: code.into(),
    }
}

fn give(compute: &mut Compute, field: &str, value: u64) {
    compute.job.state = compute.job.state.with(field, value);
}

const PRELOADED: [&str; 7] = [
    "local invocation XY",
    "local invocation Z",
    "work group X",
    "work group Y",
    "work group Z",
    "global invocation Y",
    "global invocation Z",
];
