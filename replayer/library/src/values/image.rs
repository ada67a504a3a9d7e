// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures as values.

use std::fs::File;
use std::path::Path;

use gpureplay_tensors::{Element, Tensor};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::tensors::TensorInfo;
use crate::values::picture::Picture;
use crate::values::{Kind, MAX_EXTENT};

/// `value = (pixel x scale - mean) / std`, with pixels from 0 (black) to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFormat {
    /// Dimensions N (1), H, W and C in some order, such as "NHWC"; without C the picture is grey.
    pub layout: String,
    /// Order of the channels.
    #[serde(default)]
    pub channels: Channels,
    /// How to resize.
    #[serde(default)]
    pub resize: Resize,
    /// White before mean and std; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// One, or one per channel in the tensor's order; 0 if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f64>,
    /// As `mean`; 1 if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub std: Vec<f64>,
    /// Black is 1 and white is 0, for networks that want ink.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert: bool,
}

/// Order of a tensor's channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channels {
    /// Red, green, blue.
    #[default]
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Luminance only.
    Grey,
}

/// How a picture is resized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// Each dimension by itself.
    #[default]
    Stretch,
    /// The largest middle part of the tensor's proportions.
    Crop,
}

/// Unexpected changes: `inverted, and stretched from 28x20`. Nothing if the name is no picture's, or colours and
/// proportions stay.
///
/// # Errors
/// The picture cannot be read.
pub fn picture_remark(
    path: &Path,
    info: &TensorInfo,
    format: &ImageFormat,
) -> Result<Option<String>> {
    if Kind::of(path) != Kind::Picture {
        return Ok(None);
    }
    let Ok((places, _)) = check(format, info) else {
        return Ok(None);
    };
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    let (width, height) = Picture::decode(path, file)?.extent();
    let extent = |place: usize| info.shape.get(place).copied().unwrap_or(1);
    let own = extent(places.width).saturating_mul(height);
    let stretched = format.resize == Resize::Stretch && own != extent(places.height) * width;
    let mut done = Vec::new();
    if format.invert {
        done.push("inverted (black is 1)".to_owned());
    }
    if stretched {
        done.push(format!(
            "stretched from {width}x{height} to {}x{}",
            extent(places.width),
            extent(places.height)
        ));
    }
    Ok((!done.is_empty()).then(|| done.join(" and ")))
}

struct Places {
    height: usize,
    width: usize,
    channel: Option<usize>,
}

pub(super) fn read(
    path: &Path,
    file: File,
    info: &TensorInfo,
    format: Option<&ImageFormat>,
) -> Result<Tensor> {
    let wrong = |reason: String| Error::file(path, reason);
    let Some(format) = format else {
        return Err(wrong(format!(
            "a picture, but the manifest does not say how one becomes {} {info}; add [images.{}] with layout, channels, \
             mean and std to it, or give an .npy file",
            info.name, info.name
        )));
    };
    let (places, channels) = check(format, info)
        .map_err(|reason| wrong(format!("[images.{}] of the manifest: {reason}", info.name)))?;
    let extent = |place: usize| info.shape.get(place).copied().unwrap_or(1) as u32;
    let (width, height) = (extent(places.width), extent(places.height));
    let picture = Picture::decode(path, file)?;
    let part = match format.resize {
        Resize::Stretch => picture.whole(),
        Resize::Crop => picture.middle(width, height),
    };
    let number = |list: &[f64], channel: usize, default: f64| match list {
        [] => default,
        [one] => *one,
        many => many.get(channel).copied().unwrap_or(default),
    };
    let strides = strides(&info.shape);
    let stride = |place: usize| strides.get(place).copied().unwrap_or(0);
    let (down, right) = (stride(places.height), stride(places.width));
    let deep = places.channel.map_or(0, stride);
    let mut tensor =
        Tensor::zeros(info.dtype, &info.shape).map_err(|error| wrong(error.to_string()))?;
    // Row by row: a whole picture in the new size would be a second copy.
    let row = |y: usize, values: &[f32]| {
        for (x, pixel) in values.chunks_exact(channels).enumerate() {
            for channel in 0..channels {
                let source = match format.channels {
                    Channels::Bgr => channels - 1 - channel,
                    Channels::Rgb | Channels::Grey => channel,
                };
                let value = f64::from(pixel.get(source).copied().unwrap_or(0.0));
                let value = if format.invert { 1.0 - value } else { value };
                let mean = number(&format.mean, channel, 0.0);
                let value = (value * format.scale.unwrap_or(1.0) - mean)
                    / number(&format.std, channel, 1.0);
                let index = y * down + x * right + channel * deep;
                tensor.set_bits(index, info.dtype.bits(value));
            }
        }
    };
    match format.channels {
        Channels::Grey => picture.grey(&part, width, height, row),
        Channels::Rgb | Channels::Bgr => picture.rgb(&part, width, height, row),
    }
    Ok(tensor)
}

fn strides(shape: &[u64]) -> Vec<usize> {
    let mut strides: Vec<usize> = shape
        .iter()
        .rev()
        .scan(1usize, |stride, extent| {
            let own = *stride;
            *stride = stride.saturating_mul((*extent).max(1) as usize);
            Some(own)
        })
        .collect();
    strides.reverse();
    strides
}

/// Places and the number of channels, or what is wrong.
fn check(format: &ImageFormat, info: &TensorInfo) -> std::result::Result<(Places, usize), String> {
    let letters = format.layout.as_str();
    let place = |letter: char| {
        let mut at = letters.chars().enumerate().filter(|(_, l)| *l == letter);
        at.next().map(|(place, _)| place)
    };
    let known = letters.chars().all(|letter| "NHWC".contains(letter))
        && "NHWC".chars().all(|l| letters.matches(l).count() <= 1);
    let (Some(height), Some(width), true) = (place('H'), place('W'), known) else {
        return Err(format!(
            "layout {letters:?}: expected each of H and W once, N and C at most once"
        ));
    };
    if letters.len() != info.shape.len() {
        return Err(format!(
            "layout {letters:?} has {} dimensions, {} is {info}",
            letters.len(),
            info.name
        ));
    }
    let channels = match format.channels {
        Channels::Grey => 1,
        Channels::Rgb | Channels::Bgr => 3,
    };
    let channel = place('C');
    let extent = |place: usize| info.shape.get(place).copied().unwrap_or(1);
    if channel.map_or(1, extent) != channels as u64 {
        return Err(format!(
            "{channels} channels do not fit {} {info} with layout {letters:?}",
            info.name
        ));
    }
    if place('N').map_or(1, extent) != 1 {
        return Err(format!("{} {info} is a batch of more than one", info.name));
    }
    if [height, width]
        .map(extent)
        .iter()
        .any(|e| *e > MAX_EXTENT.into())
    {
        return Err(format!("{info} is larger than {MAX_EXTENT} pixels"));
    }
    for (what, list) in [("mean", &format.mean), ("std", &format.std)] {
        if ![0, 1, channels].contains(&list.len()) {
            return Err(format!(
                "{what} has {} numbers, expected 1 or {channels}",
                list.len()
            ));
        }
        if list
            .iter()
            .any(|n| !n.is_finite() || what == "std" && *n == 0.0)
        {
            return Err(format!("{what} has a number that cannot be used"));
        }
    }
    let places = Places {
        height,
        width,
        channel,
    };
    Ok((places, channels))
}
