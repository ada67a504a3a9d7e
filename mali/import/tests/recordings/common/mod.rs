// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds recordings from silicon, imports them, runs them on the model.

#![allow(unreachable_pub)]

pub mod network;

use std::collections::BTreeMap;
use std::path::PathBuf;

use gpureplay_core::Workspace;
use gpureplay_import::{Imported, Options, Original, built_in, convert, read_directory};
use gpureplay_kit::{Values, floats, model, open};
use gpureplay_on_model::OnModel;
use mali_drive::Session;

/// `None`, said aloud, if absent.
pub fn directory(name: &str) -> Option<PathBuf> {
    gpureplay_kit::shared(&format!("gpureplay-recordings/{name}"))
}

pub fn import(name: &str) -> Option<(Original, Imported)> {
    let original = read_directory(&directory(name)?).unwrap();
    let plain = convert(&original, &Options::default()).unwrap();
    let options = Options {
        description: built_in(plain.fingerprint).unwrap(),
        ..Options::default()
    };
    assert!(options.description.is_some(), "no description");
    let imported = convert(&original, &options).unwrap();
    Some((original, imported))
}

pub fn on_g71(
    imported: &Imported,
    weights: &BTreeMap<&str, Vec<f32>>,
    test: impl FnOnce(&mut Session<'_, '_, OnModel>, &mut Values),
) {
    let mut values = Values::of(&imported.recording);
    for (name, value) in weights {
        values.set(name, floats(value));
    }
    let mut workspace = Box::new(Workspace::new());
    let view = gpureplay_kit::view(&imported.recording);
    let mut session = open(model("g71"), &view, &mut workspace, &mut values);
    test(&mut session, &mut values);
    session.finish().unwrap();
}

/// From -1 to 1, the same on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 40) as f32 / 8_388_608.0) - 1.0
    }

    pub fn vector(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| self.next() * scale).collect()
    }
}

pub fn difference(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let distance = |(f, e): (&f32, &f64)| {
        let d = (f64::from(*f) - e).abs();
        if d.is_nan() { f64::INFINITY } else { d }
    };
    found.iter().zip(expected).map(distance).fold(0.0, f64::max)
}
