// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which inputs of a new recording can reach which outputs, by the buffers that jobs are given: what cannot is said.

use std::collections::BTreeSet;

use gpureplay_compile::{Capture, Found, Role};
use gpureplay_core::Limits;
use gpureplay_format::Recording;
use mali_drive::verify;
use mali_facts::walk::Purpose;
use mali_jobs::walk::{Job, check};

/// Inputs that are followed one by one; more are followed together.
const FOLLOWED: usize = 16;

/// The driver's buffers; those that overlap, since one took the other's place, are one.
struct Buffers(Vec<(u64, u64)>);

impl Buffers {
    fn of(capture: &Capture) -> Self {
        let mut out: Vec<(u64, u64)> = Vec::new();
        // Sorted by address.
        for buffer in &capture.buffers {
            let end = buffer.va.saturating_add(buffer.size);
            match out.last_mut() {
                Some((_, last)) if buffer.va < *last => *last = end.max(*last),
                _ => out.push((buffer.va, end)),
            }
        }
        Self(out)
    }

    /// The buffer that holds an address.
    fn holder(&self, va: u64) -> Option<usize> {
        let next = self.0.partition_point(|(start, _)| *start <= va);
        let at = next.checked_sub(1)?;
        self.0.get(at).filter(|(_, end)| va < *end).map(|_| at)
    }
}

/// What a job may read and write, in buffers: a pointer among its uniforms may be used for both.
struct Touches {
    read: BTreeSet<usize>,
    written: BTreeSet<usize>,
}

impl Touches {
    fn of(job: &Job, buffers: &Buffers) -> Self {
        let at = |va: &u64| buffers.holder(*va);
        let pointers: BTreeSet<usize> = job.pointers.iter().filter_map(at).collect();
        let (mut read, mut written) = (pointers.clone(), pointers);
        for used in &job.uses {
            let Some(buffer) = buffers.holder(used.address) else {
                continue;
            };
            match used.purpose {
                Purpose::PushUniforms | Purpose::UniformBuffer => {
                    read.insert(buffer);
                }
                Purpose::AttributeBuffer | Purpose::Texels | Purpose::Value => {
                    read.insert(buffer);
                    written.insert(buffer);
                }
                // Threads' own memory is no way from one job to another one.
                _ => {}
            }
        }
        Self { read, written }
    }
}

/// What is reached from these tensors.
fn reached(from: &[&Found], jobs: &[Touches], buffers: &Buffers) -> BTreeSet<usize> {
    let mut out: BTreeSet<usize> = from.iter().flat_map(|t| places(t, buffers)).collect();
    for job in jobs {
        if !job.read.is_disjoint(&out) {
            out.extend(&job.written);
        }
    }
    out
}

fn places(tensor: &Found, buffers: &Buffers) -> BTreeSet<usize> {
    let pieces = tensor.layout.pieces.iter();
    pieces
        .filter_map(|piece| buffers.holder(piece.va))
        .collect()
}

/// What to say of inputs that can reach no output, and of outputs that no input can reach. Nothing if the jobs cannot be followed.
pub(crate) fn remarks(capture: &Capture, recording: &[u8], tensors: &[Found]) -> Vec<String> {
    let Ok(recording) = Recording::parse(recording) else {
        return Vec::new();
    };
    let verified = verify(&recording, &Limits::DEFAULT).ok();
    let Some(report) = verified.and_then(|verified| check(&verified).ok()) else {
        return Vec::new();
    };
    let buffers = Buffers::of(capture);
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
    let all = reached(&given, &jobs, &buffers);
    for tensor in of(&[Role::Output]) {
        if !meets(&all, tensor) {
            out.push(format!(
                "output '{}' depends on no input: a replay answers the same whatever it is given",
                tensor.name
            ));
        }
    }
    for tensor in of(&[Role::Input]).into_iter().take(FOLLOWED) {
        let from = reached(&[tensor], &jobs, &buffers);
        if !results.iter().any(|result| meets(&from, result)) {
            out.push(format!(
                "input '{}' has no effect on any output: if the app needs it, something between the jobs is not in the recording",
                tensor.name
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpureplay_compile::capture::Buffer;
    use mali_facts::Access;
    use mali_jobs::walk::Use;

    #[test]
    fn what_jobs_are_given_is_a_way_but_their_threads_memory_is_none() {
        let mut capture = Capture::default();
        let buffer = |va: u64| Buffer { va, size: 0x1000 };
        // The last one took another one's place.
        capture.buffers = vec![
            buffer(0x1000),
            buffer(0x2000),
            buffer(0x3000),
            buffer(0x4000),
            buffer(0x4000),
        ];
        let buffers = Buffers::of(&capture);
        assert_eq!(buffers.0.len(), 4);
        assert_eq!(buffers.holder(0x2fff), Some(1));
        assert_eq!(
            (buffers.holder(0xfff), buffers.holder(0x5000)),
            (None, None)
        );
        let job = |pointers: &[u64], storage: u64| Job {
            address: 0,
            kind: "compute",
            descriptors: 0,
            uses: vec![Use {
                purpose: Purpose::ThreadStorage,
                address: storage,
                length: None,
                access: Access::Write,
            }],
            pointers: pointers.to_vec(),
        };
        let touches = |job: &Job| Touches::of(job, &buffers);
        let (first, second) = (job(&[0x1000, 0x2010], 0x4000), job(&[0x3000], 0x4000));
        let jobs = [touches(&first), touches(&second)];
        let mut known: BTreeSet<usize> = [0].into();
        for job in &jobs {
            if !job.read.is_disjoint(&known) {
                known.extend(&job.written);
            }
        }
        assert_eq!(known, [0, 1].into());
    }
}
