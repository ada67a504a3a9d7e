// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay tag`: makes a file whose elements can be found in GPU memory.

use std::path::PathBuf;

use clap::Args;
use gpureplay_tensors::{Element, ElementType, distinctiveness, tag_tensor};

use crate::common::arguments::whole_number;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::{Failure, Outcome};
use crate::common::terminal;
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay tag --shape 1,3,224,224 a.npy
  gpureplay tag --shape 64,64 --dtype f16 --seed 2 b.npy";

/// Make an input file whose elements all differ
///
/// An app that is recorded reads it, and the compiler finds its elements in GPU memory.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
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
        let mut destinations = Destinations::new(self.force.force);
        destinations.claim_tensor(&self.file)?;
        let bytes = self
            .shape
            .iter()
            .try_fold(u64::from(self.dtype.size()), |n, e| n.checked_mul(*e));
        if bytes.is_none_or(|bytes| bytes > 1 << 32) {
            return Err(Failure::Usage(format!(
                "--shape: {} is larger than 4 GiB",
                text::typed_shape(self.dtype, &self.shape)
            )));
        }
        let tensor = tag_tensor(self.dtype, &self.shape, self.seed)
            .map_err(|error| Failure::Usage(format!("--shape: {error}")))?;
        let found = distinctiveness(&tensor);
        if found.distinct < found.elements {
            terminal::note(format!(
                "warning: {} has only {} different values for {} elements, so not each of them can be found in GPU memory",
                self.dtype.name(),
                found.distinct,
                found.elements
            ));
        }
        destinations.write_tensor(&self.file, &tensor)?;
        Ok(Outcome::Done)
    }
}
