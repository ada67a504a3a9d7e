// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors: files on this side, strided pieces of memory on the other.

use std::path::{Path, PathBuf};

use gpureplay_format::Recording;
use gpureplay_format::layout::{AxisEntry, TensorEntry};
use gpureplay_tensors::{ElementType, Tensor, read_npy, write_npy};

use crate::error::Error;
use crate::memory::Memory;

/// `NAME=FILE`.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    name: String,
    path: PathBuf,
}

impl std::str::FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok(Named {
                name: name.into(),
                path: path.into(),
            }),
            _ => Err("expected NAME=FILE".into()),
        }
    }
}

/// A file's values for a tensor of the recording.
#[derive(Debug)]
pub(crate) struct Value {
    /// Index of the tensor.
    pub(crate) tensor: u32,
    /// Elements in C order.
    pub(crate) bytes: Vec<u8>,
}

fn find<'a>(recording: &Recording<'a>, given: &Named) -> Result<(u32, &'a TensorEntry), Error> {
    recording
        .tensor_named(&given.name)
        .ok_or_else(|| Error::Tensor(format!("the recording has no tensor {}", given.name)))
}

/// Reads the values of a tensor.
pub(crate) fn load(recording: &Recording<'_>, given: &Named) -> Result<Value, Error> {
    let (tensor, entry) = find(recording, given)?;
    let value = read_npy(&given.path)
        .map_err(|error| Error::Tensor(format!("{}: {error}", given.path.display())))?;
    let shape: Vec<u64> = recording
        .shape(entry)
        .iter()
        .map(|n| u64::from(n.get()))
        .collect();
    let element = ElementType::from_code(entry.element.into());
    if value.shape() != shape || element.map(ElementType::name) != Some(value.dtype().name()) {
        return Err(Error::Tensor(format!(
            "{}: {} {:?} does not fit {}, which is {} {shape:?}",
            given.path.display(),
            value.dtype().name(),
            value.shape(),
            given.name,
            element.map_or("unknown", ElementType::name)
        )));
    }
    Ok(Value {
        tensor,
        bytes: value.into_bytes(),
    })
}

/// Writes the value of a tensor to its file.
pub(crate) fn save(recording: &Recording<'_>, memory: &Memory, given: &Named) -> Result<(), Error> {
    let (_, entry) = find(recording, given)?;
    let bytes = gather(recording, memory, entry)?;
    let shape: Vec<u64> = recording
        .shape(entry)
        .iter()
        .map(|n| u64::from(n.get()))
        .collect();
    let bad = |what: String| Error::Tensor(format!("{}: {what}", given.name));
    let dtype = ElementType::from_code(entry.element.into());
    let dtype = dtype.ok_or_else(|| bad(format!("element type {}", entry.element)))?;
    let tensor = Tensor::new(dtype, &shape, bytes).map_err(|error| bad(error.to_string()))?;
    write(&given.path, &tensor)
}

fn write(path: &Path, tensor: &Tensor) -> Result<(), Error> {
    write_npy(path, tensor).map_err(|error| Error::Tensor(format!("{}: {error}", path.display())))
}

/// Puts a tensor's elements into memory.
pub(crate) fn scatter(
    recording: &Recording<'_>,
    memory: &mut Memory,
    value: &Value,
) -> Result<(), Error> {
    let Some(entry) = recording.tensors().get(value.tensor as usize) else {
        return Err(Error::Tensor(format!("no tensor {}", value.tensor)));
    };
    runs(recording, entry, |va, from, count| {
        let bytes = value.bytes.get(from..from + count);
        let bytes =
            bytes.ok_or_else(|| Error::Tensor("a piece is outside of its tensor".into()))?;
        memory.write(va, bytes)
    })
}

fn gather(
    recording: &Recording<'_>,
    memory: &Memory,
    entry: &TensorEntry,
) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; recording.tensor_bytes(entry).unwrap_or(0) as usize];
    runs(recording, entry, |va, from, count| {
        let bytes = out.get_mut(from..from + count);
        let bytes =
            bytes.ok_or_else(|| Error::Tensor("a piece is outside of its tensor".into()))?;
        memory.read(va, bytes)
    })?;
    Ok(out)
}

/// Calls `visit(address, offset in the array, bytes)` for each stretch that lies in one piece on both sides.
pub(crate) fn runs(
    recording: &Recording<'_>,
    entry: &TensorEntry,
    mut visit: impl FnMut(u64, usize, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let size = ElementType::from_code(entry.element.into()).map_or(1, ElementType::size);
    for piece in recording.pieces(entry).unwrap_or(&[]) {
        let axes = recording.axes(piece).unwrap_or(&[]);
        let first = piece.element.get() as usize * size as usize;
        walk(axes, piece.va.get(), first, size, &mut visit)?;
    }
    Ok(())
}

fn walk(
    axes: &[AxisEntry],
    va: u64,
    offset: usize,
    size: u32,
    visit: &mut impl FnMut(u64, usize, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some((axis, inner)) = axes.split_first() else {
        return visit(va, offset, size as usize);
    };
    let dense = axis.element_stride.get() == 1 && axis.byte_stride.get() == size;
    if inner.is_empty() && dense {
        return visit(va, offset, axis.extent.get() as usize * size as usize);
    }
    for step in 0..axis.extent.get() {
        let address = va + u64::from(step) * u64::from(axis.byte_stride.get());
        let element = step as usize * axis.element_stride.get() as usize;
        walk(
            inner,
            address,
            offset + element * size as usize,
            size,
            visit,
        )?;
    }
    Ok(())
}
