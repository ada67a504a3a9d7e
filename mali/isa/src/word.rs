// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruction words to instructions and back.

use crate::error::EncodeError;
use crate::info::{Encoding, OpInfo, Unit};
use crate::instruction::{Instruction, MAX_IMMEDIATES, MAX_MODIFIERS, MAX_SOURCES, Source};
use crate::table::{ADD_INDEX, FMA_INDEX, OPS};

/// 23 bits for FMA, 20 for ADD. `wide`: of a 64-bit tuple. `None`: unknown or reserved.
pub fn decode_word(unit: Unit, bits: u32, wide: bool) -> Option<Instruction> {
    candidates(unit, bits).find_map(|(info, encoding)| {
        if info.wide != wide {
            None
        } else {
            matches(info, encoding, bits)
        }
    })
}

/// All meanings; more than one shows an ambiguous table.
pub fn decode_all(unit: Unit, bits: u32, wide: bool) -> impl Iterator<Item = Instruction> {
    candidates(unit, bits)
        .filter(move |(info, _)| info.wide == wide)
        .filter_map(move |(i, e)| matches(i, e, bits))
}

fn candidates(unit: Unit, bits: u32) -> impl Iterator<Item = (&'static OpInfo, &'static Encoding)> {
    let index = match unit {
        Unit::Fma => &FMA_INDEX,
        Unit::Add => &ADD_INDEX,
    };
    let bucket = if bits >> unit.width() == 0 {
        index[(bits >> (unit.width() - 8)) as usize]
    } else {
        &[]
    };
    bucket.iter().map(|&(op, encoding)| {
        let info = &OPS[usize::from(op)];
        (info, &info.encodings[usize::from(encoding)])
    })
}

fn matches(info: &'static OpInfo, encoding: &Encoding, bits: u32) -> Option<Instruction> {
    if bits & encoding.mask != encoding.exact {
        return None;
    }
    let mut sources = [Source::Port0; MAX_SOURCES];
    for (slot, source) in sources.iter_mut().zip(info.sources) {
        let selector = (bits >> source.start) & 7;
        if source.allowed >> selector & 1 == 0 {
            return None;
        }
        *slot = Source::from_selector(selector);
    }
    if encoding
        .order
        .is_some_and(|order| !order.holds(sources[0].selector(), sources[1].selector()))
    {
        return None;
    }
    let mut modifiers = [0; MAX_MODIFIERS];
    for (slot, modifier) in modifiers.iter_mut().zip(info.modifiers) {
        if let Some(position) = modifier.position {
            *slot = (*modifier.options.get(position.get(bits) as usize)?)?;
        }
    }
    for &(index, value) in encoding.fixed {
        *modifiers.get_mut(usize::from(index))? = value;
    }
    for field in encoding.fields {
        let values = (*field.values.get(field.position.get(bits) as usize)?)?;
        for (index, value) in field.modifiers.iter().zip(values) {
            *modifiers.get_mut(usize::from(*index))? = *value;
        }
    }
    let mut immediates = [0; MAX_IMMEDIATES];
    for (slot, immediate) in immediates.iter_mut().zip(info.immediates) {
        *slot = immediate.position.get(bits) as u8;
    }
    Some(Instruction {
        op: info.op,
        sources,
        modifiers,
        immediates,
    })
}

/// Encodes an instruction.
///
/// # Errors
/// An invalid source, a large immediate, or modifiers or an order of sources without an encoding.
pub fn encode_word(instruction: &Instruction) -> Result<u32, EncodeError> {
    let info = instruction.op.info();
    let mut common = 0;
    for (index, source) in info.sources.iter().enumerate() {
        let selector = instruction.sources[index].selector();
        if source.allowed >> selector & 1 == 0 {
            return Err(EncodeError::Source {
                op: info.op,
                source: index as u8,
            });
        }
        common |= u32::from(selector) << source.start;
    }
    for (index, immediate) in info.immediates.iter().enumerate() {
        let value = u32::from(instruction.immediates[index]);
        if value >> immediate.position.size != 0 {
            return Err(EncodeError::Immediate {
                op: info.op,
                immediate: index as u8,
            });
        }
        common |= immediate.position.put(value);
    }
    for (index, modifier) in info.modifiers.iter().enumerate() {
        let Some(position) = modifier.position else {
            continue;
        };
        let value = instruction.modifiers[index];
        let number = modifier
            .options
            .iter()
            .position(|option| *option == Some(value));
        common |= position.put(number.ok_or(EncodeError::Modifiers { op: info.op })? as u32);
    }
    let encoded = info
        .encodings
        .iter()
        .find_map(|encoding| with(encoding, instruction, common));
    encoded.ok_or(EncodeError::Modifiers { op: info.op })
}

fn with(encoding: &Encoding, instruction: &Instruction, common: u32) -> Option<u32> {
    let [a, b, ..] = instruction.sources;
    if encoding
        .order
        .is_some_and(|order| !order.holds(a.selector(), b.selector()))
    {
        return None;
    }
    let value = |index: u8| instruction.modifiers[usize::from(index) % MAX_MODIFIERS];
    if encoding
        .fixed
        .iter()
        .any(|&(index, fixed)| value(index) != fixed)
    {
        return None;
    }
    // A source's only selector lies in the fixed bits; it was checked.
    let mut bits = encoding.exact | (common & !encoding.mask);
    for field in encoding.fields {
        let number = field.values.iter().position(|values| {
            values.is_some_and(|values| {
                field
                    .modifiers
                    .iter()
                    .zip(values)
                    .all(|(index, v)| value(*index) == *v)
            })
        })?;
        bits |= field.position.put(number as u32);
    }
    Some(bits)
}
