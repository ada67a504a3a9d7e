// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attributes, varyings and pixels: what only shaders of vertices and fragments have. In a compute shader they raise a fault when
//! they are executed.

use mali_isa::Mnemonic as M;
use mali_isa::{FlatFunction, LodMode, SamplePosition};

use super::{Translator, Trap};
use crate::ir::micro::{OnMemory, Run};
use crate::operations::graphics as engine;

impl Translator<'_> {
    pub(super) fn graphics(&mut self) -> Result<bool, Trap> {
        match self.ins.op.mnemonic() {
            M::LdAttr | M::LdAttrImm => {
                let m = self.format() | self.vector();
                self.attribute(engine::load_attribute, 1, m)?;
            }
            M::LeaAttr | M::LeaAttrImm => {
                let m = self.format();
                self.attribute(engine::varying_address, 3, m)?;
            }
            M::LdVarFlat | M::LdVarFlatImm => {
                if self.ins.flat_function() != FlatFunction::None {
                    return Err(
                        self.trap("combines the values of all vertices, which is not modelled")
                    );
                }
                let index = match self.ins.immediate("index") {
                    Some(index) => self.number(index.into()),
                    None => self.source(0)?,
                };
                let m = self.format() | self.vector();
                let staging = self.staging(1)?;
                let run = Run::Message(engine::flat_varying);
                self.emit(run, staging, [index, 0, 0, 0], m);
            }
            M::LdVar | M::LdVarImm => {
                if self.ins.sample_position() != SamplePosition::Center {
                    return Err(self.trap("looks elsewhere than at the pixel's centre, or uses what an instruction before it kept; that is not modelled"));
                }
                let index = match self.ins.immediate("index") {
                    Some(index) => self.number(index.into()),
                    None => self.source(1)?,
                };
                let m = self.format() | self.vector();
                let staging = self.staging(1)?;
                self.emit(Run::Message(engine::varying), staging, [index, 0, 0, 0], m);
            }
            M::VarTexF32 | M::VarTexF16 => {
                let half = self.ins.op.mnemonic() == M::VarTexF16;
                let [varying, texture] = ["varying_index", "texture_index"]
                    .map(|name| u32::from(self.ins.immediate(name).unwrap_or(0)));
                let computed = self.ins.lod_mode() == LodMode::ComputedLod;
                let kept = self.ins.sample_position() == SamplePosition::None;
                if kept {
                    return Err(
                        self.trap("uses what an instruction before it kept, which is not modelled")
                    );
                }
                let m = texture | varying << 8 | u32::from(half) << 16 | u32::from(computed) << 17;
                let staging = self.staging(if half { 2 } else { 4 })?;
                let run = Run::Message(engine::varying_texture);
                self.emit(run, staging, [0; 4], m);
            }
            M::Atest => {
                let coverage = self.source(0)?;
                let staging = self.staging(1)?;
                self.emit(
                    Run::Message(engine::alpha_test),
                    staging,
                    [coverage, 0, 0, 0],
                    0,
                );
                let d = self.dest;
                if d != staging {
                    self.copy(staging, d);
                }
            }
            M::Blend => {
                let staging = self.staging(1)?;
                for register in staging as u8..=(staging as u8).saturating_add(3).min(63) {
                    self.reads(register);
                }
                let sources = [self.source(0)?, self.source(1)?, self.source(2)?, 0];
                self.emit(Run::Message(engine::blend), staging, sources, 0);
                // Where a blend shader would return to; there is none.
                let (zero, d) = (self.number(0), self.dest);
                self.copy(zero, d);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Emits an access to an attribute: vertex, instance and number.
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
