// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs, plain, specialised and by tracks, end alike.
#![allow(clippy::unwrap_used)]

use fastrand::Rng;
use gpureplay_memory::{Bus, Ram};

use super::*;
use crate::testing::{Flat, Machine, NOWHERE, PAGES, UNIFORMS, Writer};
use crate::vectors;

#[test]
fn random_programs_do_the_same_when_specialised() {
    let mut space = Flat(Ram::new(PAGES + 16).unwrap(), 0);
    let table = space.0.allocate_contiguous(2).unwrap();
    space.1 = table;
    let out = space.0.allocate_contiguous(PAGES).unwrap();
    let mut random = Rng::with_seed(0x1234_5678_9abc_def1);
    let (mut before, mut after, mut ended, mut followed) = (0, 0, 0, 0);
    let (mut joined, mut ahead, mut skipped, mut sums) = (0, 0, 0, 0);
    for case in 0..600 {
        let mut plain = Program::new(16);
        let seed = random.u64(..);
        Writer::new(&mut plain, seed | 1, table, out).program();
        let uniforms: Vec<u32> = (0..UNIFORMS)
            .map(|at| random.u32(..) >> (at * 10))
            .collect();
        let mut fast = plain.clone();
        specialise(&mut fast, &uniforms);
        let count = |program: &Program| {
            (0..plain.clauses.len())
                .map(|at| own_ops(program, at).len())
                .sum::<usize>()
        };
        (before, after) = (before + count(&plain), after + count(&fast));
        joined += fast.clauses.len() - plain.clauses.len();
        let ops = &fast.ops;
        ahead += ops.iter().filter(|op| op.kind == Kind::Ahead).count();
        let done = |op: &&MicroOp| matches!(op.run, Run::Done(_));
        skipped += ops.iter().filter(done).count();
        let of_one = |ops: &&[MicroOp]| {
            matches!(ops[0].run, Run::Several(_)) && ops[1].d == ops[2].d && ops[0].m > 1
        };
        sums += ops.windows(3).filter(of_one).count();
        let mask = match case % 3 {
            0 => u64::MAX,
            1 => u64::from(random.u32(..)) << 16 | 1,
            _ => u64::from(random.u32(..)) << 32 | u64::from(random.u32(..)),
        };
        let mut machine = Machine::new();
        // Seen, recorded, followed twice, then with a missing page.
        for time in 0..5 {
            let bytes: Vec<u8> = (0..8192).map(|_| random.u32(..) as u8).collect();
            space.0.write(table, &bytes).unwrap();
            space.1 = if time < 4 { table } else { NOWHERE };
            let run = |machine: &mut Machine, program, by_tracks| {
                space.0.write(out, &[0x5a; PAGES * 4096]).unwrap();
                let (program, lanes) = ((program, &uniforms[..]), (mask, seed));
                let outcome = machine.outcome(program, &space, lanes, by_tracks);
                let mut memory = vec![0; PAGES * 4096];
                space.0.read(out, &mut memory).unwrap();
                (outcome, memory)
            };
            let results = [
                run(&mut Machine::new(), &plain, false),
                run(&mut machine, &fast, true),
            ];
            assert_eq!(results[0].0, results[1].0, "case {case}, time {time}");
            assert!(
                results[0].1 == results[1].1,
                "case {case}, time {time}: memory differs"
            );
            ended += u32::from(time == 0 && results[0].0.starts_with("Ok"));
        }
        followed += machine.followed;
    }
    assert!(followed > 150, "{followed} followed");
    assert!(ended > 150, "{ended} ended");
    assert!(
        joined > 150 && ahead > 100 && skipped > 50,
        "{joined} joined, {ahead} ahead, {skipped} skipped at once"
    );
    if vectors::accumulates() {
        assert!(sums > 50, "{sums} sums");
    }
    assert!(
        after * 10 < before * 9,
        "{before} micro-operations became {after}"
    );
}
