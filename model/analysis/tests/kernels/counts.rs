// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts independent of the instruction set.

use std::collections::BTreeMap;

use gpureplay_analysis::report::Job;
use mali_isa::{Shader, Unit};

use crate::dump::Dump;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Normalised {
    pub(crate) threads: u64,
    /// Global and group memory: four words are four loads of one.
    pub(crate) loaded: u64,
    /// Bytes.
    pub(crate) stored: u64,
    /// Once per thread.
    pub(crate) barriers: u64,
    pub(crate) atomics: u64,
    /// Additions, multiplications, both in one, minima, maxima; per element.
    pub(crate) floats: u64,
}

pub(crate) fn normalised(job: &Job, dump: &Dump) -> Normalised {
    let mut all = Normalised {
        threads: job.totals.unwrap().threads,
        ..Normalised::default()
    };
    for (name, count) in executed(job, dump) {
        let bytes = |bits: &str| count * bits.parse::<u64>().unwrap() / 8;
        if let Some(bits) = name.strip_prefix("LOAD.i") {
            all.loaded += bytes(bits);
        } else if let Some(bits) = name.strip_prefix("STORE.i") {
            all.stored += bytes(bits);
        }
        match name {
            "BARRIER" => all.barriers += count,
            // The FMA unit's second half.
            "ATOM_CX" => {}
            "ACMPXCHG.i32" | "AXCHG.i32" => all.atomics += count,
            _ if name.starts_with("ATOM_C") => all.atomics += count,
            "FADD.f32" | "FMA.f32" | "FMAX.f32" | "FMIN.f32" => all.floats += count,
            _ => {}
        }
    }
    all
}

/// By lanes.
fn executed(job: &Job, dump: &Dump) -> BTreeMap<&'static str, u64> {
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
