// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types and shapes that the user states.

use std::str::FromStr;

use gpureplay_io::{Element as _, ElementType};

/// Type and shape that the user states for a tensor, such as `f32[1,224,224,3]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Element type.
    pub dtype: ElementType,
    /// Extents, slowest first.
    pub shape: Vec<u32>,
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a type and shape such as f32[1,224,224,3]");
        let (dtype, shape) = text.split_once('[').ok_or_else(wrong)?;
        let shape = shape.strip_suffix(']').ok_or_else(wrong)?;
        let extents = shape.split(',').map(|extent| extent.trim().parse());
        let shape: Vec<u32> = extents.collect::<Result<_, _>>().map_err(|_| wrong())?;
        match shape.contains(&0) {
            false => Ok(Form {
                dtype: ElementType::from_name(dtype.trim())?,
                shape,
            }),
            true => Err(wrong()),
        }
    }
}
