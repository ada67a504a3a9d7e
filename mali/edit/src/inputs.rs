// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs to try.

use gpureplay_library::{Bindings, Recording, Tensor, TensorKind};

use crate::error::{EditError, Result};

/// The manifest's cases, then the first one's elements reordered.
///
/// # Errors
/// No case in the manifest, or an unusable file.
pub fn inputs(recording: &Recording, count: usize) -> Result<Vec<Bindings>> {
    let files = recording.files();
    let view = recording.verified().recording();
    let mut all = Vec::new();
    let cases = files.manifest.iter().flat_map(|manifest| &manifest.cases);
    for case in cases.take(count) {
        let mut bindings = Bindings::new(view, &files.path);
        for (name, path) in &case.inputs {
            bindings.bind_file(files, name, &files.directory.join(path))?;
        }
        all.push(bindings);
    }
    let needs = recording
        .tensors()
        .iter()
        .any(|tensor| tensor.kind == TensorKind::Input);
    if all.is_empty() && !needs {
        all.push(Bindings::new(view, &files.path));
    }
    let first = all.first().cloned().ok_or_else(|| {
        EditError::NoInput(
            "the manifest has no case, so there is no input to try a change with".into(),
        )
    })?;
    let mut seed = 1;
    while needs && all.len() < count {
        let mut bindings = first.clone();
        for tensor in recording
            .tensors()
            .iter()
            .filter(|it| it.kind == TensorKind::Input)
        {
            let case = files.case().and_then(|case| case.inputs.get(&tensor.name));
            let Some(path) = case else {
                continue;
            };
            let mut read = Bindings::new(view, &files.path);
            read.bind_file(files, &tensor.name, &files.directory.join(path))?;
            let index = recording
                .tensors()
                .iter()
                .position(|it| it.name == tensor.name);
            let bytes = index.and_then(|index| {
                gpureplay_core::Tensors::input(&mut read, index as u32).map(<[u8]>::to_vec)
            });
            let Some(bytes) = bytes else {
                continue;
            };
            let mixed = mixed(&bytes, tensor.dtype.size() as usize, &mut seed);
            let value = Tensor::new(tensor.dtype, &tensor.shape, mixed);
            let value = value.map_err(|error| EditError::NoInput(error.to_string()))?;
            bindings.bind(&tensor.name, value, "the value")?;
        }
        all.push(bindings);
    }
    Ok(all)
}

fn mixed(bytes: &[u8], size: usize, seed: &mut u64) -> Vec<u8> {
    let mut elements: Vec<&[u8]> = bytes.chunks(size.max(1)).collect();
    for at in (1..elements.len()).rev() {
        // Knuth's linear congruential generator; its high bits are the good ones.
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        elements.swap(at, (*seed >> 33) as usize % (at + 1));
    }
    elements.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_change_their_places_only() {
        let bytes: Vec<u8> = (0..64).collect();
        let mut mixed = mixed(&bytes, 4, &mut 1);
        assert_ne!(mixed, bytes);
        assert!(
            mixed
                .chunks(4)
                .all(|element| element[0] % 4 == 0 && element[3] == element[0] + 3)
        );
        mixed.sort_unstable();
        assert_eq!(mixed, bytes);
    }
}
