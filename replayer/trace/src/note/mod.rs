// SPDX-License-Identifier: MIT OR Apache-2.0
//! NOTE records of an OpenCL layer.
//!
//! A note is one line of printable ASCII: [`PREFIX`], what it tells, then `key=value` words. Names keep letters, digits
//! and `_ * . -`; other bytes become `%` and two hexadecimal digits.

mod text;

/// First word of each note; the digit is the grammar's version.
pub const PREFIX: &str = "cl2";
/// Bytes of a NOTE's text.
pub const MAX_TEXT: usize = 4096;
/// Kept bytes of a scalar.
pub const MAX_SCALAR: usize = 16;
/// Arguments of a launch; kernels with more are refused.
pub const MAX_ARGUMENTS: usize = 255;

/// What an app did through OpenCL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A memory object was made.
    Object(Object),
    /// The host wrote or read memory.
    Transfer(Transfer),
    /// The runtime copies between objects.
    Copy(Copied),
    /// The runtime fills with a pattern.
    Fill(Filled),
    /// A kernel's chains come after this note, and after those of earlier launches of the queue.
    Launch(Launch),
    /// The runtime refused the launch: it has no chains.
    Refused {
        /// Number.
        launch: u32,
        /// The runtime's error.
        status: i32,
    },
    /// All earlier commands of this queue are complete.
    Idle {
        /// Number.
        queue: u32,
    },
    /// Content of a transfer that was incomplete when noted.
    Content {
        /// As in [`Content::Later`].
        id: u32,
        /// [`content_hash`].
        hash: u64,
    },
    /// Something that notes do not describe.
    Unseen {
        /// Called function.
        call: String,
    },
}

/// Memory object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// From 0, in the order of creation.
    pub id: u32,
    /// What it is.
    pub kind: ObjectKind,
    /// Bytes; 0 where the runtime chooses (images).
    pub size: u64,
}

/// A memory object's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// Buffer with memory of its own.
    Buffer,
    /// Part of a buffer.
    Part(Place),
    /// The runtime chooses its layout.
    Image,
}

/// Byte of a memory object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number.
    pub object: u32,
    /// Bytes from its start.
    pub offset: u64,
}

/// A transfer's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the host into the object.
    Write,
    /// From the object to the host.
    Read,
    /// Mapped and unmapped unchanged: a read, or a write of what was there.
    Unchanged,
}

/// The host wrote or read memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// Where.
    pub at: Place,
    /// Bytes.
    pub size: u64,
    /// Its bytes.
    pub content: Content,
    /// `None` at the object's creation.
    pub queue: Option<u32>,
    /// It was when noted; else it happens after its queue's earlier commands.
    pub complete: bool,
}

/// What is known of a transfer's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Their [`content_hash`].
    Hash(u64),
    /// [`Note::Content`] has this number.
    Later(u32),
    /// The layer could not see them.
    Unseen,
}

/// Copy by the runtime, after the queue's earlier commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Where from.
    pub from: Place,
    /// Where to.
    pub to: Place,
    /// From the first byte to the last; 0 of an image.
    pub size: u64,
    /// From the first byte written to the last; 0 of an image.
    pub to_size: u64,
    /// One run each; else bytes between are left out.
    pub dense: bool,
    /// Number.
    pub queue: Option<u32>,
    /// Called function.
    pub call: String,
}

/// Fill by the runtime, after the queue's earlier commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Where.
    pub at: Place,
    /// Bytes; 0 of an image.
    pub size: u64,
    /// Number.
    pub queue: Option<u32>,
    /// Called function.
    pub call: String,
}

/// Launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// From 0.
    pub id: u32,
    /// From 0.
    pub queue: u32,
    /// Function name.
    pub kernel: String,
    /// Work-items by dimension.
    pub global: [u64; 3],
    /// Of a group, if the app chose them.
    pub local: Option<[u64; 3]>,
    /// By index.
    pub arguments: Vec<Argument>,
}

/// Argument of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Empty if unknown.
    pub name: String,
    /// Such as `float*`; empty if unknown.
    pub type_name: String,
    /// As set.
    pub value: Value,
}

/// An argument's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Memory object.
    Object(u32),
    /// Bytes of work-group memory.
    Local(u64),
    /// A scalar or structure: its first [`MAX_SCALAR`] bytes.
    Scalar(Vec<u8>),
    /// The layer did not see it.
    Unknown,
}

/// Why a layer's note cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The line ends early.
    #[error("the note lacks its {0}")]
    Missing(&'static str),
    /// Word without meaning at its place.
    #[error("the note's {field} is '{word}'")]
    Field {
        /// What was expected.
        field: &'static str,
        /// Word.
        word: String,
    },
    /// Too many words or arguments ([`MAX_ARGUMENTS`]).
    #[error("the note continues with '{0}'")]
    Longer(String),
}

/// Hash to compare contents. Not for secrets: collisions are easy to make.
pub fn content_hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(PRIME);
        mixed ^ mixed >> 29
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = mix(PRIME, bytes.len() as u64);
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash, u64::from_le_bytes(last))
}
