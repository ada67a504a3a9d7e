// SPDX-License-Identifier: MIT OR Apache-2.0
//! `.safetensors` files, read in parts.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gpureplay_host::escaped;
use gpureplay_tensors::{ElementType, Tensor};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorView};

use crate::error::{Error, Result};
use crate::tensors::{TensorInfo, misfit};

/// Names in an error; `…` stands for the others.
const LISTED: usize = 8;
/// Characters of a name in an error.
const SHOWN: usize = 80;
/// Bytes of the header's length, before it.
const LENGTH: u64 = 8;
/// Bytes: some ten thousand tensors.
pub(crate) const MAX_HEADER: u64 = 4 << 20;

#[derive(Debug)]
pub(crate) struct Archive<R> {
    file: R,
    path: PathBuf,
    header: Metadata,
    /// Start of the first tensor, in bytes.
    data: u64,
}

impl<R: Read + Seek> Archive<R> {
    pub(crate) fn open(path: &Path, mut file: R) -> Result<Self> {
        let io = |error| Error::file(path, error);
        let wrong = |reason: &dyn std::fmt::Display| {
            Error::file(path, format!("not a .safetensors file: {reason}"))
        };
        let end = file.seek(SeekFrom::End(0)).map_err(io)?;
        if end < LENGTH {
            return Err(wrong(&"it is shorter than the length of its header"));
        }
        file.rewind().map_err(io)?;
        let mut length = [0; LENGTH as usize];
        file.read_exact(&mut length).map_err(io)?;
        let length = u64::from_le_bytes(length);
        if length > (end - LENGTH).min(MAX_HEADER) {
            return Err(wrong(&format!(
                "a header of {length} bytes, in a file of {end}; at most {MAX_HEADER} are read"
            )));
        }
        let mut text = Vec::new();
        let read = file.by_ref().take(length).read_to_end(&mut text);
        read.map_err(io)?;
        let header: Metadata = serde_json::from_slice(&text).map_err(|error| wrong(&error))?;
        let data = LENGTH + length;
        if data.checked_add(header.data_len() as u64) != Some(end) {
            return Err(wrong(
                &"its length is not that of the tensors in its header",
            ));
        }
        Ok(Self {
            file,
            path: path.to_path_buf(),
            header,
            data,
        })
    }

    /// Reads the tensor `name`; without `name`, that of `info`'s name, or the only one. Reads nothing of another type
    /// or shape.
    pub(crate) fn read(
        &mut self,
        name: Option<&str>,
        info: &TensorInfo,
        from: &str,
    ) -> Result<Tensor> {
        let names = match name {
            Some(_) => Vec::new(),
            None => self.header.offset_keys(),
        };
        let wanted = match (name, names.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, _) => &info.name,
        };
        let Some(found) = self.header.info(wanted) else {
            return Err(self.unknown(wanted));
        };
        let Some(dtype) = dtype(found.dtype) else {
            let reason = format!(
                "{wanted} has elements of type {:?}, which no recording has",
                found.dtype
            );
            return Err(Error::file(&self.path, reason));
        };
        let shape: Vec<u64> = found.shape.iter().map(|extent| *extent as u64).collect();
        if !info.takes(dtype, &shape) {
            return Err(misfit(info, dtype, &shape, from));
        }
        let (begin, end) = found.data_offsets;
        let io = |error| Error::file(&self.path, error);
        let at = self.data.saturating_add(begin as u64);
        self.file.seek(SeekFrom::Start(at)).map_err(io)?;
        let mut bytes = vec![0; end.saturating_sub(begin)];
        self.file.read_exact(&mut bytes).map_err(io)?;
        Tensor::new(dtype, &info.shape, bytes).map_err(|error| Error::file(&self.path, error))
    }

    fn unknown(&self, wanted: &str) -> Error {
        let mut names = self.header.offset_keys();
        names.sort_unstable();
        let shown = |name: &String| escaped(name).chars().take(SHOWN).collect();
        let mut known: Vec<String> = names.iter().take(LISTED).map(shown).collect();
        if names.len() > LISTED {
            known.push("…".into());
        }
        let reason = match known.as_slice() {
            [] => format!("has no tensor {wanted}; it has no tensors at all"),
            known => format!(
                "has no tensor {wanted}; it has {}; name one as FILE.safetensors#NAME",
                known.join(", ")
            ),
        };
        Error::file(&self.path, reason)
    }
}

pub(super) fn encode(tensors: &[(String, Tensor)]) -> std::result::Result<Vec<u8>, String> {
    let mut views = Vec::new();
    for (name, tensor) in tensors {
        let known = type_of(tensor.dtype());
        let shape = tensor.shape().iter().map(|extent| *extent as usize);
        let view = TensorView::new(known, shape.collect(), tensor.bytes());
        views.push((name, view.map_err(|error| format!("{name}: {error}"))?));
    }
    safetensors::serialize(views, None).map_err(|error| error.to_string())
}

const TYPES: [(Dtype, ElementType); 12] = [
    (Dtype::F32, ElementType::F32),
    (Dtype::F16, ElementType::F16),
    (Dtype::F64, ElementType::F64),
    (Dtype::U8, ElementType::U8),
    (Dtype::I8, ElementType::I8),
    (Dtype::U16, ElementType::U16),
    (Dtype::I16, ElementType::I16),
    (Dtype::U32, ElementType::U32),
    (Dtype::I32, ElementType::I32),
    (Dtype::U64, ElementType::U64),
    (Dtype::I64, ElementType::I64),
    (Dtype::BOOL, ElementType::Bool),
];

fn dtype(theirs: Dtype) -> Option<ElementType> {
    let mut types = TYPES.iter();
    types
        .find(|(known, _)| *known == theirs)
        .map(|(_, ours)| *ours)
}

fn type_of(ours: ElementType) -> Dtype {
    let mut types = TYPES.iter();
    let found = types.find(|(_, known)| *known == ours);
    found.map_or(Dtype::U8, |(theirs, _)| *theirs)
}
