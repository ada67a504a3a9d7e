// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lending after each chain changes no bit.

use std::path::Path;

use gpureplay_core::{DeviceError, Gpu, Workspace, Wrapper};
use gpureplay_format::{Opcode, Recording};
use gpureplay_kit::{Values, model, open, shipped};
use gpureplay_on_model::OnModel;
use mali_drive::middleware::{Diff, Divergence};

struct Lent {
    gpu: OnModel,
    times: u32,
    settings: u32,
}

impl Wrapper for Lent {
    type Inner = OnModel;
    fn inner(&mut self) -> &mut OnModel {
        &mut self.gpu
    }
    fn write32(&mut self, register: u32, value: u32) {
        let class = mali_facts::registers::lookup(register).map(|located| located.class());
        self.settings += u32::from(class == Some(mali_facts::registers::Class::Quirk));
        self.gpu.write32(register, value);
    }
    fn lend(&mut self) -> Result<bool, DeviceError> {
        self.times += 1;
        self.gpu.reset()?;
        Ok(true)
    }
}

fn values(path: &Path, count: usize) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    bytes[bytes.len() - 4 * count..].to_vec()
}

fn lent() -> Lent {
    Lent {
        gpu: model("g52"),
        times: 0,
        settings: 0,
    }
}

/// One job per chain: lending is between chains.
fn apart() -> Vec<u8> {
    let file = "../../../mali/jobs/tests/as-recorded/digits-g52.gpr";
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

fn replay(gpu: impl Gpu) -> u32 {
    let folder = shipped("digits-g52");
    let file = apart();
    let mut bound = Values::of(&file);
    bound.set("input", values(&folder.join("inputs/7.npy"), 64));
    let mut workspace = Box::new(Workspace::new());
    let view = gpureplay_kit::view(&file);
    let mut session = open(gpu, &view, &mut workspace, &mut bound);
    for _ in 0..2 {
        session.run(&mut bound).unwrap();
        let expected = values(&folder.join("expected/7.npy"), 10);
        assert_eq!(bound.get("probabilities"), expected);
    }
    let chains = session.submits();
    session.finish().unwrap();
    chains
}

#[test]
fn a_gpu_that_was_lent_gives_the_same_answer() {
    let mut lent = lent();
    let chains = replay(&mut lent);
    assert!(chains > 10 && lent.times >= 2 * chains, "{}", lent.times);
    let file = apart();
    let entries = Recording::parse(&file).unwrap().action_entries().to_vec();
    let settings = entries
        .iter()
        .filter(|entry| entry.op == Opcode::Write.code());
    let settings = settings.count() as u32;
    assert!(settings > 0);
    assert_eq!(lent.settings, settings * (lent.times + 1));
}

#[test]
fn of_two_devices_in_lock_step_each_may_be_lent() {
    let ignored = |register| {
        mali_facts::registers::lookup(register)
            .is_none_or(|located| !matches!(located.class(), mali_facts::registers::Class::Status))
    };
    let mut first = Diff::new(lent(), model("g52"), ignored);
    let chains = replay(&mut first);
    let mut second = Diff::new(model("g52"), lent(), ignored);
    assert_eq!(replay(&mut second), chains);
    let times = [first.get_ref().0.times, second.get_ref().1.times];
    assert!(times.iter().all(|&times| times >= 2 * chains), "{times:?}");
    let divergence: [Option<Divergence>; 2] = [first.divergence(), second.divergence()];
    assert_eq!(divergence, [None, None]);
}
