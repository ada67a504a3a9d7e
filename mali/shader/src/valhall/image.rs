// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images and textures by handles.

use gpureplay_shader::emit::Emit;
use gpureplay_shader::ir::micro::{Kind, OnMemory, Run};
use mali_isa::valhall::{
    ARRAY_ENABLE, DIMENSION, FETCH_COMPONENT, INTEGER_COORDINATES, LOD_MODE, REGISTER_FORMAT,
    REGISTER_TYPE, REGISTER_WIDTH, RESOURCE_INDEX, RESOURCE_TABLE, SHADOW, SHORT_OFFSET,
    TEXEL_OFFSET, VECTOR_SIZE, WIDE_INDICES, WRITE_MASK,
};

use super::{Translator, Trap};
use crate::image::{Dimension, RegisterFormat};
use crate::operations::image::AUTO;
use crate::operations::image::store_conversion;
use crate::operations::tables::{self, What};

impl Translator<'_> {
    pub(super) fn vector(&self) -> u32 {
        match self.ins.named(&VECTOR_SIZE) {
            Some("v2") => 1 << 8,
            Some("v3") => 2 << 8,
            Some("v4") => 3 << 8,
            _ => 0,
        }
    }

    pub(super) fn format(&self) -> Result<u32, Trap> {
        Ok(match self.ins.named(&REGISTER_FORMAT) {
            None | Some("auto") => AUTO,
            Some("f32") => RegisterFormat::F32 as u32,
            Some("f16") => RegisterFormat::F16 as u32,
            Some("s32") => RegisterFormat::I32 as u32,
            Some("s16") => RegisterFormat::I16 as u32,
            Some("u32") => RegisterFormat::U32 as u32,
            Some("u16") => RegisterFormat::U16 as u32,
            _ => return Err(self.trap("has elements whose type is not public")),
        })
    }

    fn handle(&mut self) -> Result<u16, Trap> {
        match (
            self.ins.value(&RESOURCE_TABLE),
            self.ins.value(&RESOURCE_INDEX),
        ) {
            (Some(table), Some(index)) => Ok(self.number((table << 24 | index) as u32)),
            _ => self.source(2),
        }
    }

    pub(super) fn texel_address(&mut self) -> Result<(), Trap> {
        let first = self.staging(3)?;
        let m = self.format()?;
        self.texel(tables::texel_address, first, m)
    }

    pub(super) fn load_texel(&mut self) -> Result<(), Trap> {
        let group = self.ins.staging().next();
        let first = group.ok_or_else(|| self.trap("loads nothing"))?.first;
        let m = self.format()? | self.vector();
        self.texel(tables::load_texel, first.into(), m)?;
        self.known_as(Kind::Texture);
        Ok(())
    }

    fn texel(&mut self, run: OnMemory, first: u16, m: u32) -> Result<(), Trap> {
        let [xy, z] = self.sources()?;
        let handle = self.handle()?;
        self.emit(Run::Message(run), first, [xy, z, handle, m as u16], m);
        Ok(())
    }

    pub(super) fn store_texel(&mut self) -> Result<(), Trap> {
        if self.format()? != AUTO {
            return Err(self.trap("names a type of elements, which no compiler does"));
        }
        let group = self.ins.staging().next();
        let group = group.ok_or_else(|| self.trap("stores nothing"))?;
        for register in group.first..group.first + group.count {
            self.reads(register);
        }
        let [low, high] = self.address(&SHORT_OFFSET)?;
        let (conversion, m) = (self.source(2)?, self.vector());
        let sources = [low, high, conversion, m as u16];
        self.emit(
            Run::Message(store_conversion),
            group.first.into(),
            sources,
            m,
        );
        self.known_as(Kind::StoreTexel);
        Ok(())
    }

    pub(super) fn texture(&mut self, what: What) -> Result<(), Trap> {
        let groups: Vec<_> = self.ins.staging().collect();
        let written = groups.iter().find(|group| group.written);
        let read = groups.iter().find(|group| !group.written);
        let (Some(written), Some(read)) = (written, read) else {
            return Err(self.trap("lacks registers"));
        };
        for register in read.first..read.first + read.count {
            self.reads(register);
        }
        let flag = |field| self.ins.value(field) == Some(1);
        if flag(&INTEGER_COORDINATES) {
            return Err(self.trap("gathers at integers, which is not translated"));
        }
        match self.ins.named(&REGISTER_TYPE) {
            // Mesa leaves the type to the format.
            Some("reserved") => {}
            _ => return Err(self.trap("names a type, which no compiler does")),
        }
        let mode = self.ins.named(&LOD_MODE);
        let lod = match mode {
            None | Some("zero" | "computed") => false,
            Some("explicit" | "computed_bias") => true,
            _ => return Err(self.trap("reads a gradient, which is not translated")),
        };
        let dimension = match self.ins.named(&DIMENSION) {
            Some("1d") => Dimension::One,
            Some("2d") => Dimension::Two,
            Some("3d") => Dimension::Three,
            _ => Dimension::Cube,
        };
        let component = self.ins.value(&FETCH_COMPONENT).unwrap_or(0) as u32;
        let mask = self.ins.value(&WRITE_MASK).unwrap_or(0) as u32;
        let request = tables::Request {
            what,
            dimension,
            array: flag(&ARRAY_ENABLE),
            offsets: flag(&TEXEL_OFFSET),
            shadow: flag(&SHADOW),
            lod,
            wide_handles: flag(&WIDE_INDICES),
            narrow_result: self.ins.named(&REGISTER_WIDTH) == Some("16"),
            component,
            mask,
        };
        let (first, count) = (u16::from(read.first), written.count);
        if request.registers() != read.count || request.results() != count {
            return Err(self.trap("has another number of registers"));
        }
        let [a, b] = self.pair(0)?;
        let to = u16::from(written.first);
        let run = Run::Message(tables::texture);
        self.emit(run, to, [a, b, first, 0], request.word());
        self.known_as(Kind::Texture);
        Ok(())
    }
}
