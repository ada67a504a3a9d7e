// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often instructions are executed, by name, from the counts of clauses.

use std::collections::BTreeMap;

use mali_analysis::report::Job;
use mali_isa::{Shader, Unit};

use crate::dump::Dump;

/// Executions of each instruction by lanes.
pub(crate) fn executed(job: &Job, dump: &Dump) -> BTreeMap<&'static str, u64> {
    let start = job.shader.unwrap();
    let inside = |(address, bytes): &&(u64, Vec<u8>)| {
        (*address..*address + bytes.len() as u64).contains(&start)
    };
    let (address, bytes) = dump.buffers.iter().find(inside).unwrap();
    let shader = Shader::decode(&bytes[(start - address) as usize..]).unwrap();
    let mut counts = BTreeMap::new();
    for clause in &job.clauses {
        let offset = (clause.address - start) as u32;
        let placed = shader
            .clauses
            .iter()
            .find(|it| it.offset == offset)
            .unwrap();
        for tuple in &placed.clause.tuples {
            for unit in [Unit::Fma, Unit::Add] {
                let name = tuple.instruction(unit).op.info().name;
                *counts.entry(name).or_default() += clause.lanes;
            }
        }
    }
    counts
}
