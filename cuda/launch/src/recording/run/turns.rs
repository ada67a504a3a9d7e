// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a run holds for other inputs, by later turns.

use serde::{Deserialize, Serialize};

use super::{Kernel, Operation, Rows};
use crate::recording::Hash;

/// A later turn: the host's copies, and parameters that differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Chunks, of the run's sizes.
    pub inputs: Vec<Hash>,
    /// Of each output.
    pub outputs: Vec<Hash>,
    /// Differing words of [`Operation::host_bytes`]: operation, offset in bytes, value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<[u32; 3]>,
}

/// Comparison of a run with later turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// Differing words of the second turn, without addresses.
    pub words: u32,
    /// Differing addresses.
    pub addresses: u32,
    /// Reproduced turns with other inputs.
    pub others: u32,
    /// Why other inputs fail, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Number from the host on which results depend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// Name.
    pub name: String,
    /// Operation, offset in bytes.
    pub places: Vec<[u32; 2]>,
}

impl Operation {
    /// Parameters of a launch, addresses of copies: the host may compute others.
    #[must_use]
    pub fn host_bytes(&self) -> Vec<u8> {
        match self {
            Self::Launch { parameters, .. } => parameters.clone(),
            Self::Set { address, .. } | Self::In { address, .. } | Self::Out { address, .. } => {
                address.to_le_bytes().to_vec()
            }
            Self::Copy { to, from, .. } => [to.to_le_bytes(), from.to_le_bytes()].concat(),
            _ => Vec::new(),
        }
    }

    pub(super) fn host_size(&self) -> usize {
        match self {
            Self::Launch { parameters, .. } => parameters.len(),
            Self::Set { .. } | Self::In { .. } | Self::Out { .. } => 8,
            Self::Copy { .. } => 16,
            _ => 0,
        }
    }

    /// Replaces [`Operation::host_bytes`] by as many bytes.
    pub fn set_host_bytes(&mut self, bytes: &[u8]) {
        let word = |index: usize| {
            let word = bytes.as_chunks::<8>().0.get(index);
            word.map(|word| u64::from_le_bytes(*word))
        };
        match self {
            Self::Launch { parameters, .. } if parameters.len() == bytes.len() => {
                parameters.copy_from_slice(bytes);
            }
            Self::Set { address, .. } | Self::In { address, .. } | Self::Out { address, .. } => {
                *address = word(0).unwrap_or(*address);
            }
            Self::Copy { to, from, .. } => {
                *to = word(0).unwrap_or(*to);
                *from = word(1).unwrap_or(*from);
            }
            _ => {}
        }
    }
}

/// Word at an offset; zeros lie after the end.
#[must_use]
pub fn word_at(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    for (to, from) in word.iter_mut().zip(bytes.iter().skip(offset)) {
        *to = *from;
    }
    u32::from_le_bytes(word)
}

/// Puts a word into bytes, as far as they go.
pub fn put_word(bytes: &mut [u8], offset: usize, value: u32) {
    let rest = bytes.iter_mut().skip(offset);
    for (to, from) in rest.zip(value.to_le_bytes()) {
        *to = from;
    }
}

/// Words that differ between turns of one structure: operation, offset, value in the second.
#[must_use]
pub fn differing(one: &[Operation], other: &[Operation]) -> Vec<[u32; 3]> {
    let mut words = Vec::new();
    for (number, (one, other)) in (0u32..).zip(one.iter().zip(other)) {
        let (one, other) = (one.host_bytes(), other.host_bytes());
        for (offset, at) in (0..other.len()).step_by(4).zip((0u32..).step_by(4)) {
            let value = word_at(&other, offset);
            if word_at(&one, offset) != value {
                words.push([number, at, value]);
            }
        }
    }
    words
}

/// Common to turns of the same work: kernels, images, operations, all sizes, in order; no parameters and addresses.
/// `images` has hashes.
#[must_use]
pub fn structure(
    kernels: &[Kernel],
    images: &[Hash],
    [inputs, outputs]: [&[u64]; 2],
    operations: &[Operation],
) -> Hash {
    let mut text = Vec::new();
    for kernel in kernels {
        let image = images.get(kernel.image as usize);
        text.extend(image.map_or([0; 32], |hash| hash.0));
        text.extend((kernel.name.len() as u64).to_le_bytes());
        text.extend(kernel.name.bytes());
    }
    let mut put = |tag: u8, words: &[u64]| {
        text.push(tag);
        text.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    };
    for sizes in [inputs, outputs] {
        put(11, &[sizes.len() as u64]);
        put(12, sizes);
    }
    let lie = |rows: &Option<Rows>| {
        let rows = rows.map(|rows| {
            let [[to, above], [from, over]] = [rows.to, rows.from];
            vec![rows.width, rows.height, rows.depth, to, above, from, over]
        });
        rows.unwrap_or_default()
    };
    for operation in operations {
        match operation {
            Operation::Launch {
                stream,
                kernel,
                grid,
                block,
                shared,
                parameters,
                attributes,
            } => {
                let [x, y, z] = grid.map(u64::from);
                let [u, v, w] = block.map(u64::from);
                let size = parameters.len() as u64;
                let [stream, kernel, shared] =
                    [stream, kernel, shared].map(|word| u64::from(*word));
                put(0, &[stream, kernel, x, y, z, u, v, w, shared, size]);
                // Number and at most three words; garbage may follow.
                for attribute in attributes.as_chunks::<72>().0 {
                    let value = [8, 12, 16].map(|at| u64::from(word_at(attribute, at)));
                    put(attribute[0], &value);
                }
            }
            Operation::Set {
                stream,
                pitch,
                value,
                element,
                width,
                height,
                ..
            } => {
                let [stream, value, element] =
                    [stream, value, element].map(|word| u64::from(*word));
                put(2, &[stream, *pitch, value, element, *width, *height]);
            }
            Operation::In {
                stream,
                input,
                rows,
                ..
            } => {
                put(3, &[u64::from(*stream), u64::from(*input)]);
                put(13, &lie(rows));
            }
            Operation::Out {
                stream,
                output,
                rows,
                ..
            } => {
                put(4, &[u64::from(*stream), u64::from(*output)]);
                put(13, &lie(rows));
            }
            Operation::Copy {
                stream, size, rows, ..
            } => {
                put(5, &[u64::from(*stream), *size]);
                put(13, &lie(rows));
            }
            Operation::Record { stream, event } => put(6, &[u64::from(*stream), u64::from(*event)]),
            Operation::Wait { stream, event } => put(7, &[u64::from(*stream), u64::from(*event)]),
            Operation::HostStream { stream } => put(8, &[u64::from(*stream)]),
            Operation::HostEvent { event } => put(9, &[u64::from(*event)]),
            Operation::HostAll {} => put(10, &[]),
        }
    }
    Hash::of(&text)
}

#[cfg(test)]
mod tests {
    use super::{Operation, differing, put_word, structure, word_at};
    use crate::recording::{Hash, Kernel};

    fn launch(parameters: &[u8], block: u32) -> Operation {
        Operation::Launch {
            stream: 0,
            kernel: 0,
            grid: [1; 3],
            block: [block, 1, 1],
            shared: 0,
            parameters: parameters.to_vec(),
            attributes: Vec::new(),
        }
    }

    #[test]
    fn words_that_differ_are_found_up_to_a_ragged_end() {
        let one = [
            launch(&[1, 0, 0, 0, 2, 0, 0, 0, 3], 32),
            Operation::HostAll {},
        ];
        let mut other = [
            launch(&[1, 0, 0, 0, 9, 0, 0, 0, 7], 32),
            Operation::HostAll {},
        ];
        assert_eq!(differing(&one, &other), [[0, 4, 9], [0, 8, 7]]);
        let mut bytes = other[0].host_bytes();
        put_word(&mut bytes, 4, 2);
        put_word(&mut bytes, 8, 3);
        assert_eq!((bytes.len(), word_at(&bytes, 8)), (9, 3));
        other[0].set_host_bytes(&bytes);
        assert_eq!(one, other);
    }

    #[test]
    fn addresses_of_copies_are_words_and_sizes_are_structure() {
        let copy = |to, from, size| Operation::Copy {
            stream: 0,
            to,
            from,
            size,
            rows: None,
        };
        let (one, other) = ([copy(1 << 44, 5, 16)], [copy(1 << 44, 6 << 32 | 5, 16)]);
        assert_eq!(differing(&one, &other), [[0, 12, 6]]);
        let none = [&[] as &[u64]; 2];
        let of = |operations: &[Operation]| structure(&[], &[], none, operations);
        assert_eq!(of(&one), of(&other));
        assert_ne!(of(&one), of(&[copy(1 << 44, 5, 17)]));
    }

    #[test]
    fn kernels_images_and_sizes_of_inputs_are_structure() {
        let of = |name: &str, image: &[u8], input: u64, operation: Operation| {
            let kernel = Kernel {
                name: name.into(),
                image: 0,
                layout: Vec::new(),
                attributes: Vec::new(),
            };
            let images = [Hash::of(image)];
            structure(&[kernel], &images, [&[input], &[]], &[operation])
        };
        let one = of("a", b"image", 8, launch(&[1], 32));
        assert_eq!(one, of("a", b"image", 8, launch(&[2], 32)));
        assert_ne!(one, of("b", b"image", 8, launch(&[1], 32)));
        assert_ne!(one, of("a", b"other", 8, launch(&[1], 32)));
        assert_ne!(one, of("a", b"image", 4, launch(&[1], 32)));
        assert_ne!(one, of("a", b"image", 8, launch(&[1], 64)));
    }
}
