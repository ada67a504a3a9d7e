// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--state-in` and `--state-out` of a whole run: a `.safetensors` file of the memory that earlier runs changed, by address.

use std::collections::HashMap;
use std::path::Path;

use gpureplay_cuda_launch::recording::Run;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use crate::command::failure::{Failure, file};
use crate::command::weights::Archive;

/// A range of memory.
type Range = (u64, Vec<u8>);

/// The tensor that says of which run the memory is.
const OF: &str = "run";

/// Reads memory that was kept of a run.
pub(crate) fn read(path: &Path, run: &Run) -> Result<Vec<Range>, Failure> {
    let wrong = |reason: &str| Failure::Usage(format!("{}: {reason}", path.display()));
    let mut state = Vec::new();
    let mut of = None;
    for (name, bytes) in Archive::open(path)?.all().map_err(file(path))? {
        let address = name
            .strip_prefix("0x")
            .map(|digits| u64::from_str_radix(digits, 16));
        match address {
            Some(Ok(address)) => state.push((address, bytes)),
            _ if name == OF => of = Some(bytes),
            _ => return Err(wrong(&format!("{name} is no address of memory"))),
        }
    }
    if of.is_none_or(|of| of != run.structure().to_string().as_bytes()) {
        return Err(wrong("holds the state of no such run"));
    }
    Ok(state)
}

/// Writes memory that is to be kept of a run.
pub(crate) fn write(path: &Path, run: &Run, state: &[Range]) -> Result<(), Failure> {
    let of = run.structure().to_string();
    let named = state
        .iter()
        .map(|(address, bytes)| (format!("{address:#x}"), bytes.as_slice()));
    let mut views = HashMap::new();
    for (name, bytes) in named.chain([(OF.to_owned(), of.as_bytes())]) {
        let view = TensorView::new(Dtype::U8, vec![bytes.len()], bytes);
        let view = view.map_err(|error| Failure::Usage(error.to_string()))?;
        views.insert(name, view);
    }
    let bytes = safetensors::serialize(views, None);
    let bytes = bytes.map_err(|error| Failure::Usage(error.to_string()))?;
    gpureplay_host::write_atomic(path, &bytes).map_err(crate::command::failure::written(path))
}
