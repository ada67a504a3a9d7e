// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts probes before clauses and memory accesses.

use super::Wanted;
use super::operations::{
    atomic, begin, load, load_uniform, store, texel_load, texel_store, unseen,
};
use crate::ir::Program;
use crate::ir::micro::{Kind, MicroOp, OnMemory, Run};

pub(crate) fn insert(program: &mut Program, wanted: Wanted) {
    // Joined clauses go: analysers are told of each clause.
    program.clauses.retain(|clause| clause.parts.is_empty());
    let old = std::mem::take(&mut program.ops);
    for number in 0..program.clauses.len() {
        let start = program.ops.len();
        let ops = &old[program.clauses[number].ops.clone()];
        program.ops.extend(with_probes(ops, number, wanted));
        program.clauses[number].ops = start..program.ops.len();
        program.clauses[number].joined = None;
    }
}

/// The clause's micro-operations must be the program's last.
pub(crate) fn insert_into(program: &mut Program, number: usize, wanted: Wanted) {
    let Some(clause) = program.clauses.get(number) else {
        return;
    };
    let ops = with_probes(&program.ops[clause.ops.clone()], number, wanted);
    let start = program.ops.len();
    program.ops.extend(ops);
    program.clauses[number].ops = start..program.ops.len();
}

fn with_probes(ops: &[MicroOp], number: usize, wanted: Wanted) -> Vec<MicroOp> {
    let number = number as u32;
    let mut all = Vec::with_capacity(ops.len() + 2);
    if wanted.clauses {
        all.push(MicroOp {
            run: Run::Message(begin),
            d: 0,
            a: 0,
            b: 0,
            c: 0,
            e: 0,
            m: number,
            sources: 0,
            kind: Kind::Plain,
            part: 0,
        });
    }
    let mut ops = ops;
    while let [op, rest @ ..] = ops {
        if wanted.accesses
            && let Some(run) = probe(op)
        {
            all.push(MicroOp {
                run: Run::Message(run),
                m: number,
                kind: Kind::Plain,
                ..*op
            });
        }
        all.push(*op);
        // Those that one stands for reach no memory, and need no probes.
        let stands_for = match op.run {
            Run::Several(_) => rest.len().min(op.m as usize),
            _ => 0,
        };
        let (these, others) = rest.split_at(stands_for);
        all.extend_from_slice(these);
        ops = others;
    }
    all
}

fn probe(op: &MicroOp) -> Option<OnMemory> {
    Some(match op.kind {
        Kind::Load => load,
        Kind::LoadUniform => load_uniform,
        Kind::Store => store,
        Kind::Atomic => atomic::<4>,
        Kind::AtomicDouble => atomic::<8>,
        Kind::LoadTexel => texel_load,
        Kind::StoreTexel => texel_store,
        Kind::Texture => unseen,
        Kind::Plain
        | Kind::MultiplyAdd
        | Kind::MultiplyAddLow
        | Kind::Copy
        | Kind::Add
        | Kind::Above
        | Kind::Carry
        | Kind::Ahead
        | Kind::Word => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Clause;

    fn same(a: &MicroOp, b: &MicroOp) -> bool {
        format!("{a:?}") == format!("{b:?}")
    }

    fn several(_: &[MicroOp], _: &mut crate::rows::Rows) {}

    fn nothing(
        _: &MicroOp,
        _: &mut crate::rows::Rows,
        _: &mut crate::core::Core<'_>,
    ) -> Result<(), crate::core::Trouble> {
        Ok(())
    }

    fn op(run: Run, kind: Kind, d: u16, m: u32) -> MicroOp {
        MicroOp {
            run,
            d,
            a: 1,
            b: 2,
            c: 4,
            e: 0,
            m,
            sources: 2,
            kind,
            part: 0,
        }
    }

    fn program() -> Program {
        let mut program = Program::new(0x1000);
        program.number(0x1010);
        let plain = Run::Rows(crate::operations::loops::copy);
        program.ops = vec![
            op(Run::Several(several), Kind::Plain, 3, 2),
            op(plain, Kind::Plain, 3, 0),
            op(plain, Kind::Plain, 4, 0),
            op(Run::Message(nothing), Kind::Load, 5, 1),
            op(Run::Message(nothing), Kind::Store, 6, 1),
            op(plain, Kind::Plain, 7, 0),
        ];
        program.clauses[0] = Clause {
            ops: 0..4,
            ..Clause::pending(0x1000)
        };
        program.clauses[1] = Clause {
            ops: 4..6,
            ..Clause::pending(0x1010)
        };
        program
    }

    #[test]
    fn what_nobody_wants_to_know_changes_nothing() {
        let (before, mut after) = (program(), program());
        insert(&mut after, Wanted::default());
        assert_eq!(before.ops.len(), after.ops.len());
        assert!(before.ops.iter().zip(&after.ops).all(|(a, b)| same(a, b)));
        assert_eq!(after.clauses[1].ops, 4..6);
    }

    #[test]
    fn probes_stand_before_what_they_tell_of_and_nothing_else_changes() {
        let (before, mut after) = (program(), program());
        let wanted = Wanted {
            clauses: true,
            accesses: true,
            in_order: false,
        };
        insert(&mut after, wanted);
        assert_eq!(after.clauses[0].ops, 0..6);
        assert_eq!(after.clauses[1].ops, 6..10);
        let added = [0, 4, 6, 7];
        let kept: Vec<_> = (0..10).filter(|at| !added.contains(at)).collect();
        for (old, &new) in before.ops.iter().zip(&kept) {
            assert!(same(old, &after.ops[new]), "{new}");
        }
        assert_eq!(
            (after.ops[4].m, after.ops[7].m),
            (0, 1),
            "numbers of clauses"
        );
        assert_eq!(
            (after.ops[4].d, after.ops[7].d),
            (5, 6),
            "rows of the access"
        );
    }
}
