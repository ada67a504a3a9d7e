// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command stream instruction, and its text.

use core::fmt::{self, Display, Formatter};

use super::field::{Field, Kind};
use super::table::Op;

/// Bytes of an instruction.
pub const WORD_BYTES: usize = 8;

/// Word that the table knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    op: Op,
    word: u64,
}

impl Instruction {
    /// `None` for an unknown opcode.
    pub const fn decode(word: u64) -> Option<Instruction> {
        match Op::of((word >> 56) as u8) {
            Some(op) => Some(Instruction { op, word }),
            None => None,
        }
    }

    /// Operation.
    pub const fn op(self) -> Op {
        self.op
    }

    /// Encoded word.
    pub const fn word(self) -> u64 {
        self.word
    }

    /// Set bits without a meaning.
    pub fn unexplained(self) -> u64 {
        self.word & !self.op.row().explained()
    }

    /// First field with a reserved value.
    pub fn reserved(self) -> Option<&'static Field> {
        let fields = self.op.row().fields.iter().copied();
        let named = |field: &&Field| matches!(field.kind, Kind::Named(_));
        let mut fields = fields.filter(named);
        fields.find(|field| field.name_in(self.word).is_none())
    }

    pub(super) const fn get(self, field: &'static Field) -> u64 {
        field.read(self.word)
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let row = self.op.row();
        f.write_str(row.name)?;
        for field in row.fields {
            let (name, value) = (field.name, field.read(self.word));
            match field.kind {
                Kind::Register => write!(f, " {name}=r{value}")?,
                Kind::Pair => write!(f, " {name}=d{value}")?,
                Kind::Named(_) => match field.name_in(self.word) {
                    Some(text) => write!(f, " {name}={text}")?,
                    None => write!(f, " {name}={value}")?,
                },
                _ if value == 0 => {}
                Kind::Number | Kind::Eighths if field.bits > 8 => {
                    write!(f, " {name}={:#x}", field.number(self.word))?;
                }
                _ => write!(f, " {name}={}", field.number(self.word))?,
            }
        }
        Ok(())
    }
}

/// A line for each word: offset, word, instruction. Remaining bytes have their own.
pub fn text(bytes: &[u8]) -> impl Display {
    Text(bytes)
}

struct Text<'a>(&'a [u8]);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (words, rest) = self.0.as_chunks::<WORD_BYTES>();
        for (index, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            write!(f, "{:5x}  {word:016x}  ", index * WORD_BYTES)?;
            match Instruction::decode(word) {
                Some(instruction) => write!(f, "{instruction}")?,
                None => f.write_str("unknown")?,
            }
            match Instruction::decode(word).map_or(0, Instruction::unexplained) {
                0 => writeln!(f)?,
                bits => writeln!(f, "   unexplained bits {bits:#x}")?,
            }
        }
        match rest.len() {
            0 => Ok(()),
            bytes => writeln!(f, "{bytes} bytes are no instruction"),
        }
    }
}
