// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU that is lent to somebody else after each chain, and comes back reset: the answer is the same, bit for bit.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use gpureplay_core::{
    DeviceError, Gpu, Limits, Lines, Options, Session, Tensors, Workspace, verify,
};
use gpureplay_format::{Access, Recording, TensorKind};
use gpureplay_on_model::OnModel;
use mali_model::Profile;

struct Lent {
    gpu: OnModel,
    times: u32,
}

impl Gpu for Lent {
    fn read32(&mut self, register: u32) -> u32 {
        self.gpu.read32(register)
    }
    fn write32(&mut self, register: u32, value: u32) {
        self.gpu.write32(register, value);
    }
    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        self.gpu.wait_irq(lines, timeout_us)
    }
    fn now_us(&mut self) -> u64 {
        self.gpu.now_us()
    }
    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        self.gpu.map(va, pages, access)
    }
    fn activate(&mut self) -> Result<u8, DeviceError> {
        self.gpu.activate()
    }
    fn release(&mut self) {
        self.gpu.release();
    }
    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.gpu.write_memory(va, bytes)
    }
    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.gpu.read_memory(va, bytes)
    }
    fn lend(&mut self) -> Result<bool, DeviceError> {
        self.times += 1;
        self.gpu.reset()?;
        Ok(true)
    }
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.gpu.reset()
    }
}

/// The one input and the one output of the recording.
struct Values {
    input: (u32, Vec<u8>),
    output: (u32, Vec<u8>),
}

impl Tensors for Values {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        (tensor == self.input.0).then_some(&self.input.1)
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        (tensor == self.output.0).then_some(&mut self.output.1)
    }
}

/// The last bytes of a .npy file: its values.
fn values(path: &Path, count: usize) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    bytes[bytes.len() - 4 * count..].to_vec()
}

#[test]
fn a_gpu_that_was_lent_gives_the_same_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../recordings/digits-g52");
    let file = std::fs::read(folder.join("recording.gpr")).unwrap();
    let recording = Recording::parse(&file).unwrap();
    let verified = verify(recording, &Limits::DEFAULT).unwrap();
    let index = |kind: TensorKind| {
        let of_kind = |tensor: &&gpureplay_format::layout::TensorEntry| tensor.kind == kind.code();
        let tensor = recording.tensors().iter().find(of_kind).unwrap();
        let name = recording.name(tensor.name.get());
        recording.tensor_named(name).unwrap().0
    };
    let mut bound = Values {
        input: (
            index(TensorKind::Input),
            values(&folder.join("inputs/7.npy"), 64),
        ),
        output: (index(TensorKind::Output), vec![0; 40]),
    };
    let profile = Profile::by_name("g52").unwrap();
    let mut lent = Lent {
        gpu: OnModel::new(profile, mali_model::Options::default()).unwrap(),
        times: 0,
    };
    let mut workspace = Box::new(Workspace::new());
    let mut session = Session::open(
        &mut lent,
        verified,
        &mut workspace,
        Options::default(),
        &mut bound,
    )
    .unwrap();
    for _ in 0..2 {
        bound.output.1.fill(0);
        session.run(&mut bound).unwrap();
        assert_eq!(bound.output.1, values(&folder.join("expected/7.npy"), 10));
    }
    let chains = session.submits();
    session.finish().unwrap();
    assert!(chains > 10 && lent.times >= 2 * chains, "{}", lent.times);
}
