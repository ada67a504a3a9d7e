// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay record --make-input`.

use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_tensors::{Element, ElementType, distinctiveness, tag_tensor};

use crate::common::arguments::whole_number;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::{Failure, Outcome};
use crate::common::terminal;
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay record --make-input a.npy --shape 1,3,224,224
  gpureplay record --make-input b.npy --shape 64,64 --dtype f16 --seed 2";

/// Make an input file whose elements all differ: an old name of `record --make-input`
///
/// An app that is recorded reads it, and the compiler finds its elements in GPU memory.
#[derive(Args)]
#[command(after_help = EXAMPLES, hide = true)]
pub(crate) struct Tag {
    /// Extents, slowest dimension first
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', required = true, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    shape: Vec<u64>,
    /// Type of the elements
    #[arg(long, default_value = "f32", value_parser = ElementType::from_name)]
    dtype: ElementType,
    /// Another seed gives other elements
    #[arg(long, default_value = "1", value_parser = whole_number::<u64>)]
    seed: u64,
    /// The file to write: .npy, .bin or .json; `-` is standard output
    file: PathBuf,
    #[command(flatten)]
    force: Force,
}

impl Tag {
    pub(crate) fn execute(&self) -> Result {
        make(&self.file, self.force, &self.shape, self.dtype, self.seed)
    }
}

/// `record --make-input`: the same by its new name.
#[derive(Args)]
pub(crate) struct MakeInput {
    /// Record nothing: write an input for the app, all of whose elements differ
    #[arg(long, value_name = "FILE", requires = "shape")]
    make_input: Option<PathBuf>,
    /// Extents, slowest dimension first
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', requires = "make_input", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    shape: Vec<u64>,
    /// Type of the elements
    #[arg(long, default_value = "f32", requires = "make_input", value_parser = ElementType::from_name)]
    dtype: ElementType,
    /// Another seed gives other elements
    #[arg(long, default_value = "1", requires = "make_input", value_parser = whole_number::<u64>)]
    seed: u64,
}

impl MakeInput {
    pub(crate) fn execute(&self, force: Force) -> Option<Result> {
        let file = self.make_input.as_ref()?;
        Some(make(file, force, &self.shape, self.dtype, self.seed))
    }
}

fn make(file: &Path, force: Force, shape: &[u64], dtype: ElementType, seed: u64) -> Result {
    let mut destinations = Destinations::new(force.force);
    destinations.claim_tensor(file)?;
    let bytes = shape
        .iter()
        .try_fold(u64::from(dtype.size()), |n, e| n.checked_mul(*e));
    if bytes.is_none_or(|bytes| bytes > 1 << 32) {
        return Err(Failure::Usage(format!(
            "--shape: {} is larger than 4 GiB",
            text::typed_shape(dtype, shape)
        )));
    }
    let tensor = tag_tensor(dtype, shape, seed)
        .map_err(|error| Failure::Usage(format!("--shape: {error}")))?;
    let found = distinctiveness(&tensor);
    if found.distinct < found.elements {
        terminal::note(format!(
            "warning: {} has only {} different values for {} elements, so not each of them can be found in GPU memory",
            dtype.name(),
            found.distinct,
            found.elements
        ));
    }
    destinations.write_tensor(file, &tensor)?;
    Ok(Outcome::Done)
}
