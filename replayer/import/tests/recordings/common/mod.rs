// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests on recordings from silicon share: finding them, importing them, running them on the model.

#![allow(unreachable_pub)]

pub mod network;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use gpureplay_core::Limits;
use gpureplay_core::mali::{Session, verify};
use gpureplay_core::{Tensors, Workspace};
use gpureplay_format::Recording;
use gpureplay_import::{Imported, Options, Original, built_in, convert, read_directory};
use gpureplay_on_model::OnModel;
use mali_model::Profile;

/// The directory of a recording from silicon; `None`, said aloud, where it is not there.
pub fn directory(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os("GPUREPLAY_SHARED").map(PathBuf::from);
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let shared = found.or_else(|| {
        let mut above = here.ancestors().map(|d| d.join("shared"));
        above.find(|d| d.join("gpureplay-recordings").is_dir())
    });
    let directory = shared.map(|s| s.join("gpureplay-recordings").join(name));
    let directory = directory.filter(|d| d.is_dir());
    if directory.is_none() {
        eprintln!("SKIPPED: no directory shared/gpureplay-recordings/{name}");
    }
    directory
}

/// The recording with the description that comes with the crate.
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

/// Values of tensors by name: those that are set are bound, those that are asked for are read.
#[derive(Default)]
pub struct Values {
    names: Vec<String>,
    bytes: HashMap<u32, Vec<u8>>,
    read: HashMap<u32, Vec<u8>>,
}

impl Values {
    pub fn new(recording: &Recording<'_>) -> Self {
        let mut values = Values::default();
        for (index, tensor) in (0u32..).zip(recording.tensors()) {
            values.names.push(recording.name(tensor.name.get()).into());
            let length = recording.tensor_bytes(tensor).unwrap() as usize;
            values.read.insert(index, vec![0; length]);
        }
        values
    }

    fn index(&self, name: &str) -> u32 {
        self.names.iter().position(|n| n == name).unwrap() as u32
    }

    pub fn set(&mut self, name: &str, value: &[f32]) {
        let bytes = value.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.bytes.insert(self.index(name), bytes);
    }

    pub fn get(&self, name: &str) -> Vec<f32> {
        let bytes = &self.read[&self.index(name)];
        let word = |c: &[u8]| f32::from_le_bytes([c[0], c[1], c[2], c[3]]);
        bytes.chunks_exact(4).map(word).collect()
    }
}

impl Tensors for Values {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        self.bytes.get(&tensor).map(Vec::as_slice)
    }

    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        self.read.get_mut(&tensor).map(Vec::as_mut_slice)
    }
}

/// Opens a recording on the G71 model and gives the session to `test`.
pub fn on_g71(
    imported: &Imported,
    weights: &BTreeMap<&str, Vec<f32>>,
    test: impl FnOnce(&mut Session<'_, '_, OnModel>, &mut Values),
) {
    let recording = Recording::parse(&imported.recording).unwrap();
    let mut values = Values::new(&recording);
    for (name, value) in weights {
        values.set(name, value);
    }
    let verified = verify(&recording, &Limits::DEFAULT).unwrap();
    let profile = Profile::by_name("g71").unwrap();
    let gpu = OnModel::new(profile, mali_model::Options::default()).unwrap();
    let mut workspace = Box::new(Workspace::new());
    let options = gpureplay_core::Options::default();
    let mut session = Session::open(gpu, verified, &mut workspace, options, &mut values).unwrap();
    test(&mut session, &mut values);
    session.finish().unwrap();
}

/// Uniform numbers between -1 and 1, the same on every machine.
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

/// Largest absolute difference.
pub fn difference(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let distance = |(f, e): (&f32, &f64)| {
        let d = (f64::from(*f) - e).abs();
        if d.is_nan() { f64::INFINITY } else { d }
    };
    found.iter().zip(expected).map(distance).fold(0.0, f64::max)
}
