// SPDX-License-Identifier: MIT OR Apache-2.0
//! An instruction set for tests: clauses repeat a copy.

use std::any::Any;

use crate::FaultKind;
use crate::ir::micro::{Kind, MicroOp, Run};
use crate::ir::{Block, Code, Next, Program, Translate, Trap};
use crate::operations::loops::copy;

const BYTES: usize = 16;

#[derive(Debug)]
pub(crate) struct Copies;

/// At least one copy.
pub(crate) fn copies(count: u8) -> Vec<u8> {
    let mut clause = vec![0; BYTES];
    clause[0] = count;
    clause
}

/// The thread ends after it.
pub(crate) fn last(count: u8) -> Vec<u8> {
    let mut clause = copies(count);
    clause[1] = 1;
    clause
}

impl Translate for Copies {
    fn is(&self, other: &dyn Translate) -> bool {
        let other: &dyn Any = other;
        other.is::<Copies>()
    }

    fn messages(&self) -> &'static [&'static str] {
        &[]
    }

    fn alignment(&self) -> (u64, &'static str) {
        (BYTES as u64, "a clause must lie at a multiple of 16")
    }

    fn block(
        &self,
        program: &mut Program,
        address: u64,
        code: &mut dyn Code,
    ) -> Result<Block, Trap> {
        let mut bytes = [0; BYTES];
        code.read(address, &mut bytes)?;
        code.used(address, &bytes);
        if bytes[0] == 0 {
            return Err(Trap {
                kind: FaultKind::InvalidEncoding,
                text: "no copies".into(),
            });
        }
        let next = match bytes[1] {
            0 => Next::Clause(program.number(address + BYTES as u64)),
            _ => Next::End,
        };
        let op = MicroOp {
            run: Run::Rows(copy),
            d: 0,
            a: 1,
            b: 0,
            c: 0,
            e: 0,
            m: 0,
            sources: 1,
            kind: Kind::Copy,
            part: 0,
        };
        Ok(Block {
            ops: vec![op; bytes[0].into()],
            next,
            branch: None,
            barrier: false,
            fma: 0,
            add: 0,
            messages: Vec::new(),
            lane_cost: 0,
        })
    }
}
