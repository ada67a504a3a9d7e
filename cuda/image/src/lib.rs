// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel images of CUDA: fatbins, cubins and PTX texts, read without a GPU.
//!
//! The bytes are those of strangers: nothing here panics, and what is allocated is bounded by [`MAX_IMAGE`].
#![forbid(unsafe_code)]

mod bytes;
mod cubin;
mod error;
mod extent;
mod fatbin;
mod ptx;

use std::borrow::Cow;

pub use error::ImageError;
pub use extent::{Extent, Format, PREFIX, extent};
pub use fatbin::{Compression, Member, MemberKind, members};

/// The largest image or member that is read, in bytes after decompression.
pub const MAX_IMAGE: usize = 1 << 30;

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
    /// The part itself, decompressed.
    pub bytes: Cow<'a, [u8]>,
}

/// What a part holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Kernels by the order of the image.
    pub kernels: Vec<Kernel>,
    /// Variables, sorted by name.
    pub variables: Vec<Variable>,
}

/// The cubins and PTX texts of an image. Members of other kinds (intermediate code, link options) are left out.
///
/// # Errors
/// If the image is none, is cut off, or says that it is larger than it may be.
pub fn parts(image: &[u8]) -> Result<Vec<Part<'_>>, ImageError> {
    match Format::of(image).ok_or(ImageError::Unknown)? {
        Format::Fatbin => members(image)?
            .into_iter()
            .filter(|member| member.kind != MemberKind::Other)
            .map(|member| {
                Ok(Part {
                    capability: member.capability,
                    kind: member.kind,
                    bytes: member.contents()?,
                })
            })
            .collect(),
        Format::Cubin => Ok(vec![Part {
            capability: 0,
            kind: MemberKind::Cubin,
            bytes: Cow::Borrowed(image),
        }]),
        Format::Ptx => {
            let end = image
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(image.len());
            Ok(vec![Part {
                capability: 0,
                kind: MemberKind::Ptx,
                bytes: Cow::Borrowed(&image[..end]),
            }])
        }
    }
}

impl Part<'_> {
    /// Kernels and variables of the part.
    ///
    /// # Errors
    /// If the part is damaged.
    pub fn contents(&self) -> Result<Contents, ImageError> {
        match self.kind {
            MemberKind::Cubin => cubin::contents(&self.bytes),
            MemberKind::Ptx => ptx::contents(&self.bytes),
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
    for part in parts(image)? {
        names.extend(
            part.contents()?
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
    parts.sort_by_key(|part| part.kind != MemberKind::Cubin);
    for part in parts {
        if let Some(kernel) = part
            .contents()?
            .kernels
            .into_iter()
            .find(|kernel| kernel.name == name)
        {
            return Ok(Some(kernel));
        }
    }
    Ok(None)
}

/// What the driver would take from an image for a kernel on a GPU of a compute capability (`sm_90`: 90): the best cubin that
/// runs there and has the kernel, else the newest PTX that has it. The part that is meant is the one with the kernel.
///
/// # Errors
/// As [`parts`], for the parts that were looked at.
pub fn select(image: &[u8], name: &str, capability: u32) -> Result<Option<Contents>, ImageError> {
    let candidates = match Format::of(image).ok_or(ImageError::Unknown)? {
        Format::Fatbin => members(image)?,
        Format::Cubin | Format::Ptx => {
            for part in parts(image)? {
                let contents = part.contents()?;
                if contents.kernels.iter().any(|kernel| kernel.name == name) {
                    return Ok(Some(contents));
                }
            }
            return Ok(None);
        }
    };
    let mut candidates: Vec<Member<'_>> = candidates
        .into_iter()
        .filter(|member| match member.kind {
            MemberKind::Cubin => {
                member.capability <= capability && member.capability / 10 == capability / 10
            }
            MemberKind::Ptx => member.capability <= capability,
            MemberKind::Other => false,
        })
        .collect();
    candidates.sort_by_key(|member| {
        (
            member.kind != MemberKind::Cubin,
            std::cmp::Reverse(member.capability),
        )
    });
    for member in candidates {
        let part = Part {
            capability: member.capability,
            kind: member.kind,
            bytes: member.contents()?,
        };
        let contents = part.contents()?;
        if contents.kernels.iter().any(|kernel| kernel.name == name) {
            return Ok(Some(contents));
        }
    }
    Ok(None)
}
