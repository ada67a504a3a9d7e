// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which bytes of the dumped code the shaders can reach.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use mali_facts::{Draw, Job, JobType, clause_address};
use mali_isa::{DecodeError, Shader, ShaderError};

use crate::{Chain, Contents};

/// What keeps a shader from being decoded.
#[derive(Debug)]
enum CodeError {
    /// A clause is invalid.
    Decode,
    /// The code is not in the dump.
    Missing,
}

impl From<DecodeError> for CodeError {
    fn from(_: DecodeError) -> Self {
        CodeError::Decode
    }
}

/// Address of the first clause of a compute job's shader.
pub(crate) fn shader(contents: &Contents, job: &Job) -> Option<u64> {
    let state = Draw::of(contents, job)?.renderer_state(contents)?;
    Some(clause_address(state.shader()))
}

/// Words of code that are looked at for all shaders, those that several share for each of them: 64 MiB.
const MAX_WORDS: u64 = 1 << 22;

/// Address ranges of all clauses that the chains' shaders can reach.
///
/// `None` when a shader does not decode, is not in the dump, or jumps to computed addresses, or all together are too long: then any byte may matter.
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
