// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--state-in`, `--state-out`: `.safetensors` by address.

use std::collections::HashMap;
use std::path::Path;

use gpureplay_cuda_launch::recording::{Hash, Run};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use crate::command::failure::{Failure, file};
use crate::weights::Archive;

type Range = (u64, Vec<u8>);

const OF: &str = "run";

/// Hash of a run with its first memory: a state holds differences from that.
fn of(run: &Run) -> String {
    let mut text = run.structure().to_string();
    let memory = run.memory.iter();
    let memory = memory.map(|one| (one.address, one.size, one.contents));
    let variables = run.variables.iter();
    let variables = variables.map(|one| (one.address, one.size, Some(one.contents)));
    for (address, size, contents) in memory.chain(variables) {
        let contents = contents.map(|hash| hash.to_string()).unwrap_or_default();
        text += &format!(" {address:x} {size:x} {contents}");
    }
    Hash::of(text.as_bytes()).to_string()
}

pub(crate) fn read(path: &Path, run: &Run) -> Result<Vec<Range>, Failure> {
    let wrong = |reason: &str| Failure::Usage(format!("{}: {reason}", path.display()));
    let mut state = Vec::new();
    let mut held = None;
    for (name, bytes) in Archive::open(path)?.all().map_err(file(path))? {
        let address = name
            .strip_prefix("0x")
            .map(|digits| u64::from_str_radix(digits, 16));
        match address {
            Some(Ok(address)) => state.push((address, bytes)),
            _ if name == OF => held = Some(bytes),
            _ => return Err(wrong(&format!("{name} is no address of memory"))),
        }
    }
    if held.is_none_or(|held| held != of(run).as_bytes()) {
        return Err(wrong("holds the state of no such run"));
    }
    Ok(state)
}

pub(crate) fn write(path: &Path, run: &Run, state: &[Range]) -> Result<(), Failure> {
    let of = of(run);
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
