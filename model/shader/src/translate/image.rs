// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images, textures, clocks.

use mali_isa::Mnemonic as M;
use mali_isa::{IndexFormat, RegisterFormat as Format, VectorSize};

use super::{Translator, Trap};
use crate::image::RegisterFormat;
use crate::ir::micro::{OnMemory, Run};
use crate::operations::image as engine;
use crate::operations::texture;

impl Translator<'_> {
    pub(super) fn image(&mut self) -> Result<bool, Trap> {
        let mnemonic = self.ins.op.mnemonic();
        match mnemonic {
            // Says which of the attribute tables the ADD instruction means; compute shaders have one.
            M::DtselImm => {
                let (a, d) = (self.source(0)?, self.dest);
                self.copy(a, d);
            }
            M::LeaAttrTex => {
                let m = self.format();
                self.texel(engine::texel_address, 3, m)?;
            }
            M::LeaTex | M::LeaTexImm => {
                if self.ins.index_format() != IndexFormat::U16 {
                    return Err(self.trap("has 32-bit coordinates, whose order is not known"));
                }
                let index = match self.ins.immediate("texture_index") {
                    Some(index) => self.number(index.into()),
                    None => self.source(2)?,
                };
                let staging = self.staging(3)?;
                let sources = [self.source(0)?, self.source(1)?, index, 0];
                self.emit(
                    Run::Message(engine::texture_address),
                    staging,
                    sources,
                    engine::AUTO,
                );
            }
            M::LdAttrTex => {
                let m = self.format() | self.vector();
                self.texel(engine::load_texel, 1, m)?;
            }
            M::LdCvt => {
                let m = self.vector();
                self.texel(engine::load_conversion, 1, m)?;
            }
            M::StCvt => {
                let m = self.vector();
                let last = self
                    .clause
                    .header
                    .staging_register
                    .saturating_add(3)
                    .min(63);
                for register in self.clause.header.staging_register..=last {
                    self.reads(register);
                }
                self.texel(engine::store_conversion, 1, m)?;
            }
            M::Texc => {
                let last = self
                    .clause
                    .header
                    .staging_register
                    .saturating_add(8)
                    .min(63);
                for register in self.clause.header.staging_register..=last {
                    self.reads(register);
                }
                self.texel(texture::texture_operation, 1, 0)?;
            }
            M::Texs2dF32 | M::Texs2dF16 | M::TexsCubeF32 | M::TexsCubeF16 => {
                self.simple(mnemonic)?
            }
            M::LdGclkU64 => {
                let staging = self.staging(2)?;
                self.emit(Run::Message(engine::clock), staging, [0; 4], 0);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Emits a message with the three sources as they are.
    fn texel(&mut self, run: OnMemory, staging: u32, m: u32) -> Result<(), Trap> {
        let staging = self.staging(staging)?;
        let sources = [self.source(0)?, self.source(1)?, self.source(2)?, 0];
        self.emit(Run::Message(run), staging, sources, m);
        Ok(())
    }

    fn simple(&mut self, mnemonic: M) -> Result<(), Trap> {
        let half = matches!(mnemonic, M::Texs2dF16 | M::TexsCubeF16);
        let cube = matches!(mnemonic, M::TexsCubeF16 | M::TexsCubeF32);
        let staging = self.staging(if half { 2 } else { 4 })?;
        let texture = u32::from(self.ins.immediate("texture_index").unwrap_or(0));
        let sampler = u32::from(self.ins.immediate("sampler_index").unwrap_or(0));
        let m = texture | sampler << 8 | u32::from(half) << 16 | u32::from(cube) << 17;
        let face = if cube { self.source(2)? } else { 0 };
        let sources = [self.source(0)?, self.source(1)?, face, 0];
        self.emit(Run::Message(texture::sample_simple), staging, sources, m);
        Ok(())
    }

    /// The register format modifier as conversion descriptors number it.
    pub(super) fn format(&self) -> u32 {
        match self.ins.register_format() {
            Format::F16 => RegisterFormat::F16 as u32,
            Format::F32 => RegisterFormat::F32 as u32,
            Format::S32 => RegisterFormat::I32 as u32,
            Format::U32 => RegisterFormat::U32 as u32,
            Format::S16 => RegisterFormat::I16 as u32,
            Format::U16 => RegisterFormat::U16 as u32,
            Format::Auto | Format::F64 | Format::I64 => engine::AUTO,
        }
    }

    /// The number of components less one, where the engine looks for it.
    pub(super) fn vector(&self) -> u32 {
        match self.ins.vector_size() {
            VectorSize::None => 0,
            VectorSize::V2 => 1 << 8,
            VectorSize::V3 => 2 << 8,
            VectorSize::V4 => 3 << 8,
        }
    }
}
