// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomic operations.
//!
//! `ATOM_C` (FMA) holds operation and argument, `ATOM_CX` in the same tuple does the access. `ATOM_POST` would tell
//! lanes that shared an access their old values; here they access singly.

use gpureplay_shader::alu::pack::Atomic;
use gpureplay_shader::emit::Emit;
use gpureplay_shader::ir::micro::{Kind, Run};
use gpureplay_shader::ir::special;
use gpureplay_shader::operations::atomic::{self, RETURNS};
use mali_isa::Atomic as Name;
use mali_isa::Segment;

use super::{Side, Translator, Trap};

fn operation(name: Name) -> (Atomic, Option<u32>) {
    match name {
        Name::Aadd | Name::Aadds | Name::Aaddu => (Atomic::Add, None),
        Name::Asmin => (Atomic::SMin, None),
        Name::Asmax => (Atomic::SMax, None),
        Name::Aumin => (Atomic::UMin, None),
        Name::Aumax => (Atomic::UMax, None),
        Name::Aand => (Atomic::And, None),
        Name::Aor => (Atomic::Or, None),
        Name::Axor => (Atomic::Xor, None),
        Name::Ainc => (Atomic::Add, Some(1)),
        Name::Adec => (Atomic::Add, Some(u32::MAX)),
        Name::Aumax1 => (Atomic::UMax, Some(1)),
        Name::Asmax1 => (Atomic::SMax, Some(1)),
        Name::Aor1 => (Atomic::Or, Some(1)),
    }
}

impl Translator<'_> {
    pub(super) fn atomic(&mut self, wide: bool, returns: bool) -> Result<(), Trap> {
        // Perhaps the previous tuple's result, still valid.
        let argument = Some(self.source(2)?);
        self.side = Side::Atomic {
            op: self.ins.atomic(),
            argument,
            returns,
            wide,
        };
        Ok(())
    }

    pub(super) fn atomic_of_one(&mut self, wide: bool, returns: bool) -> Result<(), Trap> {
        self.side = Side::Atomic {
            op: self.ins.atomic(),
            argument: None,
            returns,
            wide,
        };
        Ok(())
    }

    pub(super) fn exchange(&mut self, wide: bool) -> Result<(), Trap> {
        let staging = self.staged(if wide { 2 } else { 1 })?;
        let (low, high) = self.atomic_address()?;
        let m = atomic::number(Atomic::Exchange) | RETURNS;
        let run = if wide { atomic::double } else { atomic::word };
        let second = if wide { staging + 1 } else { staging };
        self.emit(Run::Message(run), staging, [low, high, staging, second], m);
        self.is_atomic(wide);
        Ok(())
    }

    pub(super) fn compare_exchange(&mut self, wide: bool, returns: bool) -> Result<(), Trap> {
        let staging = self.staged(if wide { 4 } else { 2 })?;
        let (low, high) = self.atomic_address()?;
        let m = if returns { RETURNS } else { 0 };
        let run = if wide {
            atomic::compare_double
        } else {
            atomic::compare_word
        };
        self.emit(Run::Message(run), staging, [low, high, 0, 0], m);
        self.is_atomic(wide);
        Ok(())
    }

    pub(super) fn staged(&mut self, count: u8) -> Result<u16, Trap> {
        let first = self.staging(count.into())?;
        for register in first..first + u16::from(count) {
            self.reads(register as u8);
        }
        Ok(first)
    }

    fn atomic_address(&mut self) -> Result<(u16, u16), Trap> {
        let (low, high) = (self.source(0)?, self.source(1)?);
        match self.ins.segment() {
            Segment::Wls => self.based(low, special::WORKGROUP_LOW, special::WORKGROUP_HIGH),
            _ => Ok((low, high)),
        }
    }

    pub(super) fn atomic_access(&mut self) -> Result<(), Trap> {
        let Side::Atomic {
            op,
            argument,
            returns,
            wide,
        } = self.side
        else {
            return Err(self.trap("needs ATOM_C in the FMA unit of its tuple"));
        };
        let (low, high) = (self.source(0)?, self.source(1)?);
        let staging = self.staging(if wide { 2 } else { 1 })?;
        let (what, own) = operation(op);
        let argument = match (argument, own) {
            (_, Some(value)) => self.number(value),
            (Some(row), None) => row,
            (None, None) => return Err(self.trap("lacks an argument")),
        };
        let m = atomic::number(what) | if returns { RETURNS } else { 0 };
        if !wide {
            self.emit(
                Run::Message(atomic::word),
                staging,
                [low, high, argument, 0],
                m,
            );
            self.is_atomic(wide);
            return Ok(());
        }
        // No compiler emits 64-bit arguments; the ADD half's third source, which repeats a 32-bit argument, is
        // taken for the high word.
        let upper = match (op, own) {
            (_, Some(u32::MAX)) => self.number(u32::MAX),
            (Name::Aaddu, _) | (_, Some(_)) => self.number(0),
            (Name::Aadds, _) => {
                let sign = self.temporary()?;
                map!(self, sign, [argument], |x| ((x as i32) >> 31) as u32);
                sign
            }
            _ => self.source(2)?,
        };
        self.emit(
            Run::Message(atomic::double),
            staging,
            [low, high, argument, upper],
            m,
        );
        self.is_atomic(wide);
        Ok(())
    }

    fn is_atomic(&mut self, wide: bool) {
        self.known_as(if wide {
            Kind::AtomicDouble
        } else {
            Kind::Atomic
        });
    }
}
