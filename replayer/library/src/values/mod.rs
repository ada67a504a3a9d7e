// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensor files, in and out.

mod image;
#[cfg(not(feature = "pictures"))]
#[path = "no_picture.rs"]
mod picture;
#[cfg(feature = "pictures")]
mod picture;
mod safetensors;
mod write;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Cursor, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gpureplay_host::{escaped, shown};
use gpureplay_tensors::{
    Element, ElementType, MAX_NPY_PREFIX, NpyError, Tensor, parse_npy, read_npy, read_npy_if,
};

use crate::error::{Error, Result};
use crate::package::open::MAX_BYTES;
use crate::tensors::{TensorInfo, misfit};

pub(crate) use self::safetensors::Archive;
pub use image::{Channels, ImageFormat, Resize, picture_remark};
pub use write::{
    OutputFormat, STANDARD_OUTPUT, element_text, encode, encode_all, is_standard_output,
};

/// Pixels of width and height.
const MAX_EXTENT: u32 = 1 << 14;

const NPY_MAGIC: &[u8] = b"\x93NUMPY";

/// Standard input's name.
pub const STANDARD_INPUT: &str = "-";

pub(crate) fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Npy,
    Raw,
    Safetensors,
    Picture,
    /// `.npy` by its first bytes, or else raw.
    Unnamed,
}

impl Kind {
    fn of(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("bin" | "raw") => Self::Raw,
            Some("safetensors") => Self::Safetensors,
            Some("png" | "jpg" | "jpeg") => Self::Picture,
            Some("npy") => Self::Npy,
            _ => Self::Unnamed,
        }
    }
}

pub(crate) fn is_safetensors(path: &Path) -> bool {
    Kind::of(path) == Kind::Safetensors
}

/// Splits `weights.safetensors#conv1.weight` into file and name.
pub fn split(path: &Path) -> (&Path, Option<&str>) {
    const MARK: &[u8] = b".safetensors#";
    let bytes = path.as_os_str().as_bytes();
    let found = bytes.windows(MARK.len()).position(|part| part == MARK);
    let parts = found.and_then(|at| bytes.split_at_checked(at + MARK.len() - 1));
    let parts =
        parts.and_then(|(file, name)| Some((file, std::str::from_utf8(name.get(1..)?).ok()?)));
    match parts {
        Some((file, name)) => (Path::new(OsStr::from_bytes(file)), Some(name)),
        None => (path, None),
    }
}

/// Reads a value; the name gives the kind: `.npy`, `.bin` or `.raw` (elements of the declared type in C order,
/// little-endian), `.safetensors` (`FILE.safetensors#NAME`, or the tensor's own name), `.png` or `.jpg` as the
/// manifest says. `-` is standard input. Other names are `.npy` files if they begin as one, and raw otherwise.
///
/// # Errors
/// The file is missing, is not what its name says, or has another size than the tensor, or (`.npy`, `.safetensors`)
/// another type or shape.
pub fn read(path: &Path, info: &TensorInfo, image: Option<&ImageFormat>) -> Result<Tensor> {
    read_with(|path| File::open(path), split(path), info, image)
}

pub(crate) fn read_with(
    open: impl FnOnce(&Path) -> std::io::Result<File>,
    (file, name): (&Path, Option<&str>),
    info: &TensorInfo,
    image: Option<&ImageFormat>,
) -> Result<Tensor> {
    if is_standard_input(file) {
        return unnamed(Path::new("standard input"), std::io::stdin().lock(), info);
    }
    let opened = open(file).map_err(|error| Error::file(file, error))?;
    match Kind::of(file) {
        Kind::Npy => npy(file, opened, info),
        Kind::Unnamed => unnamed(file, opened, info),
        Kind::Raw => raw(file, info, &bytes(file, opened, info.bytes as u64)?),
        Kind::Safetensors => {
            let from = match name {
                Some(name) => format!("{}#{}", shown(file), escaped(name)),
                None => shown(file),
            };
            Archive::open(file, opened)?.read(name, info, &from)
        }
        Kind::Picture => image::read(file, opened, info, image),
    }
}

/// Reads only the header if type or shape differ.
pub(crate) fn npy(path: &Path, file: impl Read, info: &TensorInfo) -> Result<Tensor> {
    let fits = |dtype: ElementType, shape: &[u64]| info.takes(dtype, shape);
    let read = read_npy_if(file, fits).map_err(|error| match error {
        NpyError::Unwanted { dtype, shape } => misfit(info, dtype, &shape, &shown(path)),
        NpyError::Io { source, .. } => Error::file(path, source),
        error => Error::file(path, error),
    })?;
    Tensor::new(info.dtype, &info.shape, read.into_bytes())
        .map_err(|error| Error::file(path, error))
}

fn unnamed(path: &Path, mut file: impl Read, info: &TensorInfo) -> Result<Tensor> {
    let mut start = Vec::new();
    let wanted = NPY_MAGIC.len() as u64;
    let begun = file.by_ref().take(wanted).read_to_end(&mut start);
    begun.map_err(|error| Error::file(path, error))?;
    // `PK` begins an archive of several arrays, for which the reader has advice.
    let is_npy = start == NPY_MAGIC || start.starts_with(b"PK");
    let whole = Cursor::new(start).chain(file);
    match is_npy {
        true => npy(path, whole, info),
        false => raw(path, info, &bytes(path, whole, info.bytes as u64)?),
    }
}

#[derive(Debug)]
pub(crate) enum Contents {
    One(Vec<u8>),
    Many(Box<Archive<Cursor<Vec<u8>>>>),
}

impl Contents {
    pub(crate) fn new(file: &Path, bytes: Vec<u8>) -> Result<Self> {
        Ok(match Kind::of(file) {
            Kind::Safetensors => Self::Many(Archive::open(file, Cursor::new(bytes))?.into()),
            _ => Self::One(bytes),
        })
    }

    pub(crate) fn value(
        &mut self,
        file: &Path,
        name: Option<&str>,
        info: &TensorInfo,
    ) -> Result<Tensor> {
        match (self, Kind::of(file)) {
            (Self::Many(archive), _) => archive.read(name, info, &shown(file)),
            (Self::One(bytes), Kind::Raw) => raw(file, info, bytes),
            (Self::One(bytes), Kind::Unnamed) if !bytes.starts_with(NPY_MAGIC) => {
                raw(file, info, bytes)
            }
            (Self::One(_), Kind::Picture) => Err(Error::file(file, "a weight cannot be a picture")),
            (Self::One(bytes), _) => parse_npy(bytes).map_err(|error| Error::file(file, error)),
        }
    }
}

/// `None` if `wanted` refuses type and shape or values exceed `limit` bytes; then only the header is read.
///
/// # Errors
/// The file is missing or not an `.npy` file.
pub fn read_if(
    path: &Path,
    limit: u64,
    mut wanted: impl FnMut(ElementType, &[u64]) -> bool,
) -> Result<Option<Tensor>> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    let fits = |dtype: ElementType, shape: &[u64]| {
        let elements = shape
            .iter()
            .try_fold(1u64, |all, extent| all.checked_mul(*extent));
        let bytes = elements.and_then(|elements| elements.checked_mul(dtype.bytes() as u64));
        wanted(dtype, shape) && bytes.is_some_and(|bytes| bytes <= limit)
    };
    match read_npy_if(file, fits) {
        Ok(tensor) => Ok(Some(tensor)),
        Err(NpyError::Unwanted { .. }) => Ok(None),
        Err(NpyError::Io { source, .. }) => Err(Error::file(path, source)),
        Err(error) => Err(Error::file(path, error)),
    }
}

/// # Errors
/// The file is missing or not an `.npy` file.
pub fn read_any(path: &Path) -> Result<Tensor> {
    read_npy(path).map_err(|error| match error {
        NpyError::Io { source, .. } => Error::file(path, source),
        NpyError::InFile { source, .. } => Error::file(path, source),
        error => Error::file(path, error),
    })
}

/// Reads at most one byte more than `limit`, which shows that the file is longer.
pub(crate) fn bytes(path: &Path, file: impl Read, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limited = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    limited.map_err(|error| Error::file(path, error))?;
    Ok(bytes)
}

pub(crate) fn most_bytes(file: &Path, info: &TensorInfo) -> u64 {
    match Kind::of(file) {
        Kind::Raw => info.bytes as u64,
        Kind::Npy | Kind::Unnamed => (info.bytes as u64).saturating_add(MAX_NPY_PREFIX),
        Kind::Safetensors | Kind::Picture => MAX_BYTES,
    }
}

fn raw(path: &Path, info: &TensorInfo, bytes: &[u8]) -> Result<Tensor> {
    if bytes.len() != info.bytes {
        let found = match bytes.len() {
            more if more > info.bytes => "more".to_owned(),
            less => less.to_string(),
        };
        return Err(Error::file(
            path,
            format!(
                "{found} bytes, but {} {info} has {}; a raw file holds the elements and nothing else (numpy.save makes .npy files)",
                info.name, info.bytes
            ),
        ));
    }
    let tensor = Tensor::new(info.dtype, &info.shape, bytes.to_vec());
    tensor.map_err(|error| Error::file(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_the_file() {
        let split = |text| {
            let (file, name) = split(Path::new(text));
            (file.display().to_string(), name.map(str::to_owned))
        };
        assert_eq!(split("w.npy"), ("w.npy".into(), None));
        assert_eq!(split("a#b/w.npy"), ("a#b/w.npy".into(), None));
        assert_eq!(
            split("d/w.safetensors#conv1.weight"),
            ("d/w.safetensors".into(), Some("conv1.weight".into()))
        );
    }
}
