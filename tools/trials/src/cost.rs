// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of verifying, against reading.

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use gpureplay_core::Limits;
use gpureplay_format::{
    Access, Builder, ElementType, Recording, RegionKind, SegmentKind, Tensor, TensorKind,
};
use mali_drive::verify;

const DESCRIPTORS: u64 = 0x200_0000;
const DATA: u64 = 0x1000_0000;

/// The best of several attempts.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Of the file.
    pub bytes: usize,
    /// Into memory.
    pub read: Duration,
    /// Parsing and verifying.
    pub verify: Duration,
}

/// What is uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Incompressible.
    Random,
    /// LZ4 blocks of many short sequences, the slowest to check.
    Compressible,
}

/// One of about this size.
///
/// # Errors
/// It cannot be encoded.
pub fn recording(
    bytes: usize,
    contents: Contents,
) -> Result<Vec<u8>, gpureplay_format::EncodeError> {
    let stored = match contents {
        Contents::Random => 4096,
        // A quarter repeats, at three bytes each.
        Contents::Compressible => 3500,
    };
    let pages = bytes.div_ceil(stored) as u32;
    let mut builder = Builder::new(0x7212_0000);
    builder.identity(0, 0xffff_0000, 0x7212_0000);
    builder.region(DESCRIPTORS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, pages, Access::READ_WRITE, RegionKind::Data);
    let input = Tensor::dense("x", TensorKind::Input, ElementType::F32, &[1024], DATA);
    let input = builder.tensor(input);
    builder.segment("setup", SegmentKind::Setup);
    let mut state = 0x1234_5678_9abc_def1u64;
    for page in 0..u64::from(pages) {
        let mut block = [0; 4096];
        let mut before = [0; 8];
        for (at, word) in block.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if contents == Contents::Compressible && at % 4 == 3 {
                *word = before;
            } else {
                before = *word;
                *word = state.to_le_bytes();
            }
        }
        builder.upload(DATA + page * 4096, &block);
    }
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(input);
    builder.rearm(DESCRIPTORS);
    builder.submit(1, DESCRIPTORS, 1000);
    builder.finish()
}

/// # Errors
/// Not made, written, read or accepted.
pub fn measure(bytes: usize, contents: Contents) -> Result<Cost, Box<dyn std::error::Error>> {
    let file = recording(bytes, contents)?;
    let path = std::env::temp_dir().join(format!("gpureplay-cost-{}.gpr", std::process::id()));
    std::fs::write(&path, &file)?;
    let result = attempts(&path, file.len());
    std::fs::remove_file(&path)?;
    Ok(result?)
}

fn attempts(path: &std::path::Path, bytes: usize) -> io::Result<Cost> {
    let mut cost = Cost {
        bytes,
        read: Duration::MAX,
        verify: Duration::MAX,
    };
    for _ in 0..7 {
        let started = Instant::now();
        let file = black_box(std::fs::read(path)?);
        cost.read = cost.read.min(started.elapsed());
        let started = Instant::now();
        let recording =
            Recording::parse(&file).map_err(|error| io::Error::other(format!("{error:?}")))?;
        let verified = verify(&recording, &Limits::DEFAULT);
        black_box(&verified);
        cost.verify = cost.verify.min(started.elapsed());
        verified.map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    Ok(cost)
}
