// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outputs as `.npy`, raw `.bin` or `.json`.

use std::path::Path;

use gpureplay_io::{Element, Tensor, encode_npy, write_atomic};

use crate::error::{Error, Result};

/// Writes a tensor; the name says how: `.bin` or `.raw` (elements only), `.json` (type, shape, flat data), otherwise `.npy`.
/// The file appears whole or not at all.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, tensor: &Tensor) -> Result<()> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let bytes = match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("bin" | "raw") => tensor.bytes().to_vec(),
        Some("json") => json(tensor).into_bytes(),
        _ => encode_npy(tensor),
    };
    write_atomic(path, &bytes).map_err(|error| Error::Write {
        path: path.to_path_buf(),
        reason: error.to_string(),
    })
}

/// Numbers as short as they can be and still come back exactly; JSON has no NaN and no infinity, they become null.
fn json(tensor: &Tensor) -> String {
    let number = |index: usize, value: f64| match tensor.dtype().is_float() {
        true if !value.is_finite() => "null".to_owned(),
        true if tensor.dtype().bytes() == 8 => format!("{value:?}"),
        true => format!("{:?}", value as f32),
        // 64-bit integers do not fit into a double.
        false if tensor.dtype().name() == "u64" => tensor.bits(index).to_string(),
        false if tensor.dtype().name() == "i64" => (tensor.bits(index) as i64).to_string(),
        false => format!("{value:.0}"),
    };
    let data: Vec<String> = (0..)
        .zip(tensor.values())
        .map(|(index, value)| number(index, value))
        .collect();
    let shape: Vec<String> = tensor.shape().iter().map(u64::to_string).collect();
    format!(
        "{{\"type\": \"{}\", \"shape\": [{}], \"data\": [{}]}}\n",
        tensor.dtype().name(),
        shape.join(", "),
        data.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use gpureplay_io::{DType, Tensor};

    use super::json;

    #[test]
    fn json_keeps_every_value() {
        let tensor = Tensor::from_f32(&[2, 2], &[0.1, -1.0, f32::NAN, 3e-9]).unwrap();
        let wanted = "{\"type\": \"f32\", \"shape\": [2, 2], \"data\": [0.1, -1.0, null, 3e-9]}\n";
        assert_eq!(json(&tensor), wanted);
        let bytes = u64::MAX.to_le_bytes().to_vec();
        let large = Tensor::new(DType::U64, &[1], bytes).unwrap();
        assert!(json(&large).contains("[18446744073709551615]"));
    }
}
