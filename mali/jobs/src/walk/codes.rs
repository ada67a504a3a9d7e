// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders in GPU memory: each is decoded once, as long as its bytes stay.

use std::collections::HashMap;
use std::sync::Arc;

use mali_facts::{Memory, bytes};
use mali_isa::{DecodeError, Identity, Shader, ShaderError, WORD_BYTES};

/// Bytes of code that are decoded for all jobs of a recording, when they are listed or moved to another GPU. Code that several shaders share counts for
/// each: a clause of 16 bytes can be the entry of a shader of any length, and decoded code takes eight times the memory. Networks have less than 1 MiB.
pub const MAX_CODE: u64 = 4 << 20;

/// Bytes of code that are compared with what was decoded before, for all jobs.
const MAX_COMPARED: u64 = 4 << 30;

/// Code that jobs run.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// Address of the first clause.
    pub address: u64,
    /// Clauses that control flow can reach.
    pub shader: Shader,
    /// What it is known by.
    pub identity: Identity,
    /// The bytes from the first clause to the end of the last.
    pub bytes: Vec<u8>,
}

/// Why code was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecoded {
    /// It has an invalid clause.
    #[error("{0}")]
    Clause(#[from] ShaderError),
    /// There is more code than is decoded.
    #[error(
        "the shaders of the recording have more than {MAX_CODE} bytes, which is as many as are decoded"
    )]
    TooMuch,
}

/// The shaders of a recording by address.
#[derive(Default)]
pub struct Codes {
    known: HashMap<u64, Arc<Code>>,
    /// Bytes that were read to decode them.
    decoded: u64,
    /// Bytes that were compared with those of a known shader.
    compared: u64,
}

impl Codes {
    /// The shader whose first clause is at an address.
    ///
    /// # Errors
    /// It does not decode, or all together are too long.
    pub fn at<M: Memory + ?Sized>(
        &mut self,
        memory: &M,
        address: u64,
    ) -> Result<Arc<Code>, Undecoded> {
        if let Some(known) = self.known.get(&address) {
            self.compared += known.bytes.len() as u64;
            if self.compared > MAX_COMPARED {
                return Err(Undecoded::TooMuch);
            }
            let mut bytes = vec![0; known.bytes.len()];
            if memory.read(address, &mut bytes) && bytes == known.bytes {
                return Ok(known.clone());
            }
        }
        let code = Arc::new(self.decode(memory, address)?);
        self.known.insert(address, code.clone());
        Ok(code)
    }

    fn decode<M: Memory + ?Sized>(&mut self, memory: &M, address: u64) -> Result<Code, Undecoded> {
        // Each word is read twice: to decode it, and for the shader's hash.
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
        // A branch may lead far away: what lies between counts too.
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
