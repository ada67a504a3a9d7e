// SPDX-License-Identifier: MIT OR Apache-2.0
//! 64-bit tuples on pairs of registers.

use gpureplay_shader::alu::integer;
use gpureplay_shader::emit::Emit;
use mali_isa::Mnemonic as M;
use mali_isa::{Operand, Part, Unit};

use super::{Translator, Trap};

impl Translator<'_> {
    /// `a * b + c` modulo 2^64.
    pub(super) fn wide_tuple(&mut self, zero: u16) -> Result<(), Trap> {
        self.unit = Unit::Fma;
        self.ins = self.tuple.fma;
        if self.ins.op.mnemonic() != M::ImadI64 {
            return Err(self.trap("is not a 64-bit operation"));
        }
        self.present()?;
        let (a, b, c) = (
            self.pair(0, zero)?,
            self.pair(1, zero)?,
            self.pair(2, zero)?,
        );
        let low = self.temporary()?;
        let mut high = self.temporary()?;
        map!(self, low, [a[0], b[0], c[0]], |a, b, c| integer::imad(
            a, b, c
        ));
        map!(self, high, [a[0], b[0], c[0]], |a, b, c| {
            ((u64::from(a) * u64::from(b) + u64::from(c)) >> 32) as u32
        });
        for (x, y) in [(a[0], b[1]), (a[1], b[0])] {
            if x != zero && y != zero {
                let sum = self.temporary()?;
                map!(self, sum, [x, y, high], |x, y, z| integer::imad(x, y, z));
                high = sum;
            }
        }
        if c[1] != zero {
            let sum = self.temporary()?;
            map!(self, sum, [c[1], high], |x, y| x.wrapping_add(y));
            high = sum;
        }
        match self.tuple.fma_destination {
            None => {}
            Some(to) if to.part == Part::Pair => {
                self.copy(low, to.register.into());
                self.copy(high, u16::from(to.register) + 1);
            }
            Some(_) => return Err(self.trap("writes less than a pair of registers")),
        }
        self.wide = [low, high];
        Ok(())
    }

    fn pair(&mut self, index: usize, zero: u16) -> Result<[u16; 2], Trap> {
        let source = self
            .ins
            .sources()
            .get(index)
            .copied()
            .ok_or_else(|| self.trap("lacks a source"))?;
        let operand = self.tuple.operand(Unit::Fma, source);
        match operand.ok_or_else(|| self.trap("reads a port that is not connected"))? {
            Operand::Pair(register) if register < 63 => {
                self.reads(register);
                self.reads(register + 1);
                Ok([register.into(), u16::from(register) + 1])
            }
            Operand::FauWide(fau) => Ok([self.fau(fau, false)?, self.fau(fau, true)?]),
            Operand::Zero => Ok([zero; 2]),
            Operand::T0 => Ok(self.wide),
            _ => Err(self.trap("reads what is no 64-bit operand")),
        }
    }
}
