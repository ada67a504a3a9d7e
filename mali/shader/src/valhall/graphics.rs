// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vertex and fragment instructions; compute shaders fault on them.

use gpureplay_shader::emit::Emit;
use gpureplay_shader::ir::micro::Run;
use mali_isa::valhall::{
    BUFFER_INDEX, INDEX, RESOURCE_INDEX, RESOURCE_TABLE, SAMPLE_MODE, SOURCE_FORMAT, TABLE, TARGET,
};

use super::{Translator, Trap};
use crate::operations::graphics as units;

/// Vertex packets' table, in instructions.
const PACKETS: i64 = 13;

impl Translator<'_> {
    fn first(&self) -> Result<u16, Trap> {
        let group = self.ins.staging().next();
        let group = group.ok_or_else(|| self.trap("lacks registers"))?;
        Ok(group.first.into())
    }

    pub(super) fn load_attribute(&mut self) -> Result<(), Trap> {
        let handle = self.named([&RESOURCE_TABLE, &RESOURCE_INDEX])?;
        let ([vertex, instance], first) = (self.sources()?, self.first()?);
        let m = self.format()? | self.vector();
        let run = Run::Message(units::load_attribute);
        self.emit(run, first, [vertex, instance, handle, 0], m);
        Ok(())
    }

    pub(super) fn packet_address(&mut self) -> Result<(), Trap> {
        let place = [&TABLE, &INDEX].map(|field| self.ins.value(field));
        if place != [Some(PACKETS), Some(0)] {
            return Err(self.trap("names a buffer other than vertex packets"));
        }
        let (vertex, first) = (self.source(0)?, self.staging(2)?);
        let run = Run::Message(units::packet_address);
        self.emit(run, first, [vertex, 0, 0, 0], 0);
        Ok(())
    }

    pub(super) fn varying(&mut self) -> Result<(), Trap> {
        self.at_centre()?;
        let handle = self.named([&TABLE, &INDEX])?;
        let first = self.first()?;
        let m = self.format()? | self.vector();
        self.emit(Run::Message(units::varying), first, [handle, 0, 0, 0], m);
        Ok(())
    }

    pub(super) fn packet_varying(&mut self) -> Result<(), Trap> {
        self.at_centre()?;
        if self.ins.named(&SOURCE_FORMAT) != Some("src_flat32") {
            return Err(self.trap("interpolates, which is not translated"));
        }
        let offset = self.ins.value(&BUFFER_INDEX).unwrap_or(0);
        let (offset, first) = (self.number(offset as u32), self.first()?);
        let m = self.vector();
        let run = Run::Message(units::packet_varying);
        self.emit(run, first, [offset, 0, 0, 0], m);
        Ok(())
    }

    pub(super) fn alpha_test(&mut self) -> Result<(), Trap> {
        let (coverage, first) = (self.source(0)?, self.staging(1)?);
        let run = Run::Message(units::alpha_test);
        self.emit(run, first, [coverage, 0, 0, 0], 0);
        Ok(())
    }

    pub(super) fn blend(&mut self) -> Result<(), Trap> {
        if self.ins.value(&TARGET) != Some(0) {
            return Err(self.trap("names another render target than 0"));
        }
        let group = self.ins.staging().next();
        let group = group.ok_or_else(|| self.trap("lacks a colour"))?;
        for register in group.first..group.first + group.count {
            self.reads(register);
        }
        let ([low, high], coverage) = (self.pair(0)?, self.source(2)?);
        let m = self.format()? | units::TYPED;
        let run = Run::Message(units::blend);
        self.emit(run, group.first.into(), [coverage, low, high, 0], m);
        Ok(())
    }

    fn named(&mut self, fields: [&'static mali_isa::valhall::Field; 2]) -> Result<u16, Trap> {
        let [Some(table), Some(index)] = fields.map(|field| self.ins.value(field)) else {
            return Err(self.trap("lacks a number of a table"));
        };
        Ok(self.number((table << 24 | index) as u32))
    }

    fn at_centre(&self) -> Result<(), Trap> {
        match self.ins.named(&SAMPLE_MODE) {
            Some("center") => Ok(()),
            _ => Err(self.trap("looks elsewhere than at the pixel's centre")),
        }
    }
}
