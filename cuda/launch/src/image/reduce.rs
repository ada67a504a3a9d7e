// SPDX-License-Identifier: MIT OR Apache-2.0
//! Of an image, the cubin with only some of its kernels.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::image::cut::cut;
use crate::image::{ImageError, MemberKind, usable};

/// The cubin that the driver takes from an image for some kernels on a GPU of a compute capability (`sm_90`: 90), without all other
/// kernels. Nothing if the kernels lie in several parts, or in a PTX text.
///
/// # Errors
/// If a part that was looked at is damaged.
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
