// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay tag`: makes a file whose elements can be found in GPU memory.

use std::path::PathBuf;

use clap::Args;
use gpureplay_io::{DType, Element, tag_tensor, write_npy};

use crate::failure::{Failure, Outcome};
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay tag --shape 1,3,224,224 a.npy
  gpureplay tag --shape 64,64 --dtype f16 --seed 2 b.npy";

/// Make an .npy file whose elements differ from each other, to be read by an app that is recorded
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tag {
    /// Extents, slowest dimension first
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', required = true, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    shape: Vec<u64>,
    /// Type of the elements
    #[arg(long, default_value = "f32", value_parser = DType::from_name)]
    dtype: DType,
    /// Another seed gives other elements
    #[arg(long, default_value = "1")]
    seed: u64,
    /// The file to write
    file: PathBuf,
}

impl Tag {
    pub(crate) fn execute(&self) -> Result {
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
        write_npy(&self.file, &tensor).map_err(|error| Failure::Output(error.to_string()))?;
        Ok(Outcome::Done)
    }
}
