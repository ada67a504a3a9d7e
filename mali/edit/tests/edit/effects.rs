// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds outputs that no input changes.

use gpureplay_edit::constant_outputs;
use gpureplay_kit::all_shipped;
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{ModelOptions, Recording, Session, Tensor};
use gpureplay_trials::parts::Parts;

fn moved(places: &[(u64, u64)]) -> Recording {
    let (recording, _, _) = crate::shipped("saxpy-g52");
    let mut parts = Parts::of(&recording.files().bytes).unwrap();
    for (from, to) in places {
        assert!(parts.move_tensor(*from, *to));
    }
    Recording::from_bytes(parts.file()).unwrap()
}

const X: u64 = 0xa006000;
const Y: u64 = 0xa017000;

fn answer(recording: &Recording, value: f32) -> Vec<u8> {
    let gpu = recording.verified().recording().gpu_id();
    let device = Device::open(&Choice::Model(None), gpu, ModelOptions::default()).unwrap();
    let mut session = Session::on(recording.clone(), device);
    for name in ["x", "y"] {
        let info = session.tensor(name).unwrap();
        let bytes = value.to_le_bytes().repeat(1000);
        let value = Tensor::new(info.dtype, &info.shape, bytes).unwrap();
        session.bind(name, value).unwrap();
    }
    session.run().unwrap();
    session.outputs()[0].1.bytes().to_vec()
}

#[test]
fn an_output_that_no_input_reaches_is_found() {
    // Such pages are as after a copy that the CPU made.
    let lost = moved(&[(X, 0xa00a000), (Y, 0xa00c000)]);
    assert_eq!(constant_outputs(&lost), ["out"]);
    assert_eq!(answer(&lost, 1.0), answer(&lost, 2.0));
    let kept = moved(&[(Y, 0xa00c000)]);
    assert_eq!(constant_outputs(&kept), [""; 0]);
    assert_ne!(answer(&kept, 1.0), answer(&kept, 2.0));
}

#[test]
fn a_pointer_into_a_buffer_is_no_end_of_it() {
    // By the job's pointer alone, whose page begins later, the input would have no effect.
    let (recording, _, _) = crate::shipped("saxpy-g52");
    assert_eq!(constant_outputs(&recording), [""; 0]);
    let shifted = moved(&[(X, 0xa00a000), (Y, 0xa016800)]);
    assert_eq!(constant_outputs(&shifted), [""; 0]);
    assert_ne!(answer(&shifted, 1.0), answer(&shifted, 2.0));
}

#[test]
fn shipped_recordings_have_none() {
    for folder in all_shipped() {
        let recording = Recording::open(&folder).unwrap();
        assert_eq!(constant_outputs(&recording), [""; 0], "{folder:?}");
    }
}
