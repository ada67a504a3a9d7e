// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUDA's kernel images, read without a GPU.
//!
//! Bytes may be hostile: nothing panics. One part is held at a time: at most [`MAX_IMAGE`] bytes, [`MAX_KERNELS`],
//! [`MAX_PARAMETERS`], [`MAX_NAMES`]. [`MAX_PARTS`] and [`PARTS_OF_A_BYTE`] bound all parts, [`Allowance`] the time of
//! several images.
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

/// Decompressed bytes of an image or member.
pub const MAX_IMAGE: usize = 1 << 30;
/// Decompressed bytes of an image's members: several times the largest libraries'. Bounds the reading time.
pub const MAX_PARTS: u64 = 2 << 30;
/// Decompressed bytes for any length of image.
pub const PARTS_OF_ANY: u64 = 64 << 20;
/// More per byte of image: compilers' grow less than twentyfold.
pub const PARTS_OF_A_BYTE: u64 = 32;

/// A kernel's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// In the packed parameters.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// What an image says of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Mangled name.
    pub name: String,
    /// In order.
    pub parameters: Vec<Parameter>,
    /// `__launch_bounds__` or `.maxntid`, in x, y, z; only the product counts.
    pub most_threads: Option<[u32; 3]>,
    /// `.reqntid`, in x, y, z.
    pub required_threads: Option<[u32; 3]>,
    /// Per thread; not in PTX.
    pub registers: Option<u32>,
    /// Static bytes, the driver's included.
    pub shared: u64,
}

/// Placed by the driver at loading.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variable {
    /// Mangled name.
    pub name: String,
    /// Bytes, if known.
    pub size: Option<u64>,
}

/// A cubin or PTX text.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// 90 is `sm_90`; 0 if unknown outside.
    pub capability: u32,
    /// A cubin or PTX text.
    pub kind: MemberKind,
    source: Source<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Plain(&'a [u8]),
    Member(Member<'a>),
}

/// What a part holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// In the image's order.
    pub kernels: Vec<Kernel>,
    /// Sorted by name.
    pub variables: Vec<Variable>,
}

/// Cubins and PTX texts, not decompressed; without intermediate code and link options.
///
/// # Errors
/// No image, cut off, or too large.
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

/// Reads all parts.
///
/// # Errors
/// As [`parts`] and [`Part::bytes`].
pub fn check(image: &[u8]) -> Result<(), ImageError> {
    parts(image)?
        .iter()
        .try_for_each(|part| part.bytes().map(drop))
}

/// [`check`] of parts for a capability, on all cores.
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
    /// Decompressed.
    ///
    /// # Errors
    /// Not the stated size.
    pub fn bytes(&self) -> Result<Cow<'a, [u8]>, ImageError> {
        match &self.source {
            Source::Plain(bytes) => Ok(Cow::Borrowed(bytes)),
            Source::Member(member) => member.contents(),
        }
    }

    fn size(&self) -> u64 {
        match &self.source {
            Source::Plain(bytes) => bytes.len() as u64,
            Source::Member(member) => member.size(),
        }
    }

    /// # Errors
    /// The part is damaged.
    pub fn contents(&self) -> Result<Contents, ImageError> {
        self.contents_within(&mut Allowance::unlimited())
    }

    /// [`Part::contents`] within a common allowance.
    ///
    /// # Errors
    /// As [`Part::contents`]; [`ImageError::TooMuch`].
    pub fn contents_within(&self, allowance: &mut Allowance) -> Result<Contents, ImageError> {
        allowance.bytes(self.size())?;
        match self.kind {
            MemberKind::Cubin => cubin::contents(&self.bytes()?, allowance),
            MemberKind::Ptx => ptx::contents(&self.bytes()?, allowance),
            MemberKind::Other => Ok(Contents::default()),
        }
    }
}

/// Names of all variables, each once.
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

/// Cubins first: they have registers.
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

/// Preferred ones first.
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

/// Code as the driver takes it, by capability (90 is `sm_90`): the best cubin with the kernel, else the newest PTX.
///
/// # Errors
/// As [`parts`], for looked-at parts.
pub fn select(image: &[u8], name: &str, capability: u32) -> Result<Option<Contents>, ImageError> {
    for part in parts_for(image, capability)? {
        let contents = part.contents()?;
        if contents.kernels.iter().any(|kernel| kernel.name == name) {
            return Ok(Some(contents));
        }
    }
    Ok(None)
}
