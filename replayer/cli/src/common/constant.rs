// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outputs that no input affects.

use gpureplay_edit::constant_outputs;
use gpureplay_library::{Recording, escaped};

pub(crate) fn remarks(recording: &Recording) -> Vec<(String, String)> {
    let outputs = constant_outputs(recording).into_iter();
    outputs
        .map(|name| {
            let text = format!(
                "output `{}` is the same for all inputs: no job that computes it reads an input, or what was computed from one",
                escaped(&name)
            );
            (name, text)
        })
        .collect()
}
