// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads, stores and their addresses.

use gpureplay_shader::emit::Emit;
use gpureplay_shader::emit::common::Common;
use gpureplay_shader::ir::micro::{Kind, OnMemory};
use gpureplay_shader::ir::special;
use gpureplay_shader::operations::memory::load_of;
use gpureplay_shader::operations::uniform::load_uniform;
use mali_isa::{Extend, Lanes, Segment, Unit};

use super::{Side, Translator, Trap};

impl Translator<'_> {
    pub(super) fn staging(&self, count: u32) -> Result<u16, Trap> {
        let first = self.clause.header.staging_register;
        if u32::from(first) + count > 64 {
            return Err(self.trap("needs staging registers past r63"));
        }
        Ok(first.into())
    }

    pub(super) fn load(&mut self, bytes: u32) -> Result<(), Trap> {
        let staging = self.staging(bytes.div_ceil(4))?;
        let (a, b) = (self.source(0)?, self.source(1)?);
        if self.ins.segment() == Segment::Ubo {
            let run = load_uniform(bytes);
            return self.load_from(run, Kind::LoadUniform, bytes, staging, [a, b]);
        }
        let (low, high) = self.address(a, b)?;
        self.load_from(load_of(bytes), Kind::Load, bytes, staging, [low, high])
    }

    pub(super) fn store(&mut self, bytes: u32) -> Result<(), Trap> {
        let staging = self.staging(bytes.div_ceil(4))?;
        let (a, b) = (self.source(0)?, self.source(1)?);
        if self.ins.segment() == Segment::Ubo {
            return Err(self.trap("stores to a uniform buffer"));
        }
        let (low, high) = self.address(a, b)?;
        self.stores(staging, [low, high], bytes);
        Ok(())
    }

    fn address(&mut self, a: u16, b: u16) -> Result<(u16, u16), Trap> {
        let (low, high) = match (self.side, self.ins.segment()) {
            // SHADDXL began the address.
            (Side::Address { .. }, Segment::None | Segment::Wls) => {
                let high = self.add_high(a, b)?;
                (self.stage, high)
            }
            _ => (a, b),
        };
        match self.ins.segment() {
            Segment::None | Segment::Stream => Ok((low, high)),
            Segment::Wls => self.based(low, special::WORKGROUP_LOW, special::WORKGROUP_HIGH),
            Segment::Tl => self.based(low, special::THREAD_LOW, special::THREAD_HIGH),
            _ => Err(self.trap("has a segment that compute shaders do not have")),
        }
    }

    fn load_from(
        &mut self,
        run: OnMemory,
        kind: Kind,
        bytes: u32,
        staging: u16,
        [low, high]: [u16; 2],
    ) -> Result<(), Trap> {
        let lanes = self.ins.lane_destination();
        let signed = self.ins.extend() == Extend::Sext;
        let part = match (bytes, lanes) {
            (1, Lanes::B1) => Some((8, 0xff)),
            (1, Lanes::B2) => Some((16, 0xff)),
            (1, Lanes::B3) => Some((24, 0xff)),
            (1, Lanes::H0) => Some((0, 0xffff)),
            (1 | 2, Lanes::H1) => Some((16, 0xffff)),
            _ => None,
        };
        if let Some((at, mask)) = part {
            let loaded = self.temporary()?;
            self.moves(run, kind, loaded, [low, high], bytes);
            let loaded = if bytes == 1 && mask == 0xffff && signed {
                self.part(loaded, gpureplay_shader::alu::lanes::Part::B0, true)?
            } else {
                loaded
            };
            self.reads(staging as u8);
            self.merge(staging, loaded, at, mask);
            return Ok(());
        }
        self.moves(run, kind, staging, [low, high], bytes);
        if bytes < 4 && signed && matches!(lanes, Lanes::W0 | Lanes::D0) {
            self.extend_sign(staging, bytes);
        }
        if lanes == Lanes::D0 {
            let high = self.staging(2)? + 1;
            if signed {
                map!(self, high, [staging], |x| ((x as i32) >> 31) as u32);
            } else {
                let zero = self.number(0);
                self.copy(zero, high);
            }
        }
        Ok(())
    }

    pub(super) fn based(
        &mut self,
        offset: u16,
        base_low: u16,
        base_high: u16,
    ) -> Result<(u16, u16), Trap> {
        let (low, high) = (self.temporary()?, self.temporary()?);
        map!(self, low, [offset, base_low], |offset, base| offset
            .wrapping_add(base));
        map!(self, high, [low, base_low, base_high], |low, base, high| {
            high.wrapping_add(u32::from(low < base))
        });
        Ok((low, high))
    }

    /// Address of an offset in a segment: FMA unit low, ADD unit high word. Allocations do not cross a multiple of 4
    /// GiB: no carry.
    pub(super) fn segment(&mut self, subtracts: bool) -> Result<(), Trap> {
        let a = self.source(0)?;
        let low = self.unit == Unit::Fma;
        let base = match (self.ins.segment(), low) {
            (Segment::Wls, true) => special::WORKGROUP_LOW,
            (Segment::Wls, false) => special::WORKGROUP_HIGH,
            (Segment::Tl, true) => special::THREAD_LOW,
            (Segment::Tl, false) => special::THREAD_HIGH,
            _ => return Err(self.trap("names a segment that has no base")),
        };
        let d = self.dest;
        // A null pointer has two zero words; the FMA half's operand is at the ADD half's port.
        match (subtracts, self.ins.preserve_null()) {
            (false, false) => map!(self, d, [a, base], |a, base| a.wrapping_add(base)),
            (true, false) => map!(self, d, [a, base], |a, base| a.wrapping_sub(base)),
            (false, true) => {
                let whole = self.null_test(a, low)?;
                map!(self, d, [a, base, whole], |a, base, any| if any == 0 {
                    0
                } else {
                    a.wrapping_add(base)
                });
            }
            (true, true) => {
                let whole = self.null_test(a, low)?;
                map!(self, d, [a, base, whole], |a, base, any| if any == 0 {
                    0
                } else {
                    a.wrapping_sub(base)
                });
            }
        }
        Ok(())
    }

    fn null_test(&mut self, a: u16, low: bool) -> Result<u16, Trap> {
        if low {
            // The register may change before the ADD half.
            let kept = self.temporary()?;
            self.copy(a, kept);
            self.side = Side::Segment(kept);
            return Ok(kept);
        }
        match self.side {
            Side::Segment(offset) => {
                let whole = self.temporary()?;
                map!(self, whole, [a, offset], |a, b| a | b);
                Ok(whole)
            }
            _ => Ok(a),
        }
    }
}
