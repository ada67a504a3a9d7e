// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cubin of an image with only some of its kernels.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::image::cut::cut;
use crate::image::{ImageError, MemberKind, usable};

/// The cubin that the driver takes for a compute capability (90 for `sm_90`), with these kernels only. `None` if
/// they lie in several parts, or in PTX.
///
/// # Errors
/// A damaged part.
pub fn reduced(
    image: &[u8],
    kernels: &HashSet<&str>,
    capability: u32,
) -> Result<Option<Vec<u8>>, ImageError> {
    let mut parts = usable(image, capability)?;
    parts.sort_by_key(|part| (part.kind != MemberKind::Cubin, Reverse(part.capability)));
    for part in parts {
        let contents = part.contents()?;
        let found = contents.kernels.iter().map(|kernel| &*kernel.name);
        let found = found.filter(|name| kernels.contains(name)).count();
        if found > 0 {
            let is_whole = found == kernels.len() && part.kind == MemberKind::Cubin;
            return match is_whole {
                true => cut(&part.bytes()?, kernels).map(Some),
                false => Ok(None),
            };
        }
    }
    Ok(None)
}
