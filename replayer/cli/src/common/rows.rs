// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --inputs DIR --output FILE`: a row per input.

use std::path::Path;

use gpureplay_core::Limits;
use gpureplay_format::PAGE_SIZE;
use gpureplay_host::csv;
use gpureplay_library::values::element_text;
use gpureplay_library::{Tensor, TensorInfo, shown};

use crate::Result;
use crate::common::destinations::Destinations;
use crate::common::failure::Failure;

const MAX_BYTES: u64 = Limits::DEFAULT.pages * PAGE_SIZE as u64;

fn is_csv(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

pub(crate) fn claim(path: &Path, destinations: &mut Destinations) -> Result<()> {
    match is_csv(path) {
        true => destinations.claim(path),
        false => destinations.claim_tensor(path),
    }
}

pub(crate) fn fit(output: &TensorInfo, inputs: usize) -> Result<()> {
    match (output.bytes as u64).checked_mul(inputs as u64) {
        Some(all) if all <= MAX_BYTES => Ok(()),
        _ => Err(Failure::Usage(format!(
            "--output: rows of {inputs} inputs would take more than {MAX_BYTES} bytes; give fewer inputs at a time"
        ))),
    }
}

pub(crate) fn write(
    destinations: &Destinations,
    path: &Path,
    output: &TensorInfo,
    names: &[String],
    bytes: Vec<u8>,
) -> Result<()> {
    let shape = [&[names.len() as u64][..], &output.shape].concat();
    let tensor = Tensor::new(output.dtype, &shape, bytes)
        .map_err(|error| Failure::Output(format!("{}: {error}", shown(path))))?;
    match is_csv(path) {
        true => destinations.write(path, comma_separated(names, &tensor).as_bytes()),
        false => destinations.write_tensor(path, &tensor),
    }
}

fn comma_separated(names: &[String], tensor: &Tensor) -> String {
    let elements = tensor.len() / names.len().max(1);
    let heading = std::iter::once("input".to_owned());
    let mut text = csv::line(heading.chain((0..elements).map(|at| at.to_string())));
    for (row, name) in names.iter().enumerate() {
        let values = (row * elements..(row + 1) * elements).map(|at| element_text(tensor, at));
        text += &csv::line(std::iter::once(name.clone()).chain(values));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_has_a_line() {
        let tensor = Tensor::from_f32(&[2, 2], &[0.1, -1.0, f32::NAN, 3e-9]).unwrap();
        let names = ["a,b.npy".to_owned(), "c.npy".to_owned()];
        assert_eq!(
            comma_separated(&names, &tensor),
            "input,0,1\n\"a,b.npy\",0.1,-1.0\nc.npy,NaN,3e-9\n"
        );
    }

    #[test]
    fn rows_have_a_limit() {
        let output = |bytes| TensorInfo {
            name: "y".into(),
            kind: gpureplay_library::TensorKind::Output,
            dtype: gpureplay_library::ElementType::U8,
            shape: vec![bytes],
            external: false,
            bytes: bytes as usize,
        };
        assert!(fit(&output(1), MAX_BYTES as usize).is_ok());
        assert_eq!(fit(&output(MAX_BYTES), 2).unwrap_err().exit_code(), 2);
    }
}
