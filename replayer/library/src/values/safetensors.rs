// SPDX-License-Identifier: MIT OR Apache-2.0
//! `.safetensors` files: many named tensors in one file.

use std::path::Path;

use gpureplay_io::{DType, MAX_NPY_BYTES, Tensor};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::error::{Error, Result};
use crate::tensors::TensorInfo;

/// Names that an error lists; more are counted.
const LISTED: usize = 8;

/// The tensor `name` of a file's contents; without a name the tensor's own, or the file's only one.
pub(super) fn parse(
    path: &Path,
    name: Option<&str>,
    info: &TensorInfo,
    bytes: &[u8],
) -> Result<Tensor> {
    let wrong = |reason: String| Error::file(path, reason);
    if bytes.len() as u64 > MAX_NPY_BYTES {
        return Err(wrong(format!(
            "larger than the limit of {MAX_NPY_BYTES} bytes"
        )));
    }
    let file = SafeTensors::deserialize(bytes)
        .map_err(|error| wrong(format!("not a .safetensors file: {error}")))?;
    let mut names: Vec<&str> = file.names().into_iter().map(AsRef::as_ref).collect();
    names.sort_unstable();
    let wanted = match (name, names.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, _) => &info.name,
    };
    let Ok(view) = file.tensor(wanted) else {
        let mut known: Vec<&str> = names.iter().take(LISTED).copied().collect();
        if names.len() > LISTED {
            known.push("…");
        }
        return Err(wrong(match known.as_slice() {
            [] => format!("has no tensor {wanted}; it has no tensors at all"),
            known => format!(
                "has no tensor {wanted}; it has {}; name one as FILE.safetensors#NAME",
                known.join(", ")
            ),
        }));
    };
    let Some(dtype) = dtype(view.dtype()) else {
        return Err(wrong(format!(
            "{wanted} has elements of type {:?}, which no recording has",
            view.dtype()
        )));
    };
    let shape: Vec<u64> = view.shape().iter().map(|extent| *extent as u64).collect();
    Tensor::new(dtype, &shape, view.data().to_vec()).map_err(|error| wrong(error.to_string()))
}

/// A file with these tensors.
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

/// The types that both sides have.
const TYPES: [(Dtype, DType); 12] = [
    (Dtype::F32, DType::F32),
    (Dtype::F16, DType::F16),
    (Dtype::F64, DType::F64),
    (Dtype::U8, DType::U8),
    (Dtype::I8, DType::I8),
    (Dtype::U16, DType::U16),
    (Dtype::I16, DType::I16),
    (Dtype::U32, DType::U32),
    (Dtype::I32, DType::I32),
    (Dtype::U64, DType::U64),
    (Dtype::I64, DType::I64),
    (Dtype::BOOL, DType::Bool),
];

fn dtype(theirs: Dtype) -> Option<DType> {
    let mut types = TYPES.iter();
    types.find(|(known, _)| *known == theirs).map(|(_, ours)| *ours)
}

fn type_of(ours: DType) -> Dtype {
    let mut types = TYPES.iter();
    let found = types.find(|(_, known)| *known == ours);
    found.map_or(Dtype::U8, |(theirs, _)| *theirs)
}
