// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUDA kernel images (fatbin, cubin, PTX): read or refused, in bounded memory.
#![no_main]

use gpureplay_cuda_launch::image::{Extent, PREFIX, extent, parts, select};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(prefix) = bytes.get(..PREFIX)
        && let Ok(Extent::Sections {
            offset,
            size,
            least,
        }) = extent(prefix)
        && let Some(headers) = bytes.get(offset..offset.saturating_add(size))
    {
        let _ = Extent::of_sections(least, headers);
    }
    let Ok(parts) = parts(bytes) else { return };
    for part in parts {
        let Ok(contents) = part.contents() else {
            continue;
        };
        for kernel in contents.kernels {
            // What one way finds, the other finds or says why not.
            let _ = select(bytes, &kernel.name, 90);
        }
    }
});
