// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for launches, before anything is mapped.

use crate::abi::{MAX_PARAMETER_BYTES, attribute};

use crate::recording::format::FORMAT;
use crate::recording::{Launch, RecordingError};

/// Of a launch's memory.
pub const MAX_BYTES: u64 = 1 << 40;
/// Of a launch, as variables.
pub const MAX_REGIONS: usize = 1 << 18;
/// In bytes: stack, heap, `printf` buffer.
const MAX_LIMIT: u64 = 1 << 38;
/// In bytes.
pub(crate) const MAX_IMAGE: u64 = 1 << 30;
/// Of a 64-bit process.
pub(crate) const ADDRESS_END: u64 = 1 << 47;
/// For host regions: Linux refuses lower ones.
pub(crate) const ADDRESS_START: u64 = 1 << 16;

pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

pub(crate) fn limits(limits: &[[u64; 2]]) -> Result<(), RecordingError> {
    let wrong = |[number, value]: &[u64; 2]| {
        *number >= attribute::limit::KEPT.len() as u64 || *value > MAX_LIMIT
    };
    if limits.iter().any(wrong) {
        return Err(RecordingError::Field {
            field: "limits",
            reason: "are not those that a replay may set".to_owned(),
        });
    }
    Ok(())
}

pub(crate) fn check(launch: &Launch) -> Result<(), RecordingError> {
    if launch.format != FORMAT {
        return Err(RecordingError::Format {
            found: launch.format,
            known: FORMAT,
        });
    }
    let field = |field, reason: &str| RecordingError::Field {
        field,
        reason: reason.to_owned(),
    };
    // Printed names must not drive terminals.
    for (name, text) in [
        ("kernel", &launch.kernel),
        ("entry", &launch.origin.entry),
        ("device", &launch.device.name),
    ] {
        if !is_name(text) {
            return Err(field(name, "is no name"));
        }
    }
    for (name, sizes) in [("grid", launch.grid), ("block", launch.block)] {
        if sizes.contains(&0) {
            return Err(field(name, "has a dimension of 0"));
        }
    }
    if launch.parameters.len() > MAX_PARAMETER_BYTES {
        return Err(RecordingError::TooLarge {
            what: "parameters",
            limit: MAX_PARAMETER_BYTES as u64,
        });
    }
    let mut end = 0;
    for [offset, size] in &launch.layout {
        let last = offset.checked_add(*size);
        let Some(last) = last.filter(|last| *last <= launch.parameters.len()) else {
            return Err(field("layout", "reaches beyond the parameters"));
        };
        if *offset < end {
            return Err(field(
                "layout",
                "has a parameter that begins before the end of the one before it",
            ));
        }
        end = last;
    }
    if !launch.attributes.len().is_multiple_of(72) || launch.attributes.len() > 72 * 64 {
        return Err(field("attributes", "are not 72 bytes each, 64 at most"));
    }
    limits(&launch.limits)?;
    if launch.image.size > MAX_IMAGE {
        return Err(RecordingError::TooLarge {
            what: "the image",
            limit: MAX_IMAGE,
        });
    }
    if launch.regions.len() > MAX_REGIONS || launch.variables.len() > MAX_REGIONS {
        let reason = format!("and variable: there may be {MAX_REGIONS} of each");
        return Err(field("region", &reason));
    }
    let mut end = ADDRESS_START;
    for region in &launch.regions {
        let wrong = |reason| {
            Err(RecordingError::Region {
                address: region.address,
                size: region.size,
                reason,
            })
        };
        if region.size == 0 {
            return wrong("is empty");
        }
        if region.address < end {
            return wrong("lies below or over the one before it");
        }
        match region.address.checked_add(region.size) {
            Some(last) if last <= ADDRESS_END => end = last,
            _ => return wrong("reaches beyond the address space"),
        }
    }
    let mut spans: Vec<(u64, u64)> = Vec::with_capacity(launch.variables.len());
    for variable in &launch.variables {
        let wrong = |reason| {
            Err(RecordingError::Region {
                address: variable.address,
                size: variable.size,
                reason,
            })
        };
        if !is_name(&variable.name) {
            return Err(field("variable", "has no name"));
        }
        match variable.address.checked_add(variable.size) {
            Some(last) if variable.size > 0 && last <= ADDRESS_END => {
                spans.push((variable.address, last))
            }
            _ => return wrong("is empty or reaches beyond the address space"),
        }
    }
    spans.sort_unstable();
    if let Some(pair) = spans.windows(2).find(|pair| pair[1].0 < pair[0].1) {
        let (address, last) = pair[1];
        return Err(RecordingError::Region {
            address,
            size: last - address,
            reason: "lies over another variable",
        });
    }
    if launch.bytes() > MAX_BYTES {
        return Err(RecordingError::TooLarge {
            what: "memory of all regions and variables together",
            limit: MAX_BYTES,
        });
    }
    Ok(())
}
