// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a changed job runs.

use std::sync::Arc;

use crate::interface::Interface;
use crate::taken::Taken;

/// Shader's bytes, from its first clause on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaderFile {
    /// Code.
    pub bytes: Vec<u8>,
    /// What its own job gave it, if known.
    pub interface: Option<Box<Interface>>,
}

impl From<Vec<u8>> for ShaderFile {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            interface: None,
        }
    }
}

/// What a job runs.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// Recorded shader.
    Recorded,
    /// Another shader; all else of the job stays.
    Shader(ShaderFile),
    /// Shader, uniforms, storage, sizes of another recording's job.
    Job(Arc<Taken>),
}

impl Kernel {
    /// Whether it is the recorded shader.
    pub fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded)
    }
}

impl From<Vec<u8>> for Kernel {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Shader(bytes.into())
    }
}
