// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomic operations on words of 32 bits.

use mali_valhall::{ATOMIC_1, ATOMIC_OPERATION, COMPARE, SHORT_OFFSET};

use super::Translator;
use crate::alu::pack::Atomic;
use crate::ir::micro::{Kind, Run};
use crate::operations::atomic::{self, RETURNS};
use crate::translate::Trap;

impl Translator<'_> {
    /// An operation with the word in a register. The old value goes to the group that is written, if there is one.
    pub(super) fn atomic(&mut self) -> Result<(), Trap> {
        let groups: Vec<_> = self.ins.staging().collect();
        let read = groups.iter().find(|group| !group.written);
        let read = read.ok_or_else(|| self.trap("lacks an operand"))?;
        let written = groups.iter().find(|group| group.written);
        let compares = self.ins.value(&COMPARE) == Some(1);
        let counts = (read.count, written.map_or(1, |group| group.count));
        if counts != (if compares { 2 } else { 1 }, 1) {
            return Err(self.trap("has another number of registers"));
        }
        let to = written.map(|group| u16::from(group.first));
        let first = u16::from(read.first);
        for register in read.first..read.first + read.count {
            self.reads(register);
        }
        let what = match self.ins.named(&ATOMIC_OPERATION) {
            Some("aadd") => Atomic::Add,
            Some("asmin") => Atomic::SMin,
            Some("asmax") => Atomic::SMax,
            Some("aumin") => Atomic::UMin,
            Some("aumax") => Atomic::UMax,
            Some("aand") => Atomic::And,
            Some("aor") => Atomic::Or,
            Some("axor") => Atomic::Xor,
            Some("axchg") => Atomic::Exchange,
            _ => return Err(self.trap("has an operation that is not public")),
        };
        if !compares {
            return self.word_at(what, first, to);
        }
        if what != Atomic::Exchange {
            return Err(self.trap("compares and does not exchange"));
        }
        // The new value and the expected one, where the result may take the place of the first.
        let place = [self.temporary()?, self.temporary()?];
        self.copy(first, place[0]);
        self.copy(first + 1, place[1]);
        let [low, high] = self.address(&SHORT_OFFSET)?;
        let run = Run::Message(atomic::compare_word);
        self.emit(run, place[0], [low, high, 0, 0], RETURNS, 4, Kind::Atomic);
        if let Some(to) = to {
            self.copy(place[0], to);
        }
        Ok(())
    }

    /// An operation that has its own operand.
    pub(super) fn atomic_of_one(&mut self) -> Result<(), Trap> {
        let group = self.ins.staging().next();
        let to = match group.map_or((0, 0), |group| (group.count, group.first)) {
            (0, _) => None,
            (1, first) => Some(first.into()),
            _ => return Err(self.trap("has another number of registers")),
        };
        let (what, operand) = match self.ins.named(&ATOMIC_1) {
            Some("ainc") => (Atomic::Add, 1),
            Some("adec") => (Atomic::Add, u32::MAX),
            Some("aumax1") => (Atomic::UMax, 1),
            Some("asmax1") => (Atomic::SMax, 1),
            Some("aor1") => (Atomic::Or, 1),
            _ => return Err(self.trap("has an operation that is not public")),
        };
        let operand = self.number(operand);
        self.word_at(what, operand, to)
    }

    fn word_at(&mut self, what: Atomic, operand: u16, to: Option<u16>) -> Result<(), Trap> {
        let [low, high] = self.address(&SHORT_OFFSET)?;
        let m = atomic::number(what) | to.map_or(0, |_| RETURNS);
        let (run, d) = (Run::Message(atomic::word), to.unwrap_or(operand));
        self.emit(run, d, [low, high, operand, 0], m, 4, Kind::Atomic);
        Ok(())
    }
}
