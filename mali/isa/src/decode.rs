// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes to clauses and back.

use crate::clause::{Clause, ClauseHeader, Constant, Operand, Tuple};
use crate::constants;
use crate::error::{DecodeError, EncodeError};
use crate::fau::Fau;
use crate::info::{Message, Unit};
use crate::layout::{self, Packed, WORD_BYTES};
use crate::registers::{RegisterBlock, RegisterUse};
use crate::word::{decode_word, encode_word};
use alloc::vec::Vec;

/// Decodes a clause; also returns its size in bytes (a multiple of 16, at most 128).
///
/// # Errors
/// See [`DecodeError`]; any bytes are safe.
pub fn decode_clause(bytes: &[u8]) -> Result<(Clause, usize), DecodeError> {
    decode_clause_with(|index| {
        let offset = index * WORD_BYTES;
        let word = bytes
            .get(offset..offset + WORD_BYTES)
            .and_then(|w| w.try_into().ok());
        word.ok_or(DecodeError::Truncated { offset })
    })
}

/// Reads the 16-byte words `word(0)`, `word(1)`, … in order, none after the clause's last.
///
/// # Errors
/// What `word` returns, or a [`DecodeError`].
pub fn decode_clause_with<E: From<DecodeError>>(
    word: impl FnMut(usize) -> Result<[u8; WORD_BYTES], E>,
) -> Result<(Clause, usize), E> {
    let (packed, words) = layout::unpack(word)?;
    Ok((assemble(&packed)?, words * WORD_BYTES))
}

fn assemble(packed: &Packed) -> Result<Clause, DecodeError> {
    let header = ClauseHeader::from_bits(packed.header)?;
    let wide = header.message == Some(Message::Wide);
    let count = usize::from(packed.constant_count);
    let values = packed.constants.map(|c| c << 4);
    let alone = matches!(packed.count, 3 | 5 | 6 | 8);
    let constants = constants::decode(&values[..count], alone, packed.nibbles)?[..count].to_vec();

    let tuples = &packed.tuples[..usize::from(packed.count)];
    let block = |tuple: u128| RegisterBlock((tuple & 0x7_ffff_ffff) as u64);
    let mut uses = [RegisterUse::default(); 8];
    for (index, tuple) in tuples.iter().enumerate() {
        let block = block(*tuple);
        let used = if wide {
            block.wide()
        } else {
            block.narrow(index == 0)
        };
        uses[index] = used.map_err(|_| DecodeError::Registers {
            tuple: index as u8,
            bits: block.0,
        })?;
    }
    let mut decoded = Vec::with_capacity(tuples.len());
    for (index, tuple) in tuples.iter().enumerate() {
        // A tuple's writes stand in the next block, the last tuple's in the first.
        let writes = uses[(index + 1) % tuples.len()];
        let registers = block(*tuple);
        let instruction = |unit: Unit, bits: u32| {
            let error = DecodeError::Instruction {
                tuple: index as u8,
                unit,
                bits,
            };
            decode_word(unit, bits, wide).ok_or(error)
        };
        let words = ((tuple >> 35 & 0x7f_ffff) as u32, (tuple >> 58) as u32);
        let tuple = Tuple {
            registers,
            ports: uses[index].ports,
            fau: constants::select(registers.fau_index(), &constants),
            fma: instruction(Unit::Fma, words.0)?,
            add: instruction(Unit::Add, words.1)?,
            fma_destination: writes.fma,
            add_destination: writes.add,
        };
        check_sources(&tuple, index as u8, Unit::Fma, words.0)?;
        check_sources(&tuple, index as u8, Unit::Add, words.1)?;
        decoded.push(tuple);
    }
    Ok(Clause {
        header,
        tuples: decoded,
        constants,
    })
}

fn check_sources(tuple: &Tuple, index: u8, unit: Unit, bits: u32) -> Result<(), DecodeError> {
    for (number, source) in tuple.instruction(unit).sources().iter().enumerate() {
        let reads_nothing = match tuple.operand(unit, *source) {
            None => true,
            Some(Operand::FauLow(fau) | Operand::FauHigh(fau) | Operand::FauWide(fau)) => {
                matches!(fau, Fau::Missing(_) | Fau::Reserved(_))
            }
            Some(_) => false,
        };
        if reads_nothing {
            return Err(DecodeError::Source {
                tuple: index,
                unit,
                bits,
                source: number as u8,
            });
        }
    }
    Ok(())
}

/// Inverse of [`decode_clause`]. Only register blocks and instructions count (see [`RegisterBlock`]).
///
/// # Errors
/// See [`EncodeError`].
pub fn encode_clause(clause: &Clause) -> Result<Vec<u8>, EncodeError> {
    let count = clause.tuples.len();
    if !(1..=8).contains(&count) {
        return Err(EncodeError::Tuples { count });
    }
    let mut packed = Packed {
        header: clause.header.to_bits()?,
        count: count as u8,
        ..Packed::default()
    };
    for (index, tuple) in clause.tuples.iter().enumerate() {
        let registers = tuple.registers.0;
        if registers >> 35 != 0 {
            return Err(EncodeError::Registers { tuple: index as u8 });
        }
        let fma = u128::from(encode_word(&tuple.fma)?);
        let add = u128::from(encode_word(&tuple.add)?);
        packed.tuples[index] = u128::from(registers) | fma << 35 | add << 58;
    }
    encode_constants(&clause.constants, &mut packed)?;
    let mut bytes = Vec::with_capacity(layout::MAX_WORDS * WORD_BYTES);
    let packed = layout::pack(&packed, |word| bytes.extend_from_slice(&word));
    packed.ok_or(EncodeError::Constants {
        count: clause.constants.len(),
    })?;
    Ok(bytes)
}

fn encode_constants(constants: &[Constant], packed: &mut Packed) -> Result<(), EncodeError> {
    let count = constants.len();
    if count > packed.constants.len() || constants.iter().any(|c| c.value & 15 != 0) {
        return Err(EncodeError::Constants { count });
    }
    packed.constant_count = count as u8;
    let mut at = 0;
    if let (3 | 5 | 6 | 8, Some(first)) = (packed.count, constants.first()) {
        packed.constants[0] = first.value >> 4;
        if matches!(packed.count, 3 | 6) {
            packed.nibbles = Some(constants::single(first.relative));
        } else if first.relative != crate::fau::Relative::None {
            return Err(EncodeError::ConstantOrder { index: 0 });
        }
        at = 1;
    }
    while at < count {
        let second = constants.get(at + 1).copied().unwrap_or_default();
        let (first, second) = constants::pair(at as u8, constants[at], second)?;
        packed.constants[at] = first >> 4;
        if let Some(slot) = packed.constants.get_mut(at + 1) {
            *slot = second >> 4;
        }
        at += 2;
    }
    Ok(())
}
