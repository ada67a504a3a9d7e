// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that instructions name.

use mali_isa::{Destination, Part, Shader, StagingCount, Unit};

/// Bit mask. Where format or descriptor counts a message's staging registers, only the first is in it.
pub fn named(shader: &Shader) -> u64 {
    let mut all = 0u64;
    let mut named = |register: u8, count: u8| {
        for register in (register..64).take(count.into()) {
            all |= 1 << register;
        }
    };
    for placed in &shader.clauses {
        for tuple in &placed.clause.tuples {
            let width = if tuple.is_wide() { 2 } else { 1 };
            for register in tuple.ports.iter().flatten() {
                named(*register, width);
            }
            for Destination { register, part } in [tuple.fma_destination, tuple.add_destination]
                .into_iter()
                .flatten()
            {
                named(register, if part == Part::Pair { 2 } else { 1 });
            }
            for unit in [Unit::Fma, Unit::Add] {
                let staging = tuple.instruction(unit).op.info().staging;
                let count = staging.map(|staging| match staging.count {
                    StagingCount::Words(words) => words,
                    StagingCount::Format | StagingCount::Descriptor => 1,
                });
                if let Some(count) = count.filter(|count| *count > 0) {
                    named(placed.clause.header.staging_register, count);
                }
            }
        }
    }
    all
}
