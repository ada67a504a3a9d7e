// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vertex and fragment instructions; compute shaders fault on them.

use gpureplay_shader::emit::Emit;
use gpureplay_shader::ir::micro::{OnMemory, Run};
use mali_isa::Mnemonic as M;
use mali_isa::{FlatFunction, LodMode, SamplePosition};

use super::{Translator, Trap};
use crate::operations::graphics as units;

impl Translator<'_> {
    pub(super) fn load_attribute(&mut self) -> Result<(), Trap> {
        let m = self.format() | self.vector();
        self.attribute(units::load_attribute, 1, m)
    }

    pub(super) fn varying_address(&mut self) -> Result<(), Trap> {
        let m = self.format();
        self.attribute(units::varying_address, 3, m)
    }

    pub(super) fn flat_varying(&mut self) -> Result<(), Trap> {
        if self.ins.flat_function() != FlatFunction::None {
            return Err(self.trap("combines the values of all vertices, which is not modelled"));
        }
        self.interpolated(units::flat_varying, 0)
    }

    pub(super) fn varying(&mut self) -> Result<(), Trap> {
        if self.ins.sample_position() != SamplePosition::Center {
            return Err(self.trap(
                "looks elsewhere than at the pixel's centre, or uses what an instruction before it kept; that is not modelled",
            ));
        }
        self.interpolated(units::varying, 1)
    }

    fn interpolated(&mut self, run: OnMemory, index: usize) -> Result<(), Trap> {
        let index = match self.ins.immediate("index") {
            Some(index) => self.number(index.into()),
            None => self.source(index)?,
        };
        let m = self.format() | self.vector();
        let staging = self.staging(1)?;
        self.emit(Run::Message(run), staging, [index, 0, 0, 0], m);
        Ok(())
    }

    pub(super) fn varying_texture(&mut self, half: bool) -> Result<(), Trap> {
        let [varying, texture] = ["varying_index", "texture_index"]
            .map(|name| u32::from(self.ins.immediate(name).unwrap_or(0)));
        let computed = self.ins.lod_mode() == LodMode::ComputedLod;
        if self.ins.sample_position() == SamplePosition::None {
            return Err(self.trap("uses what an instruction before it kept, which is not modelled"));
        }
        let m = texture | varying << 8 | u32::from(half) << 16 | u32::from(computed) << 17;
        let staging = self.staging(if half { 2 } else { 4 })?;
        let run = Run::Message(units::varying_texture);
        self.emit(run, staging, [0; 4], m);
        Ok(())
    }

    pub(super) fn alpha_test(&mut self) -> Result<(), Trap> {
        let (coverage, staging) = (self.source(0)?, self.staging(1)?);
        let run = Run::Message(units::alpha_test);
        self.emit(run, staging, [coverage, 0, 0, 0], 0);
        let d = self.dest;
        if d != staging {
            self.copy(staging, d);
        }
        Ok(())
    }

    pub(super) fn blend(&mut self) -> Result<(), Trap> {
        let staging = self.staging(1)?;
        self.reads_staging(4);
        let sources = [self.source(0)?, self.source(1)?, self.source(2)?, 0];
        self.emit(Run::Message(units::blend), staging, sources, 0);
        // A blend shader's return address; there is none.
        let (zero, d) = (self.number(0), self.dest);
        self.copy(zero, d);
        Ok(())
    }

    fn attribute(&mut self, run: OnMemory, staging: u32, m: u32) -> Result<(), Trap> {
        if self.tuple.fma.op.mnemonic() == M::DtselImm {
            return Err(self.trap("names a table of attributes, which is not modelled"));
        }
        let index = match self.ins.immediate("attribute_index") {
            Some(index) => self.number(index.into()),
            None => self.source(2)?,
        };
        let staging = self.staging(staging)?;
        let sources = [self.source(0)?, self.source(1)?, index, 0];
        self.emit(Run::Message(run), staging, sources, m);
        Ok(())
    }
}
