// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images, textures, clocks.

use gpureplay_shader::emit::Emit;
use gpureplay_shader::ir::micro::{Kind, OnMemory, Run};
use mali_isa::{IndexFormat, RegisterFormat as Format, VectorSize};

use super::{Translator, Trap};
use crate::image::RegisterFormat;
use crate::operations::image as units;
use crate::operations::texture;

impl Translator<'_> {
    pub(super) fn texel_address(&mut self) -> Result<(), Trap> {
        let m = self.format();
        self.texel(units::texel_address, 3, m, Kind::Plain)
    }

    pub(super) fn texture_address(&mut self) -> Result<(), Trap> {
        if self.ins.index_format() != IndexFormat::U16 {
            return Err(self.trap("has 32-bit coordinates, whose order is not known"));
        }
        let index = match self.ins.immediate("texture_index") {
            Some(index) => self.number(index.into()),
            None => self.source(2)?,
        };
        let staging = self.staging(3)?;
        let sources = [self.source(0)?, self.source(1)?, index, 0];
        let run = Run::Message(units::texture_address);
        self.emit(run, staging, sources, units::AUTO);
        Ok(())
    }

    pub(super) fn load_texel(&mut self) -> Result<(), Trap> {
        let m = self.format() | self.vector();
        self.texel(units::load_texel, 1, m, Kind::Texture)
    }

    pub(super) fn load_conversion(&mut self) -> Result<(), Trap> {
        let m = self.vector();
        self.texel(units::load_conversion, 1, m, Kind::LoadTexel)
    }

    pub(super) fn store_conversion(&mut self) -> Result<(), Trap> {
        self.reads_staging(4);
        let m = self.vector();
        self.texel(units::store_conversion, 1, m, Kind::StoreTexel)
    }

    pub(super) fn texture_operation(&mut self) -> Result<(), Trap> {
        self.reads_staging(9);
        self.texel(texture::texture_operation, 1, 0, Kind::Texture)
    }

    pub(super) fn clock(&mut self) -> Result<(), Trap> {
        let staging = self.staging(2)?;
        self.emit(Run::Message(units::clock), staging, [0; 4], 0);
        Ok(())
    }

    pub(super) fn reads_staging(&mut self, count: u8) {
        let first = self.clause.header.staging_register;
        for register in first..=first.saturating_add(count - 1).min(63) {
            self.reads(register);
        }
    }

    fn texel(&mut self, run: OnMemory, staging: u32, m: u32, kind: Kind) -> Result<(), Trap> {
        let staging = self.staging(staging)?;
        let sources = [self.source(0)?, self.source(1)?, self.source(2)?, m as u16];
        self.emit(Run::Message(run), staging, sources, m);
        self.known_as(kind);
        Ok(())
    }

    pub(super) fn sample_simple(&mut self, half: bool, cube: bool) -> Result<(), Trap> {
        let staging = self.staging(if half { 2 } else { 4 })?;
        let texture = u32::from(self.ins.immediate("texture_index").unwrap_or(0));
        let sampler = u32::from(self.ins.immediate("sampler_index").unwrap_or(0));
        let m = texture | sampler << 8 | u32::from(half) << 16 | u32::from(cube) << 17;
        let face = if cube { self.source(2)? } else { 0 };
        let sources = [self.source(0)?, self.source(1)?, face, 0];
        self.emit(Run::Message(texture::sample_simple), staging, sources, m);
        self.known_as(Kind::Texture);
        Ok(())
    }

    pub(super) fn format(&self) -> u32 {
        match self.ins.register_format() {
            Format::F16 => RegisterFormat::F16 as u32,
            Format::F32 => RegisterFormat::F32 as u32,
            Format::S32 => RegisterFormat::I32 as u32,
            Format::U32 => RegisterFormat::U32 as u32,
            Format::S16 => RegisterFormat::I16 as u32,
            Format::U16 => RegisterFormat::U16 as u32,
            Format::Auto | Format::F64 | Format::I64 => units::AUTO,
        }
    }

    pub(super) fn vector(&self) -> u32 {
        match self.ins.vector_size() {
            VectorSize::None => 0,
            VectorSize::V2 => 1 << 8,
            VectorSize::V3 => 2 << 8,
            VectorSize::V4 => 3 << 8,
        }
    }
}
