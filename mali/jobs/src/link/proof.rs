// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that linking kept jobs and order.

use crate::walk::submissions;
use mali_drive::Verified;
use mali_facts::{Job, Memory, Profile, follow, job};

use crate::link::error::LinkError;
use crate::link::linked::{Linked, sound, written};
use crate::link::objects::{Pointer, Reach, reach};
use crate::link::survey::Survey;

#[derive(Debug, PartialEq, Eq)]
struct Invariants {
    kind: u64,
    lengths: Vec<u64>,
    bytes: Vec<u8>,
    outside: Vec<(u64, u64)>,
}

const PLACE: [&str; 5] = ["Barrier", "Index", "Dependency 1", "Dependency 2", "Next"];

fn picture(memory: &dyn Memory, job: &Job, reach: &Reach) -> Option<Invariants> {
    let header = PLACE
        .iter()
        .fold(job.header, |header, field| header.with(field, 0));
    let kind = u64::from(header.words.get(4).copied()?);
    let mut bytes = Vec::new();
    for object in &reach.objects {
        let mut part = vec![0; usize::try_from(object.length).ok()?];
        if !memory.read(object.address, &mut part) {
            return None;
        }
        if object.pointer == Pointer::Chain {
            part.get_mut(..job::PAYLOAD as usize)?.fill(0);
        }
        for other in &reach.objects {
            let (at, shift) = match other.pointer {
                Pointer::Job(offset) => (job.address.wrapping_add(offset), 0),
                Pointer::Word { at, shift } => (at, shift),
                Pointer::Chain | Pointer::Fixed => continue,
            };
            let at = usize::try_from(at.wrapping_sub(object.address)).ok();
            let Some(word) = at.and_then(|at| part.get_mut(at..at.checked_add(8)?)) else {
                continue;
            };
            let raw = u64::from_le_bytes((&*word).try_into().ok()?);
            let rest = raw.wrapping_sub(other.address << shift);
            word.copy_from_slice(&rest.to_le_bytes());
        }
        bytes.append(&mut part);
    }
    Some(Invariants {
        kind,
        lengths: reach.objects.iter().map(|object| object.length).collect(),
        bytes,
        outside: reach.outside.clone(),
    })
}

/// Also checks the barriers between former chains.
pub(crate) fn same_jobs(
    old: &Verified<'_>,
    survey: &Survey,
    linked: &Linked,
    profile: &'static Profile,
) -> Result<(), LinkError> {
    let written = written(&linked.bytes)?;
    let new = sound(&written)?;
    let different = |text: String| Err(LinkError::Different(text));
    // One chain at a time: all pictures together may be large.
    let pictures = |verified: &Verified<'_>| {
        let mut found: Vec<(u64, Job, u64)> = Vec::new();
        let mut chain = 0u64;
        submissions(verified, |submission| {
            let memory = submission.memory;
            for job in follow(memory, submission.head).jobs(memory) {
                let picture =
                    reach(memory, profile, &job).and_then(|reach| picture(memory, &job, &reach));
                found.push((chain, job, digest(&picture)));
            }
            chain += 1;
            Ok::<(), LinkError>(())
        })?;
        Ok::<_, LinkError>(found)
    };
    let (before, after) = (pictures(old)?, pictures(&new)?);
    if before.len() != after.len() {
        return different(format!("{} jobs instead of {}", after.len(), before.len()));
    }
    for ((old_chain, old, first), (chain, job, second)) in before.iter().zip(&after) {
        if first != second {
            return different(format!(
                "the job at {:#x} is not that at {:#x}",
                job.address, old.address
            ));
        }
        let place = usize::try_from(*old_chain)
            .ok()
            .and_then(|at| linked.places.get(at));
        if place.is_none_or(|place| u64::from(place.submission) != *chain) {
            return different(format!("the job at {:#x} is in another chain", job.address));
        }
        if place.is_some_and(|place| place.first > 0) && job.header.barrier() == 0 {
            return different(format!("the job at {:#x} waits for no other", job.address));
        }
    }
    if survey.chains.len() != linked.places.len() {
        return different("chains are missing".into());
    }
    Ok(())
}

fn digest(picture: &Option<Invariants>) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    match picture {
        None => 0u8.hash(&mut hasher),
        Some(picture) => {
            picture.kind.hash(&mut hasher);
            picture.lengths.hash(&mut hasher);
            picture.bytes.hash(&mut hasher);
            picture.outside.hash(&mut hasher);
        }
    }
    hasher.finish()
}
