// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs recordings from silicon.

#![allow(unreachable_pub)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use gpureplay_core::Workspace;
use gpureplay_import::{Imported, Options, Original, built_in, convert, read_directory};
use gpureplay_kit::{Values, floats, model, open};
use gpureplay_on_model::OnModel;
use mali_drive::Session;

/// `None`, which is printed, if the recordings are absent.
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

pub fn difference(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let distance = |(f, e): (&f32, &f64)| {
        let d = (f64::from(*f) - e).abs();
        if d.is_nan() { f64::INFINITY } else { d }
    };
    found.iter().zip(expected).map(distance).fold(0.0, f64::max)
}
