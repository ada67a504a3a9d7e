// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel images of CUDA: fatbins, cubins and PTX texts, read without a GPU.
//!
//! The bytes are those of strangers: nothing here panics. One part of an image is held at a time: at most [`MAX_IMAGE`] bytes of
//! it after decompression, the same again for a PTX text, and what it holds, bounded by [`MAX_KERNELS`], [`MAX_PARAMETERS`] and
//! [`MAX_NAMES`]. All parts together have at most [`MAX_PARTS`] bytes, and no more than the image's length allows ([`PARTS_OF_A_BYTE`]).
//! [`Allowance`] bounds the time that several images together take.
#![forbid(unsafe_code)]

mod bytes;
mod cubin;
mod cut;
mod error;
mod extent;
mod fatbin;
mod objects;
mod ptx;
mod reduce;
mod tally;

use std::borrow::Cow;

pub use error::ImageError;
pub use extent::{Extent, Format, PREFIX, extent};
pub use fatbin::{Compression, Member, MemberKind, members};
pub use objects::{Objects, objects};
pub use reduce::reduced;
pub use tally::{Allowance, MAX_KERNELS, MAX_NAME, MAX_NAMES, MAX_PARAMETERS};

/// The largest image or member that is read, in bytes after decompression.
pub const MAX_IMAGE: usize = 1 << 30;
/// All members of an image together, in bytes after decompression: several times what the largest libraries have in one image.
/// What is read of an image takes time by it.
pub const MAX_PARTS: u64 = 2 << 30;
/// What the members of an image may have together however short it is, in bytes after decompression.
pub const PARTS_OF_ANY: u64 = 64 << 20;
/// What they may have besides for each byte of the image: compilers' images grow less than twentyfold.
pub const PARTS_OF_A_BYTE: u64 = 32;

/// One parameter of a kernel: where it lies in the packed parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Bytes from the start of the packed parameters.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// What an image says of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Its mangled name.
    pub name: String,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// `__launch_bounds__` or `.maxntid`: at most these threads of a block in x, y, z; only the product counts.
    pub most_threads: Option<[u32; 3]>,
    /// `.reqntid`: exactly these threads of a block in x, y, z.
    pub required_threads: Option<[u32; 3]>,
    /// Registers of a thread; PTX has none yet.
    pub registers: Option<u32>,
    /// Bytes of the section of static shared memory, the driver's own part included.
    pub shared: u64,
}

/// A variable of a module: device memory that the driver places when it loads the image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variable {
    /// Its mangled name.
    pub name: String,
    /// Bytes, where the image says so.
    pub size: Option<u64>,
}

/// One cubin or PTX text of an image.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// Compute capability, as in `sm_90`: 90; 0 where it is not said outside the part.
    pub capability: u32,
    /// A cubin or a PTX text.
    pub kind: MemberKind,
    source: Source<'a>,
}

/// Where a part lies.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Plain(&'a [u8]),
    Member(Member<'a>),
}

/// What a part holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Kernels by the order of the image.
    pub kernels: Vec<Kernel>,
    /// Variables, sorted by name.
    pub variables: Vec<Variable>,
}

/// The cubins and PTX texts of an image, not decompressed yet. Members of other kinds (intermediate code, link options) are left
/// out.
///
/// # Errors
/// If the image is none, is cut off, or it, or all of its parts together, are larger than they may be.
pub fn parts<'a>(image: &'a [u8]) -> Result<Vec<Part<'a>>, ImageError> {
    if image.len() > MAX_IMAGE {
        return Err(ImageError::TooLarge {
            size: image.len() as u64,
        });
    }
    match Format::of(image).ok_or(ImageError::Unknown)? {
        Format::Fatbin => {
            let mut members = members(image)?;
            members.retain(|member| member.kind != MemberKind::Other);
            let size = members
                .iter()
                .fold(0u64, |size, member| size.saturating_add(member.size()));
            let most = PARTS_OF_A_BYTE.saturating_mul(image.len() as u64);
            if size > most.saturating_add(PARTS_OF_ANY).min(MAX_PARTS) {
                return Err(ImageError::TooLarge { size });
            }
            let part = |member: Member<'a>| Part {
                capability: member.capability,
                kind: member.kind,
                source: Source::Member(member),
            };
            Ok(members.into_iter().map(part).collect())
        }
        Format::Cubin => Ok(vec![Part {
            capability: 0,
            kind: MemberKind::Cubin,
            source: Source::Plain(image),
        }]),
        Format::Ptx => {
            let end = image
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(image.len());
            Ok(vec![Part {
                capability: 0,
                kind: MemberKind::Ptx,
                source: Source::Plain(&image[..end]),
            }])
        }
    }
}

/// Reads an image whole: its parts decompress.
///
/// # Errors
/// As [`parts`] and [`Part::bytes`].
pub fn check(image: &[u8]) -> Result<(), ImageError> {
    parts(image)?
        .iter()
        .try_for_each(|part| part.bytes().map(drop))
}

/// As [`check`], but only parts that the driver could take on a GPU of a compute capability (`sm_90`: 90). Works on all cores.
///
/// # Errors
/// As [`check`].
pub fn check_for(image: &[u8], capability: u32) -> Result<(), ImageError> {
    let parts = usable(image, capability)?;
    let cores = gpureplay_host::cores();
    let all = |parts: &[Part<'_>]| parts.iter().try_for_each(|part| part.bytes().map(drop));
    std::thread::scope(|scope| {
        let shares = parts.chunks(parts.len().div_ceil(cores).max(1));
        let threads: Vec<_> = shares
            .map(|share| scope.spawn(move || all(share)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// The parts that the driver could take on a GPU.
fn usable(image: &[u8], capability: u32) -> Result<Vec<Part<'_>>, ImageError> {
    let mut parts = parts(image)?;
    if Format::of(image) == Some(Format::Fatbin) {
        parts.retain(|part| match part.kind {
            MemberKind::Cubin => {
                part.capability <= capability && part.capability / 10 == capability / 10
            }
            MemberKind::Ptx => part.capability <= capability,
            MemberKind::Other => false,
        });
    }
    Ok(parts)
}

impl<'a> Part<'a> {
    /// The part itself, decompressed.
    ///
    /// # Errors
    /// If it does not decompress to the size that its header names.
    pub fn bytes(&self) -> Result<Cow<'a, [u8]>, ImageError> {
        match &self.source {
            Source::Plain(bytes) => Ok(Cow::Borrowed(bytes)),
            Source::Member(member) => member.contents(),
        }
    }

    /// Its size in bytes after decompression, as its header names it.
    fn size(&self) -> u64 {
        match &self.source {
            Source::Plain(bytes) => bytes.len() as u64,
            Source::Member(member) => member.size(),
        }
    }

    /// Kernels and variables of the part.
    ///
    /// # Errors
    /// If the part is damaged.
    pub fn contents(&self) -> Result<Contents, ImageError> {
        self.contents_within(&mut Allowance::unlimited())
    }

    /// As [`Part::contents`], within what several parts may need together.
    ///
    /// # Errors
    /// As [`Part::contents`]; [`ImageError::TooMuch`] if the allowance does not suffice.
    pub fn contents_within(&self, allowance: &mut Allowance) -> Result<Contents, ImageError> {
        allowance.bytes(self.size())?;
        match self.kind {
            MemberKind::Cubin => cubin::contents(&self.bytes()?, allowance),
            MemberKind::Ptx => ptx::contents(&self.bytes()?, allowance),
            MemberKind::Other => Ok(Contents::default()),
        }
    }
}

/// Names of all variables of an image, each once.
///
/// # Errors
/// As [`parts`].
pub fn variables(image: &[u8]) -> Result<Vec<String>, ImageError> {
    let mut names: Vec<String> = Vec::new();
    let mut allowance = Allowance::default();
    allowance.add_image(image.len());
    for part in parts(image)? {
        names.extend(
            part.contents_within(&mut allowance)?
                .variables
                .into_iter()
                .map(|variable| variable.name),
        );
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// What an image says of one kernel: the cubins first, in which registers are known.
///
/// # Errors
/// As [`parts`].
pub fn kernel(image: &[u8], name: &str) -> Result<Option<Kernel>, ImageError> {
    let mut parts = parts(image)?;
    let mut allowance = Allowance::default();
    allowance.add_image(image.len());
    parts.sort_by_key(|part| part.kind != MemberKind::Cubin);
    for part in parts {
        if let Some(kernel) = part
            .contents_within(&mut allowance)?
            .kernels
            .into_iter()
            .find(|kernel| kernel.name == name)
        {
            return Ok(Some(kernel));
        }
    }
    Ok(None)
}

/// The parts that the driver could take on a GPU, those first that it prefers.
fn parts_for(image: &[u8], capability: u32) -> Result<Vec<Part<'_>>, ImageError> {
    let mut parts = usable(image, capability)?;
    parts.sort_by_key(|part| {
        (
            part.kind != MemberKind::Cubin,
            std::cmp::Reverse(part.capability),
        )
    });
    Ok(parts)
}

/// What the driver would take from an image for a kernel on a GPU of a compute capability (`sm_90`: 90): the best cubin that
/// runs there and has the kernel, else the newest PTX that has it. The part that is meant is the one with the kernel.
///
/// # Errors
/// As [`parts`], for the parts that were looked at.
pub fn select(image: &[u8], name: &str, capability: u32) -> Result<Option<Contents>, ImageError> {
    for part in parts_for(image, capability)? {
        let contents = part.contents()?;
        if contents.kernels.iter().any(|kernel| kernel.name == name) {
            return Ok(Some(contents));
        }
    }
    Ok(None)
}
