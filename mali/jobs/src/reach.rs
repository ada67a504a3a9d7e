// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers that depend on others.

use std::collections::BTreeSet;

use mali_facts::walk::Purpose;

use crate::walk::Job;

/// Buffers by address; overlapping ones are one.
#[derive(Clone, Debug, Default)]
pub struct Buffers(Vec<(u64, u64)>);

impl Buffers {
    /// Of ranges: first addresses and ends, ascending.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut out: Vec<(u64, u64)> = Vec::new();
        for (start, end) in ranges {
            match out.last_mut() {
                Some((_, last)) if start < *last => *last = end.max(*last),
                _ => out.push((start, end)),
            }
        }
        Self(out)
    }

    /// Buffer that holds an address.
    pub fn holder(&self, va: u64) -> Option<usize> {
        let next = self.0.partition_point(|(start, _)| *start <= va);
        let at = next.checked_sub(1)?;
        self.0.get(at).filter(|(_, end)| va < *end).map(|_| at)
    }
}

/// Buffers of a job: a pointer among uniforms may both read and write.
#[derive(Clone, Debug, Default)]
pub struct Touches {
    read: BTreeSet<usize>,
    written: BTreeSet<usize>,
}

impl Touches {
    /// Reach of a job.
    pub fn of(job: &Job, buffers: &Buffers) -> Self {
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
                // Threads' own memory carries nothing to another job.
                _ => {}
            }
        }
        Self { read, written }
    }
}

/// What depends on `from` after these jobs.
pub fn reached(from: BTreeSet<usize>, jobs: &[Touches]) -> BTreeSet<usize> {
    let mut out = from;
    for job in jobs {
        if !job.read.is_disjoint(&out) {
            out.extend(&job.written);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::Use;
    use mali_facts::Access;

    #[test]
    fn what_jobs_are_given_is_a_way_but_their_threads_memory_is_none() {
        let starts = [0x1000, 0x2000, 0x3000, 0x4000, 0x4000];
        let buffers = Buffers::new(starts.map(|start| (start, start + 0x1000)));
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
        let (first, second) = (job(&[0x1000, 0x2010], 0x4000), job(&[0x3000], 0x4000));
        let jobs = [first, second].map(|job| Touches::of(&job, &buffers));
        assert_eq!(reached([0].into(), &jobs), [0, 1].into());
    }
}
