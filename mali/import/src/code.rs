// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dumped code that shaders can reach.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use mali_facts::{Draw, Job, JobType, clause_address};
use mali_isa::{DecodeError, Shader, ShaderError};

use crate::{Chain, Contents};

#[derive(Debug)]
enum CodeError {
    Decode,
    Missing,
}

impl From<DecodeError> for CodeError {
    fn from(_: DecodeError) -> Self {
        CodeError::Decode
    }
}

pub(crate) fn shader(contents: &Contents, job: &Job) -> Option<u64> {
    let state = Draw::of(contents, job)?.renderer_state(contents)?;
    Some(clause_address(state.shader()))
}

/// Words for all shaders, shared ones counted for each: 64 MiB.
const MAX_WORDS: u64 = 1 << 22;

/// `None`: a shader does not decode, is lost, jumps to computed addresses, or all are too long. Then any byte may
/// matter.
pub(crate) fn reachable(contents: &Contents, chains: &[Chain]) -> Option<Vec<Range<u64>>> {
    let jobs = chains.iter().flat_map(|chain| &chain.jobs);
    let compute = jobs.filter(|job| job.job_type() == Some(JobType::Compute));
    let shaders = compute
        .map(|job| shader(contents, job))
        .collect::<Option<BTreeSet<u64>>>()?;
    let mut clauses: BTreeMap<u64, u64> = BTreeMap::new();
    let mut words = 0;
    for start in shaders {
        let decoded: Result<Shader, ShaderError<CodeError>> = Shader::decode_with(|offset| {
            let mut word = [0; 16];
            words += 1;
            if words > MAX_WORDS {
                return Err(CodeError::Missing);
            }
            let va = start.checked_add(offset.into()).ok_or(CodeError::Missing)?;
            contents.read(va, &mut word).ok_or(CodeError::Missing)?;
            Ok(word)
        });
        let decoded = decoded.ok()?;
        if decoded.dynamic {
            return None;
        }
        for placed in &decoded.clauses {
            let va = start + u64::from(placed.offset);
            let end = clauses.entry(va).or_default();
            *end = (*end).max(va + u64::from(placed.size));
        }
    }
    Some(clauses.into_iter().map(|(start, end)| start..end).collect())
}
