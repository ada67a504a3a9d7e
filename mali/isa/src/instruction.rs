// SPDX-License-Identifier: MIT OR Apache-2.0
//! One decoded instruction.

use crate::names::{self, Modifier, Op};

/// Sources of an operation.
pub const MAX_SOURCES: usize = 4;
/// Modifiers of an operation.
pub const MAX_MODIFIERS: usize = 10;
/// Immediates of an operation.
pub const MAX_IMMEDIATES: usize = 2;

/// 3-bit selector, resolved by [`crate::Tuple::operand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Source {
    /// Read port 0.
    #[default]
    Port0 = 0,
    /// Read port 1.
    Port1 = 1,
    /// Read port 2 (slot 2 of the register block).
    Port2 = 2,
    /// FMA unit: zero; ADD unit: the result of the tuple's FMA instruction.
    Stage = 3,
    /// Low word of the FAU value; all of it in a 64-bit tuple.
    FauLow = 4,
    /// High word of the FAU value.
    FauHigh = 5,
    /// Result of the previous FMA instruction.
    T0 = 6,
    /// Result of the previous ADD instruction.
    T1 = 7,
}

impl Source {
    /// By number.
    pub const ALL: [Source; 8] = [
        Source::Port0,
        Source::Port1,
        Source::Port2,
        Source::Stage,
        Source::FauLow,
        Source::FauHigh,
        Source::T0,
        Source::T1,
    ];

    /// Only the low three bits count.
    pub const fn from_selector(selector: u32) -> Source {
        Source::ALL[(selector & 7) as usize]
    }

    /// Selector.
    pub const fn selector(self) -> u8 {
        self as u8
    }
}

/// One instruction of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub op: Op,
    /// The others are `Port0`.
    pub sources: [Source; MAX_SOURCES],
    /// In the order of [`crate::OpInfo::modifiers`].
    pub modifiers: [u8; MAX_MODIFIERS],
    /// In the order of [`crate::OpInfo::immediates`].
    pub immediates: [u8; MAX_IMMEDIATES],
}

impl Instruction {
    /// With default modifiers (else the first allowed value) and first selectors.
    pub fn new(op: Op) -> Instruction {
        let info = op.info();
        let mut instruction = Instruction {
            op,
            sources: [Source::Port0; MAX_SOURCES],
            modifiers: [0; MAX_MODIFIERS],
            immediates: [0; MAX_IMMEDIATES],
        };
        for (slot, source) in instruction.sources.iter_mut().zip(info.sources) {
            *slot = Source::from_selector(source.allowed.trailing_zeros());
        }
        for (slot, modifier) in instruction.modifiers.iter_mut().zip(info.modifiers) {
            *slot = modifier
                .default
                .or(modifier.options.iter().flatten().next().copied())
                .unwrap_or(0);
        }
        instruction
    }

    /// Sources that the operation has.
    pub fn sources(&self) -> &[Source] {
        &self.sources[..self.op.info().sources.len().min(MAX_SOURCES)]
    }

    /// 0 or 1 for a flag. `None` if absent.
    pub fn modifier(&self, modifier: Modifier) -> Option<u8> {
        let index = self
            .op
            .info()
            .modifiers
            .iter()
            .position(|m| m.modifier == modifier)?;
        self.modifiers.get(index).copied()
    }

    /// Returns whether the operation has it.
    pub fn set_modifier(&mut self, modifier: Modifier, value: u8) -> bool {
        let index = self
            .op
            .info()
            .modifiers
            .iter()
            .position(|m| m.modifier == modifier);
        match index.and_then(|i| self.modifiers.get_mut(i)) {
            Some(slot) => {
                *slot = value;
                true
            }
            None => false,
        }
    }

    /// Value of an immediate by name.
    pub fn immediate(&self, name: &str) -> Option<u8> {
        let index = self
            .op
            .info()
            .immediates
            .iter()
            .position(|i| i.name == name)?;
        self.immediates.get(index).copied()
    }
}

include!(concat!(env!("OUT_DIR"), "/accessors.rs"));
