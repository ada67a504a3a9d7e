// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders: words that control flow reaches.

use core::fmt;

use crate::valhall::Instruction;

/// Real shaders have some thousands of words.
pub const MAX_WORDS: u32 = 1 << 18;

/// Words of a block, which ends at a branch, a barrier or an end: as many as a Bifrost clause's instructions, so
/// that limits on work mean the same.
pub const LONGEST_BLOCK: usize = 16;

/// Bytes of an instruction.
pub const WORD_BYTES: usize = 8;

/// Why words are no shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShaderError {
    /// The code ends too early.
    Truncated {
        /// The missing one.
        word: u32,
    },
    /// More than [`MAX_WORDS`].
    Long,
    /// Word that is no instruction.
    Unknown {
        /// Number.
        word: u32,
        /// Word.
        value: u64,
    },
    /// A branch leads out of the code.
    Target {
        /// Number of the branch.
        word: u32,
        /// Target.
        target: i64,
    },
}

impl fmt::Display for ShaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShaderError::Truncated { word } => write!(f, "the code ends at word {word}"),
            ShaderError::Long => write!(f, "more than {MAX_WORDS} words"),
            ShaderError::Unknown { word, value } => {
                write!(f, "word {word} is no instruction: {value:#018x}")
            }
            ShaderError::Target { word, target } => {
                write!(f, "word {word} branches to {target}, outside of the code")
            }
        }
    }
}

impl core::error::Error for ShaderError {}

/// Shader's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shader<'b> {
    bytes: &'b [u8],
    words: u32,
    dynamic: bool,
}

impl<'b> Shader<'b> {
    /// Ends at the first instruction that never goes on and that no earlier branch passes.
    ///
    /// # Errors
    /// An unknown word, a branch out, or too few bytes.
    pub fn decode(bytes: &'b [u8]) -> Result<Self, ShaderError> {
        let (mut word, mut furthest, mut dynamic) = (0, 0, false);
        loop {
            if word >= MAX_WORDS {
                return Err(ShaderError::Long);
            }
            let value = word_at(bytes, word).ok_or(ShaderError::Truncated { word })?;
            let unknown = ShaderError::Unknown { word, value };
            let instruction = Instruction::decode(value).ok_or(unknown)?;
            dynamic |= instruction.op() == crate::valhall::Op::Branchzi;
            if let Some(distance) = instruction.branch() {
                let target = i64::from(word).saturating_add(distance);
                let inside = u32::try_from(target).ok().filter(|it| *it < MAX_WORDS);
                furthest = furthest.max(inside.ok_or(ShaderError::Target { word, target })?);
            }
            word += 1;
            if instruction.leaves() && furthest < word {
                return Ok(Shader {
                    bytes,
                    words: word,
                    dynamic,
                });
            }
        }
    }

    /// Number of words.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// Encoded words.
    pub fn bytes(&self) -> &'b [u8] {
        let length = WORD_BYTES * self.words as usize;
        self.bytes.get(..length).unwrap_or(self.bytes)
    }

    /// 64-bit FNV-1a of its bytes, the same at any address.
    pub fn hash(&self) -> u64 {
        let bytes = self.bytes().iter();
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// A branch target is in a register: there may be more code.
    pub fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    /// Instructions in order.
    pub fn instructions(&self) -> impl Iterator<Item = Instruction> + use<'b> {
        let bytes = self.bytes;
        (0..self.words).filter_map(move |word| Instruction::decode(word_at(bytes, word)?))
    }
}

fn word_at(bytes: &[u8], word: u32) -> Option<u64> {
    let at = WORD_BYTES.checked_mul(usize::try_from(word).ok()?)?;
    let word = bytes.get(at..at.checked_add(WORD_BYTES)?)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

/// Lines: number, instruction, branch target, broken limit.
impl fmt::Display for Shader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, instruction) in (0i64..).zip(self.instructions()) {
            write!(f, "{word:5}  {instruction}")?;
            if let Some(distance) = instruction.branch() {
                write!(f, "  -> {}", word.saturating_add(distance))?;
            }
            if let Err(broken) = instruction.check() {
                write!(f, "  ; {broken}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
