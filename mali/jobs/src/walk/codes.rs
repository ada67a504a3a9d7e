// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders, decoded once while their bytes stay.

use std::collections::HashMap;
use std::sync::Arc;

use mali_facts::{Memory, bytes};
use mali_isa::{DecodeError, Identity, Shader, ShaderError, WORD_BYTES};

/// Bytes for all jobs. Shared code counts for each shader: each clause can be the entry of a shader of any length,
/// and decoded code takes eight times the memory. Networks have less than 1 MiB.
pub const MAX_CODE: u64 = 4 << 20;

/// Bytes of a Valhall shader, read first.
const FIRST_PIECE: usize = 1 << 10;

/// Bytes compared, for all jobs.
const MAX_COMPARED: u64 = 4 << 30;

/// Bifrost code.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// Address of the first clause.
    pub address: u64,
    /// Reachable clauses.
    pub shader: Shader,
    /// Identity.
    pub identity: Identity,
    /// To the last clause's end.
    pub bytes: Vec<u8>,
}

/// Valhall code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// Address of the first word.
    pub address: u64,
    /// As [`mali_isa::valhall::Shader::hash`].
    pub hash: u64,
    /// Named by instructions, as a bit mask.
    pub registers: u64,
    /// Encoded words.
    pub bytes: Vec<u8>,
}

/// Instruction that reaches memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// As disassembled.
    pub text: String,
    /// Whether it reads.
    pub reads: bool,
    /// Whether it writes.
    pub writes: bool,
}

impl Words {
    /// Bytes of a word.
    pub const BYTES: u64 = mali_isa::valhall::WORD_BYTES as u64;

    /// Number of instructions.
    pub fn instructions(&self) -> usize {
        self.bytes.len() / mali_isa::valhall::WORD_BYTES
    }

    fn from(&self, offset: u64) -> impl Iterator<Item = mali_isa::valhall::Instruction> {
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|at| self.bytes.get(at..));
        let words = bytes
            .unwrap_or_default()
            .chunks_exact(mali_isa::valhall::WORD_BYTES);
        words.map_while(|word| {
            mali_isa::valhall::Instruction::decode(u64::from_le_bytes(word.try_into().ok()?))
        })
    }

    /// Offset 0, and those after each branch, barrier and end.
    pub fn blocks(&self) -> impl Iterator<Item = u64> {
        let ends = self
            .from(0)
            .enumerate()
            .filter(|(_, word)| word.ends_block());
        let starts = ends.map(|(at, _)| Self::BYTES * (at as u64 + 1));
        std::iter::once(0).chain(starts)
    }

    /// Of the block at an offset.
    pub fn accesses(&self, offset: u64) -> Vec<Access> {
        let mut found = Vec::new();
        for word in self.from(offset).take(mali_isa::valhall::LONGEST_BLOCK) {
            let name = word.row().name;
            if word.row().is_message() && word.op() != mali_isa::valhall::Op::Barrier {
                let stores = name.starts_with("STORE.") || name.starts_with("ST_");
                found.push(Access {
                    text: word.to_string(),
                    reads: !stores,
                    writes: stores || name.starts_with("ATOM"),
                });
            }
            if word.ends_block() {
                break;
            }
        }
        found
    }
}

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match mali_isa::valhall::Shader::decode(&self.bytes) {
            Ok(shader) => shader.fmt(f),
            Err(error) => error.fmt(f),
        }
    }
}

/// Why code was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecoded {
    /// Invalid clause.
    #[error("{0}")]
    Clause(#[from] ShaderError),
    /// Invalid word.
    #[error("{0}")]
    Word(#[from] mali_isa::valhall::ShaderError),
    /// Too much code.
    #[error(
        "the shaders of the recording have more than {MAX_CODE} bytes, which is as many as are decoded"
    )]
    TooMuch,
}

/// Shaders by address.
#[derive(Default)]
pub struct Codes {
    known: HashMap<u64, Arc<Code>>,
    words: HashMap<u64, Arc<Words>>,
    decoded: u64,
    compared: u64,
}

impl Codes {
    /// Shader at an address.
    ///
    /// # Errors
    /// It does not decode, or all are too long.
    pub fn at<M: Memory + ?Sized>(
        &mut self,
        memory: &M,
        address: u64,
    ) -> Result<Arc<Code>, Undecoded> {
        if let Some(known) = self.known.get(&address)
            && unchanged(memory, address, &known.bytes, &mut self.compared)?
        {
            return Ok(known.clone());
        }
        let code = Arc::new(self.decode(memory, address)?);
        self.known.insert(address, code.clone());
        Ok(code)
    }

    /// Valhall shader at an address.
    ///
    /// # Errors
    /// As for [`Codes::at`].
    pub fn words_at<M: Memory + ?Sized>(
        &mut self,
        memory: &M,
        address: u64,
    ) -> Result<Arc<Words>, Undecoded> {
        if let Some(known) = self.words.get(&address)
            && unchanged(memory, address, &known.bytes, &mut self.compared)?
        {
            return Ok(known.clone());
        }
        let (mut bytes, mut piece) = (Vec::new(), FIRST_PIECE);
        loop {
            let there = append_words(memory, address, &mut bytes, piece);
            self.decoded += bytes.len() as u64;
            if self.decoded > 2 * MAX_CODE {
                return Err(Undecoded::TooMuch);
            }
            match mali_isa::valhall::Shader::decode(&bytes) {
                Err(mali_isa::valhall::ShaderError::Truncated { .. }) if there => {
                    piece = bytes.len()
                }
                Err(error) => return Err(error.into()),
                Ok(shader) => {
                    let words = Arc::new(Words {
                        address,
                        hash: shader.hash(),
                        registers: registers(&shader),
                        bytes: shader.bytes().to_vec(),
                    });
                    self.words.insert(address, words.clone());
                    return Ok(words);
                }
            }
        }
    }

    fn decode<M: Memory + ?Sized>(&mut self, memory: &M, address: u64) -> Result<Code, Undecoded> {
        // Read twice: to decode and to hash.
        let most = 2 * MAX_CODE;
        let word = |offset: u32| {
            self.decoded += WORD_BYTES as u64;
            let word = bytes::<WORD_BYTES, _>(memory, address.wrapping_add(offset.into()));
            let offset = offset as usize;
            word.filter(|_| self.decoded <= most)
                .ok_or(DecodeError::Truncated { offset })
        };
        let found = Shader::identify(word);
        if self.decoded > most {
            return Err(Undecoded::TooMuch);
        }
        let (shader, identity) = found?;
        // What lies between far branches counts too.
        if identity.bytes > MAX_CODE {
            return Err(Undecoded::TooMuch);
        }
        let mut bytes = vec![0; usize::try_from(identity.bytes).unwrap_or(0)];
        memory.read(address, &mut bytes);
        Ok(Code {
            address,
            shader,
            identity,
            bytes,
        })
    }
}

fn unchanged<M: Memory + ?Sized>(
    memory: &M,
    address: u64,
    known: &[u8],
    compared: &mut u64,
) -> Result<bool, Undecoded> {
    *compared += known.len() as u64;
    if *compared > MAX_COMPARED {
        return Err(Undecoded::TooMuch);
    }
    let mut bytes = vec![0; known.len()];
    Ok(memory.read(address, &mut bytes) && bytes == known)
}

fn append_words<M: Memory + ?Sized>(
    memory: &M,
    address: u64,
    bytes: &mut Vec<u8>,
    count: usize,
) -> bool {
    let (start, end) = (bytes.len(), bytes.len() + count);
    bytes.resize(end, 0);
    let mut at = start;
    for piece in bytes[start..].chunks_exact_mut(mali_isa::valhall::WORD_BYTES) {
        if !memory.read(address.wrapping_add(at as u64), piece) {
            bytes.truncate(at);
            return false;
        }
        at += mali_isa::valhall::WORD_BYTES;
    }
    true
}

fn registers(shader: &mali_isa::valhall::Shader<'_>) -> u64 {
    let mut all = 0u64;
    let mut named = |first: u8, count: u8| {
        for register in (first..64).take(count.into()) {
            all |= 1 << register;
        }
    };
    for instruction in shader.instructions() {
        for source in instruction.sources() {
            if let Some(register) = source.code.register() {
                named(register, if source.kind.is_wide() { 2 } else { 1 });
            }
        }
        if let Some(to) = instruction.destination() {
            named(to.register, 1);
        }
        for group in instruction.staging() {
            named(group.first, group.count);
        }
    }
    all
}
