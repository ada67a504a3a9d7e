// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which inputs can reach which outputs, by buffers.

use std::collections::BTreeSet;

use gpureplay_compile::{Capture, Found, Role};
use gpureplay_format::Recording;
use gpureplay_library::Verified;
use mali_jobs::reach::{Buffers, Touches, reached};

/// Inputs followed one by one; more are followed only together.
const FOLLOWED: usize = 16;

fn buffers(capture: &Capture) -> Buffers {
    // Sorted by address.
    let buffers = capture.buffers.iter();
    Buffers::new(buffers.map(|buffer| (buffer.va, buffer.va.saturating_add(buffer.size))))
}

fn places(tensor: &Found, buffers: &Buffers) -> BTreeSet<usize> {
    let pieces = tensor.layout.pieces.iter();
    pieces
        .filter_map(|piece| buffers.holder(piece.va))
        .collect()
}

fn reached_from(from: &[&Found], jobs: &[Touches], buffers: &Buffers) -> BTreeSet<usize> {
    let from = from.iter().flat_map(|tensor| places(tensor, buffers));
    reached(from.collect(), jobs)
}

/// Inputs that reach no output, and outputs without inputs. Nothing if jobs cannot be followed.
pub(crate) fn remarks(capture: &Capture, recording: &[u8], tensors: &[Found]) -> Vec<String> {
    let Ok(recording) = Recording::parse(recording) else {
        return Vec::new();
    };
    let verified = Verified::check(&recording).ok();
    let Some(report) = verified.and_then(|verified| verified.deep().ok()) else {
        return Vec::new();
    };
    let buffers = buffers(capture);
    let jobs: Vec<Touches> = report
        .jobs()
        .map(|job| Touches::of(job, &buffers))
        .collect();
    let of = |roles: &[Role]| -> Vec<&Found> {
        tensors.iter().filter(|t| roles.contains(&t.role)).collect()
    };
    let given = of(&[Role::Input, Role::State]);
    let results = of(&[Role::Output, Role::State]);
    let meets = |from: &BTreeSet<usize>, tensor: &Found| {
        let at = places(tensor, &buffers);
        at.is_empty() || !at.is_disjoint(from)
    };
    let mut out = Vec::new();
    if given.is_empty() || results.is_empty() {
        return out;
    }
    let all = reached_from(&given, &jobs, &buffers);
    for tensor in of(&[Role::Output]) {
        if !meets(&all, tensor) {
            out.push(format!(
                "output '{}' depends on no input: a replay gives the same answer for every input",
                tensor.name
            ));
        }
    }
    for tensor in of(&[Role::Input]).into_iter().take(FOLLOWED) {
        let from = reached_from(&[tensor], &jobs, &buffers);
        if !results.iter().any(|result| meets(&from, result)) {
            out.push(format!(
                "input '{}' has no effect on any output: if the app needs it, something between the jobs is not in the recording",
                tensor.name
            ));
        }
    }
    out
}
