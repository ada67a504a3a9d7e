// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outputs as `.npy`, raw `.bin` or `.json`.

use std::path::Path;

use gpureplay_tensors::{Element, Tensor, encode_npy};

use crate::error::{Error, Result};
use crate::number::Number;

/// Standard output's name.
pub const STANDARD_OUTPUT: &str = "-";

/// The path names standard output.
pub fn is_standard_output(path: &Path) -> bool {
    [
        STANDARD_OUTPUT,
        "/dev/stdout",
        "/dev/fd/1",
        "/proc/self/fd/1",
    ]
    .iter()
    .any(|name| path == Path::new(name))
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Also standard output, devices and pipes.
    Npy,
    /// `.bin` or `.raw`: the elements in C order, little-endian.
    Raw,
    /// Type, shape, flat data. NaN and infinities are strings: "NaN", "Infinity", "-Infinity".
    Json,
}

impl OutputFormat {
    /// # Errors
    /// The name says no format.
    pub fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("npy") => Ok(Self::Npy),
            Some("bin" | "raw") => Ok(Self::Raw),
            Some("json") => Ok(Self::Json),
            _ if is_standard_output(path) => Ok(Self::Npy),
            _ => match std::fs::metadata(path) {
                Ok(found) if !found.is_file() && !found.is_dir() => Ok(Self::Npy),
                _ => Err(Error::Format {
                    path: path.to_path_buf(),
                }),
            },
        }
    }

    fn encode(self, tensor: &Tensor) -> Vec<u8> {
        match self {
            Self::Npy => encode_npy(tensor),
            Self::Raw => tensor.bytes().to_vec(),
            Self::Json => json(tensor).into_bytes(),
        }
    }
}

/// # Errors
/// The name says no format.
pub fn encode(path: &Path, tensor: &Tensor) -> Result<Vec<u8>> {
    Ok(OutputFormat::of(path)?.encode(tensor))
}

/// `path` names the file in errors.
///
/// # Errors
/// They cannot be in one file.
pub fn encode_all(path: &Path, tensors: &[(String, Tensor)]) -> Result<Vec<u8>> {
    super::safetensors::encode(tensors).map_err(|reason| Error::Write {
        path: path.to_path_buf(),
        reason,
    })
}

/// The shortest that gives this element.
pub fn element_text(tensor: &Tensor, index: usize) -> String {
    let value = tensor.value(index);
    match tensor.dtype().is_float() {
        true if tensor.dtype().bytes() == 8 => format!("{value:?}"),
        true => format!("{:?}", value as f32),
        // 64-bit integers do not fit into a double.
        false if tensor.dtype().name() == "u64" => tensor.bits(index).to_string(),
        false if tensor.dtype().name() == "i64" => (tensor.bits(index) as i64).to_string(),
        false => format!("{value:.0}"),
    }
}

fn json(tensor: &Tensor) -> String {
    let number =
        |(index, value): (usize, f64)| match tensor.dtype().is_float() && !value.is_finite() {
            true => format!("\"{}\"", Number(value).name()),
            false => element_text(tensor, index),
        };
    let data: Vec<String> = tensor.values().enumerate().map(number).collect();
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
    use gpureplay_tensors::{ElementType, Tensor};

    use super::*;

    #[test]
    fn json_keeps_every_value() {
        let tensor = Tensor::from_f32(&[2, 2], &[0.1, f32::NEG_INFINITY, f32::NAN, 3e-9]).unwrap();
        let wanted = "{\"type\": \"f32\", \"shape\": [2, 2], \"data\": [0.1, \"-Infinity\", \"NaN\", 3e-9]}\n";
        assert_eq!(json(&tensor), wanted);
        let bytes = u64::MAX.to_le_bytes().to_vec();
        let large = Tensor::new(ElementType::U64, &[1], bytes).unwrap();
        assert!(json(&large).contains("[18446744073709551615]"));
    }

    #[test]
    fn a_name_says_the_format_or_is_refused() {
        let format = |name: &str| OutputFormat::of(Path::new(name)).ok();
        assert_eq!(format("a.npy"), Some(OutputFormat::Npy));
        assert_eq!(format("a.BIN"), Some(OutputFormat::Raw));
        assert_eq!(format("a.json"), Some(OutputFormat::Json));
        for npy in ["-", "/dev/stdout", "/dev/null"] {
            assert_eq!(format(npy), Some(OutputFormat::Npy), "{npy}");
        }
        for none in ["a.png", "a.safetensors", "a.txt", "a", "", "/"] {
            assert_eq!(format(none), None, "{none}");
        }
    }
}
