// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine runs all that the verifier accepts.

use crate::support::{Fake, PRODUCT, Trouble};
use gpureplay_core::{DeviceError, ErrorKind, Limits, Options, Session, Tensors, Workspace};
use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{Header, Platform, SECTIONS, SectionEntry};
use gpureplay_format::{Recording, Section};
use mali_drive::verify;
use zerocopy::FromBytes;

/// Or `GPUREPLAY_ROUNDS`.
const ROUNDS: u64 = 30_000;

struct Sized {
    buffers: Vec<Vec<u8>>,
}

impl Tensors for Sized {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        self.buffers.get(tensor as usize).map(Vec::as_slice)
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        self.buffers.get_mut(tensor as usize).map(Vec::as_mut_slice)
    }
}

fn sections(file: &[u8]) -> Vec<Vec<u8>> {
    let (table, _) =
        <[SectionEntry; SECTIONS]>::ref_from_prefix(&file[size_of::<Header>()..]).unwrap();
    let bytes = |entry: &SectionEntry| {
        let start = entry.offset.get() as usize;
        file[start..start + entry.length.get() as usize].to_vec()
    };
    table.iter().map(bytes).collect()
}

#[test]
fn what_verifies_runs_inside_its_own_pages() {
    let rounds = std::env::var("GPUREPLAY_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let original = sections(&crate::support::recording());
    let limits = Limits {
        pages: 256,
        moved_bytes: 1 << 20,
        ..Limits::DEFAULT
    };
    let mut workspace = Workspace::new();
    let mut random = fastrand::Rng::with_seed(1);
    let (mut unparsed, mut refused, mut ran) = (0, 0, 0);
    for _ in 0..rounds.unwrap_or(ROUNDS) {
        let mut mutated = original.clone();
        for _ in 0..=random.usize(..3) {
            let section = &mut mutated[random.usize(..SECTIONS)];
            match random.usize(..8) {
                0 => section.truncate(random.usize(..section.len() + 1)),
                1 if section.len() >= 16 => section.rotate_left(16),
                _ if !section.is_empty() => {
                    let at = random.usize(..section.len());
                    section[at] = match random.usize(..4) {
                        0 => random.u8(..),
                        1 => section[at] ^ 1 << random.usize(..8),
                        2 => section[random.usize(..section.len())],
                        _ => [0, 1, 4, 16, 64, 255][random.usize(..6)],
                    };
                }
                _ => section.extend([0; 16]),
            }
        }
        let bytes: Vec<&[u8]> = mutated.iter().map(Vec::as_slice).collect();
        let file = assemble(Platform::of(PRODUCT), &bytes.try_into().unwrap());
        let Ok(recording) = Recording::parse(&file) else {
            unparsed += 1;
            continue;
        };
        let Ok(verified) = verify(&recording, &limits) else {
            refused += 1;
            continue;
        };
        ran += 1;
        let sizes = recording
            .tensors()
            .iter()
            .map(|it| recording.tensor_bytes(it).unwrap());
        let mut tensors = Sized {
            buffers: sizes.map(|size| vec![7; size as usize]).collect(),
        };
        let mut fake = Fake::new();
        fake.trouble = Trouble::Idle;
        let options = Options {
            ignore_identity: true,
        };
        let result = Session::open(&mut fake, verified, &mut workspace, options, &mut tensors)
            .and_then(|mut session| {
                session.run(&mut tensors)?;
                session.run(&mut tensors)?;
                session.finish()
            });
        if let Err(error) = result {
            let surprising = matches!(
                error.kind,
                ErrorKind::Device(DeviceError::NotMapped(_)) | ErrorKind::Internal
            );
            assert!(!surprising, "{error:?}");
        }
        assert!(fake.memory.is_empty());
    }
    println!(
        "{unparsed} not parsed, {refused} refused, {ran} ran ({} sections)",
        Section::ALL.len() - 1
    );
    assert!(refused > 1000 && ran > 100);
}
