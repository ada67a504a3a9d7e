// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hashes of device calls.

use gpureplay_core::{
    DeviceError, ErrorKind, Family, Gpu, Limits, Options, Session, Submission, Verified, Workspace,
};
use gpureplay_format::Recording;
use gpureplay_format::checksum::Checksum;
use gpureplay_format::layout::FAMILY_STREAMS;
use gpureplay_on_model::OnModel;
use mali_facts::Product;
use serde::Serialize;

use crate::rig::{Values, model};
use crate::shipped::Shipped;

/// The second replay does not set up.
const RUNS: usize = 2;

/// Hashes; moving engine code leaves them equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fingerprint {
    /// Register accesses and launches.
    pub accesses: u64,
    /// Writes' kind, offset and value, launches' words.
    pub registers: u64,
    /// Addresses and bytes of writes.
    pub memory: u64,
    /// After the last replay.
    pub outputs: u64,
}

struct Hashed {
    gpu: OnModel,
    streams: bool,
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

    fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        let ended = self.gpu.run_chain(work)?;
        self.accesses += 1;
        self.registers.update(work.words);
        Some(ended)
    }

    // Through this wrapper, for the hash.
    fn reset(&mut self) -> Result<(), DeviceError> {
        match self.streams {
            false => mali_drive::reset(self),
            true => self.gpu.reset(),
        }
    }
}

/// With the inputs of [`Values::new`].
///
/// # Errors
/// An unsound recording, or a failed replay.
pub fn of(shipped: &Shipped) -> Result<Fingerprint, String> {
    let text = |error: &dyn std::fmt::Debug| format!("{}: {error:?}", shipped.name);
    let recording = Recording::parse(&shipped.bytes).map_err(|error| text(&error))?;
    match recording.header().family.get() {
        FAMILY_STREAMS => {
            let verified = mali_jobs::streams::verify(&recording, &Limits::DEFAULT);
            replayed(shipped, verified.map_err(|error| text(&error))?)
        }
        _ => {
            let verified = mali_drive::verify(&recording, &Limits::DEFAULT);
            replayed(shipped, verified.map_err(|error| text(&error))?)
        }
    }
}

fn replayed<F: Family>(
    shipped: &Shipped,
    verified: Verified<'_, F>,
) -> Result<Fingerprint, String> {
    let text = |error: &dyn std::fmt::Debug| format!("{}: {error:?}", shipped.name);
    let options = mali_model::Options {
        threads: 1,
        ..mali_model::Options::default()
    };
    let model = model(verified.recording().gpu_id());
    let gpu = OnModel::new(model, options).map_err(|error| text(&error))?;
    let mut hashed = Hashed {
        gpu,
        streams: matches!(model, Product::Streams(_)),
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
