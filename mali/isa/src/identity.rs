// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shader's identity.

use crate::error::DecodeError;
use crate::layout::WORD_BYTES;
use crate::shader::{Shader, ShaderError};

/// The same at any address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// 64-bit FNV-1a of reachable clauses, each preceded by its offset.
    pub hash: u64,
    /// From the first clause to the end of the last.
    pub bytes: u64,
    /// Reachable clauses.
    pub clauses: u32,
}

impl Shader {
    /// As [`Shader::decode_with`], with the identity.
    ///
    /// # Errors
    /// As [`Shader::decode_with`].
    pub fn identify<E: From<DecodeError>>(
        mut word: impl FnMut(u32) -> Result<[u8; WORD_BYTES], E>,
    ) -> Result<(Shader, Identity), ShaderError<E>> {
        let shader = Shader::decode_with(&mut word)?;
        let mut hash = 0xcbf2_9ce4_8422_2325;
        let mut add = |bytes: &[u8]| {
            for &byte in bytes {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for placed in &shader.clauses {
            add(&placed.offset.to_le_bytes());
            for at in (placed.offset..placed.offset.saturating_add(placed.size)).step_by(WORD_BYTES)
            {
                add(&word(at).map_err(|error| ShaderError {
                    offset: at.into(),
                    error,
                })?);
            }
        }
        let identity = Identity {
            hash,
            bytes: shader.size(),
            clauses: shader.clauses.len() as u32,
        };
        Ok((shader, identity))
    }
}
