// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the best candidate to `tuned.toml`.

use std::path::Path;

use crate::{JitOptions, Session};
use gpureplay_cuda_launch::recording::{Change, Evidence, Hash, ImageReference, Tuned, Winner};

use super::space::Candidate;
use super::tries::Try;
use crate::command::failure::Failure;

/// Another image lacks variables that the program set.
pub(super) fn is_for_programs(session: &Session, candidate: &Candidate) -> bool {
    is_program_image(candidate) || session.launch().variables.is_empty()
}

fn is_program_image(candidate: &Candidate) -> bool {
    let is_compiled = candidate.options() != JitOptions::default();
    // A carve-out is the kernel's, also for other sizes.
    candidate.image == Candidate::RECORDED && !is_compiled && candidate.carveout < 0
}

/// `image` unless recorded; `shared` in bytes.
pub(super) fn write(
    path: &Path,
    session: &Session,
    (image, shared): (Option<&[u8]>, u32),
    best: &Try,
    evidence: Evidence,
) -> Result<(), Failure> {
    let launch = session.launch();
    let candidate = &best.candidate;
    let options = candidate.options();
    let image = match is_program_image(candidate) {
        true => None,
        false => Some(session.text(image, options)?),
    };
    let winner = Winner {
        kernel: launch.kernel.clone(),
        image: launch.image.hash,
        gpu: session.gpu().info().name.clone(),
        grid: launch.grid,
        block: launch.block,
        shared: launch.shared,
        change: Change {
            grid: candidate.grid,
            block: candidate.block,
            shared: (shared != launch.shared).then_some(shared),
            image: image.as_ref().map(|image| ImageReference {
                hash: Hash::of(image),
                size: image.len() as u64,
            }),
            max_registers: options.registers,
            optimisation: options.optimisation,
            max_threads: options.max_threads,
            min_blocks: options.min_blocks,
            carveout: u32::try_from(candidate.carveout).ok(),
        },
        evidence,
    };
    Ok(Tuned::add(path, winner, image.as_deref())?)
}
