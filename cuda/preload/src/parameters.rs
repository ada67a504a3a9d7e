// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packed parameters, and handles that cannot be recorded.

use gpureplay_cuda_launch::abi::{LaunchParameter, MAX_PARAMETER_BYTES};
use gpureplay_cuda_launch::image::objects;
use gpureplay_cuda_launch::recording::Device;

use crate::asked::Launch;
use crate::functions::Layout;
use crate::state::{Image, unrecordable};

pub(crate) type Reason = String;

pub(crate) fn pack(launch: &Launch, layout: &Layout) -> Result<Vec<u8>, Reason> {
    let ends = layout.iter().map(|[offset, size]| offset + size);
    let end = ends.max().unwrap_or(0);
    if !launch.parameters.is_null() {
        if end > MAX_PARAMETER_BYTES {
            return Err(format!("{end} bytes of parameters"));
        }
        let mut packed = vec![0; end];
        for (index, [offset, size]) in layout.iter().enumerate() {
            // SAFETY: a launch passes a pointer for each parameter of the kernel, to as many bytes as the driver says it has.
            unsafe {
                let value = *launch.parameters.add(index);
                std::ptr::copy_nonoverlapping(value.cast(), packed[*offset..].as_mut_ptr(), *size);
            }
        }
        return Ok(packed);
    }
    let (mut buffer, mut size) = (std::ptr::null::<u8>(), 0);
    let mut at = launch.extra;
    // SAFETY: the list `extra` has pairs of a mark and a pointer, and ends with the mark 0.
    unsafe {
        while !at.is_null() && *at as usize != LaunchParameter::End as usize {
            match *at as usize {
                mark if mark == LaunchParameter::BufferPointer as usize => {
                    buffer = (*at.add(1)).cast()
                }
                mark if mark == LaunchParameter::BufferSize as usize => {
                    size = *(*at.add(1)).cast::<usize>()
                }
                mark => {
                    return Err(format!(
                        "mark {mark} in its list of parameters is not known"
                    ));
                }
            }
            at = at.add(2);
        }
    }
    if size > MAX_PARAMETER_BYTES || (buffer.is_null() && size > 0) {
        return Err(format!("{size} bytes of parameters"));
    }
    let mut packed = if size == 0 {
        Vec::new()
    } else {
        // SAFETY: the program passes a buffer of that size.
        unsafe { std::slice::from_raw_parts(buffer, size) }.to_vec()
    };
    // Programs may omit the final padding.
    if packed.len() < end && end <= MAX_PARAMETER_BYTES {
        packed.resize(end, 0);
    }
    Ok(packed)
}

/// Refuses textures and surfaces: handles of eight bytes, alone or in larger parameters.
pub(crate) fn refuse_handles(parameters: &[u8], layout: &Layout) -> Result<(), Reason> {
    let objects = unrecordable();
    for [offset, size] in layout {
        let bytes = parameters.get(*offset..offset + size).unwrap_or(&[]);
        for word in bytes.as_chunks::<8>().0 {
            let handle = u64::from_le_bytes(*word);
            if objects.textures.contains(&handle) {
                return Err("it reads a texture object".into());
            }
            if objects.surfaces.contains(&handle) {
                return Err("it uses a surface object".into());
            }
        }
    }
    Ok(())
}

/// Refuses handles in memory, where they look like numbers: the code tells, if the program has such objects at all.
pub(crate) fn refuse_hidden_handles(
    image: &Image,
    kernel: &str,
    device: &Device,
) -> Result<(), Reason> {
    let (textures, surfaces) = {
        let objects = unrecordable();
        (!objects.textures.is_empty(), !objects.surfaces.is_empty())
    };
    if !textures && !surfaces {
        return Ok(());
    }
    let uses = objects(&image.bytes, kernel, device.sm())
        .map_err(|error| format!("its image: {error}"))?;
    if textures && uses.textures {
        return Err("it reads a texture object by a handle in memory".into());
    }
    if surfaces && uses.surfaces {
        return Err("it uses a surface object by a handle in memory".into());
    }
    Ok(())
}
