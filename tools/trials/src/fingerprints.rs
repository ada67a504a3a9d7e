// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hashes of what a replay does to its device: a change that only moves code of the engine leaves them equal.

use gpureplay_core::{DeviceError, Gpu, Limits, Options, Workspace};
use gpureplay_format::Recording;
use gpureplay_format::checksum::Checksum;
use gpureplay_on_model::OnModel;
use mali_drive::Session;
use mali_drive::verify;
use serde::Serialize;

use crate::rig::{Values, profile};
use crate::shipped::Shipped;

/// Replays of each recording: the second one does not set up.
const RUNS: usize = 2;

/// Hashes of one recording's replays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fingerprint {
    /// Number of register accesses.
    pub accesses: u64,
    /// Kind, offset and written value of each access, in order.
    pub registers: u64,
    /// Address and bytes of each write into GPU memory, in order.
    pub memory: u64,
    /// Outputs and states after the last replay.
    pub outputs: u64,
}

/// A device that hashes what is done to it.
struct Hashed {
    gpu: OnModel,
    accesses: u64,
    registers: Checksum,
    memory: Checksum,
}

impl Hashed {
    fn access(&mut self, kind: u32, register: u32, value: u32) {
        self.accesses += 1;
        let words = [kind, register, value].map(u32::to_le_bytes);
        self.registers.update(words.as_flattened());
    }

    fn write(&mut self, va: u64, bytes: &[u8]) {
        let place = [va, bytes.len() as u64].map(u64::to_le_bytes);
        self.memory.update(place.as_flattened()).update(bytes);
    }
}

impl gpureplay_core::Wrapper for Hashed {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.gpu
    }

    fn read32(&mut self, register: u32) -> u32 {
        self.access(0, register, 0);
        self.gpu.read32(register)
    }

    fn write32(&mut self, register: u32, value: u32) {
        self.access(1, register, value);
        self.gpu.write32(register, value);
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.write(va, bytes);
        self.gpu.write_memory(va, bytes)
    }

    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        self.write(va, &[byte]);
        self.memory.update(&length.to_le_bytes());
        self.gpu.fill_memory(va, length, byte)
    }

    // By registers through this wrapper, so that they are hashed.
    fn reset(&mut self) -> Result<(), DeviceError> {
        mali_drive::reset(self)
    }
}

/// Replays a recording on the model with the inputs of [`Values::new`].
///
/// # Errors
/// The recording is not sound, or a replay fails.
pub fn of(shipped: &Shipped) -> Result<Fingerprint, String> {
    let text = |error: &dyn std::fmt::Debug| format!("{}: {error:?}", shipped.name);
    let recording = Recording::parse(&shipped.bytes).map_err(|error| text(&error))?;
    let id = recording.gpu_id();
    let verified = verify(&recording, &Limits::DEFAULT).map_err(|error| text(&error))?;
    let options = mali_model::Options {
        threads: 1,
        ..mali_model::Options::default()
    };
    let gpu = OnModel::new(profile(id), options).map_err(|error| text(&error))?;
    let mut hashed = Hashed {
        gpu,
        accesses: 0,
        registers: Checksum::new(),
        memory: Checksum::new(),
    };
    hashed.expect_recording(shipped.bytes.len() as u64);
    let mut values = Values::new(&verified);
    let mut workspace = Workspace::new();
    let mut session = Session::new(&mut hashed, verified, &mut workspace, Options::default());
    for _ in 0..RUNS {
        session.run(&mut values).map_err(|error| text(&error))?;
    }
    session.close().map_err(|error| text(&error))?;
    drop(session);
    let mut outputs = Checksum::new();
    for output in &values.outputs {
        outputs.update(output);
    }
    Ok(Fingerprint {
        accesses: hashed.accesses,
        registers: hashed.registers.value(),
        memory: hashed.memory.value(),
        outputs: outputs.value(),
    })
}
