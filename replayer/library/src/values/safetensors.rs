// SPDX-License-Identifier: MIT OR Apache-2.0
//! `.safetensors` files: many named tensors in one file.

use std::path::Path;

use gpureplay_io::{ElementType, MAX_NPY_BYTES, Tensor};
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

fn dtype(dtype: Dtype) -> Option<ElementType> {
    Some(match dtype {
        Dtype::F32 => ElementType::F32,
        Dtype::F16 => ElementType::F16,
        Dtype::F64 => ElementType::F64,
        Dtype::U8 => ElementType::U8,
        Dtype::I8 => ElementType::I8,
        Dtype::U16 => ElementType::U16,
        Dtype::I16 => ElementType::I16,
        Dtype::U32 => ElementType::U32,
        Dtype::I32 => ElementType::I32,
        Dtype::U64 => ElementType::U64,
        Dtype::I64 => ElementType::I64,
        Dtype::BOOL => ElementType::Bool,
        _ => return None,
    })
}
