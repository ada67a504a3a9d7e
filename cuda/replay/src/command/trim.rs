// SPDX-License-Identifier: MIT OR Apache-2.0
//! Zeros memory that a run writes first.

use std::path::Path;
use std::time::Duration;

use gpureplay_cuda_launch::image::reduced;
use gpureplay_cuda_launch::recording::{Recording, Reduced, Run, Writer};

use crate::command::attempt::opened;
use crate::command::failure::Failure;
use crate::command::report::{bytes, note};
use crate::{Gpu, How, LeftOut, ReplayError};

/// Trims a run only if outputs and later turns are still reproduced. Reduces images, too; old contents stay in the
/// store.
pub(crate) fn trim(
    folder: &Path,
    number: u32,
    weights: Option<&Path>,
    gpu: i32,
    time_limit: Duration,
) -> Result<(), Failure> {
    let recording = Recording::open(folder)?;
    let run = recording.run(number)?;
    let (gpu, turns) = (Gpu::open(gpu)?, run.turns.clone());
    let mut session = opened(gpu, &recording, run.clone(), weights, time_limit)?;
    // Another input may be read first; only turns tell.
    let has_others = run.checked.as_ref().is_some_and(|one| one.others > 0);
    let left_out = match has_others {
        true => session.written_first(recording.store())?,
        false => {
            note!(
                "run {number}: memory that it writes first is kept: no later turn had other inputs"
            );
            LeftOut::new()
        }
    };
    session.execute(How::Graph)?;
    let right = session.is_as_recorded()
        && session.reproduces(recording.store(), &turns, How::Graph)? == turns.len();
    if !right {
        note!("run {number}: memory that it writes first is kept: it matters for later turns");
        return Ok(());
    }
    let (mut smaller, mut sum) = (run, 0);
    let writer = Writer::create(folder)?;
    for (piece, memory) in smaller.memory.iter_mut().enumerate() {
        let mut parts = left_out.iter().filter(|(of, _)| *of == piece).peekable();
        let (Some(contents), Some(_)) = (memory.contents, parts.peek()) else {
            continue;
        };
        let mut held = recording.store().get(contents, memory.size)?;
        for (_, range) in parts {
            held[range.clone()].fill(0);
            sum += range.len() as u64;
        }
        memory.contents = Some(writer.store().put(&held)?);
    }
    reduce(&recording, &writer, &mut smaller)?;
    writer.replace_run(number, &smaller)?;
    if sum > 0 {
        note!(
            "run {number}: {} that it writes before it reads them are left out",
            bytes(sum)
        );
    }
    Ok(())
}

fn reduce(recording: &Recording, writer: &Writer, run: &mut Run) -> Result<(), Failure> {
    let capability = run.device.sm();
    for (number, image) in run.images.iter_mut().enumerate() {
        let kernels = run.kernels.iter();
        let own = kernels.filter(|kernel| kernel.image as usize == number);
        let names = own.map(|kernel| kernel.name.as_str()).collect();
        let bytes = image.read(recording.store())?;
        let reduced = reduced(&bytes, &names, capability).map_err(ReplayError::from)?;
        let Some(cubin) = reduced.filter(|_| image.reduced.is_none()) else {
            continue;
        };
        image.reduced = Some(Reduced {
            size: cubin.len() as u64,
            contents: writer.store().put(&cubin)?,
        });
    }
    Ok(())
}
