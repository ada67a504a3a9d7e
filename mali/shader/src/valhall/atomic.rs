// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomic operations on words and pairs.

use gpureplay_shader::alu::pack::Atomic;
use gpureplay_shader::emit::Emit;
use gpureplay_shader::ir::micro::{Kind, Run};
use gpureplay_shader::operations::atomic::{self, RETURNS};
use mali_isa::valhall::{ATOMIC_1, ATOMIC_OPERATION, COMPARE, SHORT_OFFSET};

use super::{Translator, Trap};

impl Translator<'_> {
    /// The old value goes to the written group, if any.
    pub(super) fn atomic(&mut self, wide: bool) -> Result<(), Trap> {
        let words = if wide { 2 } else { 1 };
        let groups: Vec<_> = self.ins.staging().collect();
        let read = groups.iter().find(|group| !group.written);
        let read = read.ok_or_else(|| self.trap("lacks an operand"))?;
        let written = groups.iter().find(|group| group.written);
        let compares = self.ins.value(&COMPARE) == Some(1);
        let counts = (read.count, written.map_or(words, |group| group.count));
        if counts != (if compares { 2 * words } else { words }, words) {
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
            return self.combine(what, [first, first + 1], to, wide);
        }
        if what != Atomic::Exchange {
            return Err(self.trap("compares and does not exchange"));
        }
        // The result may replace the new value.
        let place = [self.temporary()?, self.temporary()?];
        let more = [self.temporary()?, self.temporary()?];
        let rows = [place[0], place[1], more[0], more[1]];
        for (row, register) in rows.into_iter().zip(first..first + u16::from(read.count)) {
            self.copy(register, row);
        }
        let [low, high] = self.address(&SHORT_OFFSET)?;
        let run = match wide {
            true => Run::Message(atomic::compare_double),
            false => Run::Message(atomic::compare_word),
        };
        self.emit(run, rows[0], [low, high, 0, 0], RETURNS);
        self.is_atomic(wide);
        for (to, row) in to
            .into_iter()
            .flat_map(|to| to..to + u16::from(words))
            .zip(rows)
        {
            self.copy(row, to);
        }
        Ok(())
    }

    pub(super) fn atomic_of_one(&mut self, wide: bool) -> Result<(), Trap> {
        let words = if wide { 2 } else { 1 };
        let group = self.ins.staging().next();
        let to = match group.map_or((0, 0), |group| (group.count, group.first)) {
            (0, _) => None,
            (count, first) if count == words => Some(first.into()),
            _ => return Err(self.trap("has another number of registers")),
        };
        let (what, operand) = match self.ins.named(&ATOMIC_1) {
            Some("ainc") => (Atomic::Add, [1, 0]),
            Some("adec") => (Atomic::Add, [u32::MAX; 2]),
            Some("aumax1") => (Atomic::UMax, [1, 0]),
            Some("asmax1") => (Atomic::SMax, [1, 0]),
            Some("aor1") => (Atomic::Or, [1, 0]),
            _ => return Err(self.trap("has an operation that is not public")),
        };
        let operand = operand.map(|word| self.number(word));
        self.combine(what, operand, to, wide)
    }

    fn combine(
        &mut self,
        what: Atomic,
        operand: [u16; 2],
        to: Option<u16>,
        wide: bool,
    ) -> Result<(), Trap> {
        let [low, high] = self.address(&SHORT_OFFSET)?;
        let m = atomic::number(what) | to.map_or(0, |_| RETURNS);
        let (run, upper) = match wide {
            true => (Run::Message(atomic::double), operand[1]),
            false => (Run::Message(atomic::word), 0),
        };
        let d = to.unwrap_or(operand[0]);
        self.emit(run, d, [low, high, operand[0], upper], m);
        self.is_atomic(wide);
        Ok(())
    }

    fn is_atomic(&mut self, wide: bool) {
        self.known_as(match wide {
            true => Kind::AtomicDouble,
            false => Kind::Atomic,
        });
    }
}
