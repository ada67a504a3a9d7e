// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an OpenCL layer says in NOTE records: which launch the chains that follow belong to, and what the host wrote and read.
//!
//! A note is one line of printable ASCII: the word [`PREFIX`], what it tells, then `key=value` words. Names keep letters, digits and
//! `_ * . -`; every other byte is written as `%` and two hexadecimal digits. The layer encodes with [`core::fmt::Display`], readers
//! decode with [`Note::parse`]; a line with another first word is somebody else's remark.

mod text;

/// First word of every note of an OpenCL layer; the digit is the version of the grammar.
pub const PREFIX: &str = "cl2";
/// Longest text of a NOTE record, in bytes.
pub const MAX_TEXT: usize = 4096;
/// Bytes of a scalar argument that are kept.
pub const MAX_SCALAR: usize = 16;
/// Arguments of a launch that are read; OpenCL kernels with more are refused.
pub const MAX_ARGUMENTS: usize = 255;

/// One thing that an app did through OpenCL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A memory object was made.
    Object(Object),
    /// The host wrote or read memory.
    Transfer(Transfer),
    /// The runtime copies memory between objects.
    Copy(Copied),
    /// The runtime fills memory with a pattern.
    Fill(Filled),
    /// A kernel is about to be given to a queue: its chains come after this note, and after those of earlier launches of the queue.
    Launch(Launch),
    /// The runtime refused the launch with this number: it has no chains.
    Refused {
        /// Number of the launch.
        launch: u32,
        /// What the runtime returned.
        status: i32,
    },
    /// Everything that this queue was given before is complete.
    Idle {
        /// Number of the queue.
        queue: u32,
    },
    /// What a transfer moved that was not complete when it was noted.
    Content {
        /// The number in [`Content::Later`].
        id: u32,
        /// [`content_hash`] of the bytes.
        hash: u64,
    },
    /// The app used something that notes do not describe.
    Unseen {
        /// The function that it called.
        call: String,
    },
}

/// A memory object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Number of the object, counted from 0 in the order of creation.
    pub id: u32,
    /// What it is.
    pub kind: ObjectKind,
    /// Bytes; 0 where the runtime chooses (images).
    pub size: u64,
}

/// What a memory object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A buffer with memory of its own.
    Buffer,
    /// A part of a buffer.
    Part(Place),
    /// An image, whose layout in memory is the runtime's.
    Image,
}

/// A byte of a memory object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the object.
    pub object: u32,
    /// Bytes from its start.
    pub offset: u64,
}

/// Which way a transfer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the host into the object.
    Write,
    /// From the object to the host.
    Read,
    /// Mapped for reading and writing, and unmapped without a change: a read, or a write of what was there.
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
    /// What they are.
    pub content: Content,
    /// The queue that was given the command; `None` for what happened with the creation of the object.
    pub queue: Option<u32>,
    /// The transfer was complete when it was noted; else it happens after whatever its queue was given before.
    pub complete: bool,
}

/// What is known about the bytes of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Their [`content_hash`].
    Hash(u64),
    /// A [`Note::Content`] with this number says it.
    Later(u32),
    /// The layer could not see them.
    Unseen,
}

/// The runtime copies memory between objects, after whatever its queue was given before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Where from.
    pub from: Place,
    /// Where to.
    pub to: Place,
    /// Bytes of the source from the first to the last one that is copied; 0 of an image.
    pub size: u64,
    /// Bytes of the destination from the first to the last one that is written; 0 of an image.
    pub to_size: u64,
    /// Source and destination are one run of bytes each; else bytes between the first and the last one are left out.
    pub dense: bool,
    /// The queue that was given the command.
    pub queue: Option<u32>,
    /// The function that the app called.
    pub call: String,
}

/// The runtime fills memory with a pattern, after whatever its queue was given before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Where.
    pub at: Place,
    /// Bytes; 0 of an image.
    pub size: u64,
    /// The queue that was given the command.
    pub queue: Option<u32>,
    /// The function that the app called.
    pub call: String,
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Number of the launch, counted from 0.
    pub id: u32,
    /// Number of the queue, counted from 0.
    pub queue: u32,
    /// Name of the kernel function.
    pub kernel: String,
    /// Work-items along each dimension.
    pub global: [u64; 3],
    /// Work-items of a group along each dimension, if the app chose them.
    pub local: Option<[u64; 3]>,
    /// Arguments by index.
    pub arguments: Vec<Argument>,
}

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name; empty if the runtime does not know.
    pub name: String,
    /// Name of its type as the runtime says it, such as `float*`; empty if it does not know.
    pub type_name: String,
    /// What it was set to.
    pub value: Value,
}

/// What an argument was set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A memory object.
    Object(u32),
    /// Work-group memory of this many bytes.
    Local(u64),
    /// A scalar or structure; its first [`MAX_SCALAR`] bytes.
    Scalar(Vec<u8>),
    /// The layer did not see.
    Unknown,
}

/// Why a note of an OpenCL layer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The line ends early.
    #[error("the note lacks its {0}")]
    Missing(&'static str),
    /// A word has no meaning at its place.
    #[error("the note's {field} is '{word}'")]
    Field {
        /// What the word should be.
        field: &'static str,
        /// The word.
        word: String,
    },
    /// There are more words than the note has fields, or more arguments than [`MAX_ARGUMENTS`].
    #[error("the note continues with '{0}'")]
    Longer(String),
}

/// A hash of memory, to tell whether contents are the same. Not for secrets: whoever wants two contents of one hash can make them.
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
