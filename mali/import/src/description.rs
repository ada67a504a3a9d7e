// SPDX-License-Identifier: MIT OR Apache-2.0
//! TOML files that name tensors and group chains into segments.

use gpureplay_format::{ElementType, SegmentKind, TensorKind};
use serde::Deserialize;

use crate::{Chain, Ranges};

const BUILT_IN: [&str; 2] = [
    include_str!("../descriptions/mnist.toml"),
    include_str!("../descriptions/alexnet.toml"),
];

/// Why a description cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// No TOML, or a field is missing or unknown.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// Unknown kind or element type.
    #[error("{what} {name:?} of {of:?} is not known; use {known}")]
    Unknown {
        /// What is unknown.
        what: &'static str,
        /// Name.
        name: String,
        /// Tensor or segment.
        of: String,
        /// Known names.
        known: String,
    },
    /// Strides do not match the dimensions.
    #[error("tensor {name:?} has {dimensions} dimensions and {strides} strides")]
    Strides {
        /// Tensor.
        name: String,
        /// Dimensions.
        dimensions: usize,
        /// Strides.
        strides: usize,
    },
    /// Every chain once, in order.
    #[error(
        "segment {segment:?} should begin with chain {expected} and end before chain {chains}, its chains are {first} to {last}"
    )]
    Chains {
        /// Segment.
        segment: String,
        /// First chain without a segment.
        expected: usize,
        /// In the recording.
        chains: usize,
        /// The segment's first chain.
        first: usize,
        /// The segment's last chain.
        last: usize,
    },
    /// Chains are left over.
    #[error("no segment has the chains from {first} on; the recording has {chains}")]
    Left {
        /// First such chain.
        first: usize,
        /// In the recording.
        chains: usize,
    },
    /// A segment names an unknown tensor.
    #[error("segment {segment:?} names tensor {tensor:?}, which is not described")]
    NoTensor {
        /// Segment.
        segment: String,
        /// Tensor.
        tensor: String,
    },
}

/// Described tensor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorEntry {
    /// Name.
    pub name: String,
    /// `input`, `output`, `weight` or `intermediate`.
    pub kind: String,
    /// `f32` if absent.
    #[serde(default = "single")]
    pub dtype: String,
    /// Slowest dimension first.
    pub shape: Vec<u32>,
    /// GPU address of the first element.
    pub address: u64,
    /// In bytes by dimension; without gaps if absent.
    pub strides: Option<Vec<u32>>,
}

fn single() -> String {
    "f32".into()
}

/// Described segment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentEntry {
    /// Name.
    pub name: String,
    /// `setup` (once, when opened) or `run` (every time).
    pub kind: String,
    /// First and last chain, from 0.
    pub chains: [usize; 2],
    /// Written before the first chain.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Read after the last chain.
    #[serde(default)]
    pub outputs: Vec<String>,
}

/// Description of a recording.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Short.
    pub name: String,
    /// Network, and where the recording comes from.
    pub about: String,
    /// [`fingerprint`], in hexadecimal.
    pub fingerprint: Option<String>,
    /// Tensors.
    #[serde(default)]
    pub tensor: Vec<TensorEntry>,
    /// In order.
    #[serde(default)]
    pub segment: Vec<SegmentEntry>,
}

impl Description {
    /// Checks all but the recording.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(text: &str) -> Result<Description, DescriptionError> {
        let description: Description = toml::from_str(text)?;
        for tensor in &description.tensor {
            tensor.element()?;
            tensor.tensor_kind()?;
            let strides = tensor.strides.as_ref().map_or(tensor.shape.len(), Vec::len);
            if strides != tensor.shape.len() {
                return Err(DescriptionError::Strides {
                    name: tensor.name.clone(),
                    dimensions: tensor.shape.len(),
                    strides,
                });
            }
        }
        for segment in &description.segment {
            segment.segment_kind()?;
            for name in segment.inputs.iter().chain(&segment.outputs) {
                if !description.tensor.iter().any(|t| t.name == *name) {
                    return Err(DescriptionError::NoTensor {
                        segment: segment.name.clone(),
                        tensor: name.clone(),
                    });
                }
            }
        }
        Ok(description)
    }

    pub(crate) fn is_intermediate(&self, name: &str) -> bool {
        let mut tensors = self.tensor.iter();
        tensors.any(|tensor| tensor.name == name && tensor.kind == TensorKind::Intermediate.name())
    }

    pub(crate) fn check_chains(&self, chains: usize) -> Result<(), DescriptionError> {
        let mut expected = 0;
        for segment in &self.segment {
            let [first, last] = segment.chains;
            if first != expected || last < first || last >= chains {
                return Err(DescriptionError::Chains {
                    segment: segment.name.clone(),
                    expected,
                    chains,
                    first,
                    last,
                });
            }
            expected = last + 1;
        }
        if expected == chains {
            Ok(())
        } else {
            Err(DescriptionError::Left {
                first: expected,
                chains,
            })
        }
    }
}

fn named<T: Copy>(
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
    what: &'static str,
    name: &str,
    of: &str,
) -> Result<T, DescriptionError> {
    let found = all.iter().copied().find(|&value| name_of(value) == name);
    found.ok_or_else(|| DescriptionError::Unknown {
        what,
        name: name.into(),
        of: of.into(),
        known: all
            .iter()
            .map(|&value| name_of(value))
            .collect::<Vec<_>>()
            .join(", "),
    })
}

impl TensorEntry {
    /// Element type from `dtype`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn element(&self) -> Result<ElementType, DescriptionError> {
        let name = ElementType::name;
        named(ElementType::ALL, name, "dtype", &self.dtype, &self.name)
    }

    /// Tensor kind from `kind`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn tensor_kind(&self) -> Result<TensorKind, DescriptionError> {
        let name = TensorKind::name;
        named(TensorKind::ALL, name, "kind", &self.kind, &self.name)
    }
}

impl SegmentEntry {
    /// Segment kind from `kind`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn segment_kind(&self) -> Result<SegmentKind, DescriptionError> {
        let name = SegmentKind::name;
        named(SegmentKind::ALL, name, "kind", &self.kind, &self.name)
    }
}

/// Hash of chains' and ranges' addresses.
pub fn fingerprint(chains: &[Chain], ranges: &Ranges) -> u64 {
    let heads = chains.iter().map(|chain| chain.head);
    let bounds = ranges.ranges.iter().flat_map(|r| [r.start, r.end]);
    heads
        .chain(bounds)
        .fold(0xcbf2_9ce4_8422_2325, |hash, word| {
            (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
        })
}

/// Finds a built-in description by fingerprint.
///
/// # Errors
/// A built-in description is broken.
pub fn built_in(fingerprint: u64) -> Result<Option<Description>, DescriptionError> {
    let wanted = format!("{fingerprint:016x}");
    for text in BUILT_IN {
        let description = Description::parse(text)?;
        if description.fingerprint.as_deref() == Some(&wanted) {
            return Ok(Some(description));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_descriptions_are_sound() {
        for text in BUILT_IN {
            let description = Description::parse(text).unwrap();
            assert!(description.fingerprint.is_some());
            let last = description.segment.last().unwrap().chains[1];
            description.check_chains(last + 1).unwrap();
        }
        assert!(built_in(0).unwrap().is_none());
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let error = |text: &str| Description::parse(text).unwrap_err().to_string();
        assert!(error("name = 1").contains("name"));
        let head = "name='a'\nabout='b'\n";
        let tensor = "[[tensor]]\nname='t'\nkind='input'\nshape=[2,2]\naddress=0\n";
        let e = error(&format!("{head}{}", tensor.replace("input", "inptu")));
        assert!(e.contains("inptu") && e.contains("weight"), "{e}");
        let e = error(&format!("{head}{tensor}strides=[4]\n"));
        assert!(e.contains("2 dimensions and 1 strides"), "{e}");
        let segment = "[[segment]]\nname='s'\nkind='run'\nchains=[0,1]\noutputs=['u']\n";
        let e = error(&format!("{head}{tensor}{segment}"));
        assert!(e.contains("\"u\""), "{e}");
        let d = Description::parse(&format!("{head}{}", segment.replace("['u']", "[]"))).unwrap();
        assert!(d.check_chains(2).is_ok());
        assert!(d.check_chains(1).is_err());
        assert!(
            d.check_chains(3)
                .unwrap_err()
                .to_string()
                .contains("from 2")
        );
    }
}
