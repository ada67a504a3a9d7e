// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image's cubin with some kernels only.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::image::cut::cut;
use crate::image::{ImageError, MemberKind, usable};

/// The driver's cubin for a capability (90 is `sm_90`). `None` for kernels in several parts, or in PTX.
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
