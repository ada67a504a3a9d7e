// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensor values by name.

use gpureplay_core::Tensors;
use gpureplay_format::Recording;

/// Bound values, and room for outputs.
#[derive(Clone, Debug, Default)]
pub struct Values {
    names: Vec<String>,
    inputs: Vec<Option<Vec<u8>>>,
    outputs: Vec<Vec<u8>>,
}

impl Values {
    /// For a file's tensors; nothing is bound.
    pub fn of(file: &[u8]) -> Self {
        let recording = Recording::parse(file).unwrap();
        let mut values = Self::default();
        for tensor in recording.tensors() {
            let bytes = recording.tensor_bytes(tensor).unwrap() as usize;
            values
                .names
                .push(recording.name(tensor.name.get()).to_string());
            values.inputs.push(None);
            values.outputs.push(vec![0; bytes]);
        }
        values
    }

    fn index(&self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap()
    }

    /// Binds a tensor.
    pub fn set(&mut self, name: &str, bytes: impl Into<Vec<u8>>) -> &mut Self {
        let index = self.index(name);
        self.inputs[index] = Some(bytes.into());
        self
    }

    /// From the last run.
    pub fn get(&self, name: &str) -> &[u8] {
        &self.outputs[self.index(name)]
    }

    /// The same, as floats.
    pub fn floats(&self, name: &str) -> Vec<f32> {
        let words = self.get(name).as_chunks::<4>().0.iter();
        words.map(|word| f32::from_le_bytes(*word)).collect()
    }
}

/// Floats as in memory.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

impl Tensors for Values {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        self.inputs.get(tensor as usize)?.as_deref()
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        self.outputs.get_mut(tensor as usize).map(Vec::as_mut_slice)
    }
}
