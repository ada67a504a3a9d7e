// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences of known cause.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use gpureplay_format::{Action, Recording};

use super::*;
use gpureplay_library::device::ModelOptions as Threads;
use gpureplay_on_model::{OnModel, Watch, Watched};
use mali_model::Product;

#[derive(Clone, Copy)]
enum When {
    /// Undone when the chain ends, as if a job had read another value.
    During,
    After,
}

struct Flip {
    chain: u32,
    va: u64,
    when: When,
}

impl Flip {
    fn flip(&self, device: &mut OnModel) {
        let mut byte = [0];
        device.read_memory(self.va, &mut byte).unwrap();
        device.write_memory(self.va, &[byte[0] ^ 0x20]).unwrap();
    }
}

impl Watch for Flip {
    fn starts(&mut self, device: &mut OnModel, number: u32, _: &Chain) -> bool {
        if number == self.chain && matches!(self.when, When::During) {
            self.flip(device);
        }
        true
    }
    fn ended(&mut self, device: &mut OnModel, number: u32) {
        if number == self.chain {
            self.flip(device);
        }
    }
}

fn differ(name: &str, flip: impl FnOnce(&Recording<'_>) -> Flip) -> Report {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let recording = gpureplay_library::Recording::open(directory.join(name)).unwrap();
    let recording = recording.apart().unwrap();
    let view = recording.verified().recording();
    let id = view.gpu_id();
    let first = Device::open(&Choice::Model(None), id, Threads::default()).unwrap();
    let model = Product::by_id(id).unwrap();
    let second = OnModel::new(model, mali_model::Options::default()).unwrap();
    let second = Watched::new(second, flip(view));
    let second = Device::custom(Box::new(second), "model");
    let bind = |session: &mut Session| bind_or_take_case(&[], session);
    let (found, bindings) = lock_step(&recording, How::default(), bind, (first, second)).unwrap();
    report(&recording, &found, &bindings, None)
}

fn tensor(recording: &Recording<'_>, name: &str) -> u64 {
    let mut tensors = recording.tensors().iter();
    let entry = tensors.find(|entry| recording.name(entry.name.get()) == name);
    recording.pieces(entry.unwrap()).unwrap()[0].va.get()
}

fn instruction(report: &Report) -> (&str, &str, &str) {
    match report.writer.as_ref().unwrap() {
        Written::Instruction {
            label,
            instruction,
            shader,
            ..
        } => (shader, label, instruction),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flipped_output_is_traced_to_the_store_that_writes_it() {
    let report = differ("saxpy-g52", |recording| Flip {
        chain: 1,
        va: tensor(recording, "out") + 4 * 700 + 2,
        when: When::After,
    });
    let text = report.difference.clone().unwrap();
    assert!(text.contains("after 1 chains the byte at"), "{text}");
    let (shader, label, store) = instruction(&report);
    assert_eq!(shader, "0xa003280");
    assert_eq!((label, store), ("clause_10", "+STORE.i32 t1, r0, t1, @r2"));
    assert!(report.job.clone().unwrap().ends_with("(COMPUTE)"));
}

#[test]
fn what_a_stream_dispatched_is_traced_to_its_store() {
    let report = differ("digits-g610", |recording| Flip {
        chain: 19,
        va: tensor(recording, "probabilities") + 8,
        when: When::After,
    });
    let (_, label, store) = instruction(&report);
    assert!(store.contains("STORE."), "{store}");
    let mut text = Vec::new();
    print(&mut text, &report).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("written in the dispatch at 0x"), "{text}");
    assert!(
        text.contains(&format!("in the block from {label} on")),
        "{text}"
    );
}

#[test]
fn what_no_dispatch_of_a_stream_wrote_is_said_to_be_so() {
    let report = differ("digits-g610", |recording| Flip {
        chain: 19,
        va: tensor(recording, "input"),
        when: When::After,
    });
    assert_eq!(report.writer, Some(Written::Nobody));
}

#[test]
fn another_value_that_is_read_is_traced_to_the_store_of_what_follows() {
    let mut out = 0;
    let report = differ("saxpy-g52", |recording| {
        out = tensor(recording, "out");
        Flip {
            chain: 1,
            va: tensor(recording, "x") + 4 * 5 + 2,
            when: When::During,
        }
    });
    assert_eq!(instruction(&report).1, "clause_10");
    let address = u64::from_str_radix(&report.address.unwrap()[2..], 16).unwrap();
    assert_eq!((address - out) / 4, 5);
}

#[test]
fn the_shader_is_that_of_the_chain_that_differs() {
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/digits-g52");
    let recording = gpureplay_library::Recording::open(digits).unwrap();
    let recording = recording.apart().unwrap();
    let chains = mali_jobs::walk::check(recording.verified().chains().unwrap())
        .unwrap()
        .chains;
    let report = differ("digits-g52", |recording| Flip {
        chain: chains.len() as u32,
        va: tensor(recording, "probabilities") + 8,
        when: When::After,
    });
    let (shader, _, store) = instruction(&report);
    assert!(store.starts_with("+STORE"), "{store}");
    let last = chains.last().unwrap().jobs.last().unwrap();
    let mut used = last.uses.iter().map(|it| format!("{:#x}", it.address));
    assert!(used.any(|it| it == shader), "{shader}");
}

#[test]
fn what_no_store_wrote_is_said_to_be_so() {
    // An input: no job writes it.
    let report = differ("saxpy-g52", |recording| Flip {
        chain: 1,
        va: tensor(recording, "y"),
        when: When::After,
    });
    assert_eq!(report.writer, Some(Written::Nobody));
    // The status in a job's header.
    let report = differ("saxpy-g52", |recording| {
        let actions = recording.segments().iter();
        let actions = actions.flat_map(|segment| recording.segment_actions(segment).flatten());
        let chain = actions.filter_map(|action| match action {
            Action::Submit { chain, .. } => Some(chain),
            _ => None,
        });
        Flip {
            chain: 1,
            va: chain.last().unwrap() + 1,
            when: When::After,
        }
    });
    assert!(matches!(report.writer, Some(Written::JobManager { .. })));
}

#[test]
fn memory_is_compared_up_to_a_limit() {
    let gib = 1 << 30;
    assert!(is_bounded(4 * gib, 256).is_ok());
    let error = is_bounded(4 * gib, 257).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("--jobs"), "{error}");
    assert!(is_bounded(u64::MAX, 2).is_err());
}
