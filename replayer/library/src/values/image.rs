// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures as values: size, channels, layout and normalisation as the manifest declares.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use gpureplay_io::Tensor;
use image::imageops::{self, FilterType};
use image::{
    DynamicImage, ImageBuffer, ImageDecoder, ImageFormat as FileFormat, ImageReader, Limits, Pixel,
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::tensors::TensorInfo;

/// Largest width and height of a picture that is read, in pixels.
const MAX_EXTENT: u32 = 1 << 14;
/// Most pixels of a picture that is read, 8192 x 4096: each takes up to 28 bytes on its way to a value.
const MAX_PIXELS: u64 = 1 << 25;
/// Most memory that decoding a picture may take, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// How pictures become the values of a tensor: `value = (pixel x scale - mean) / std`, with pixels from 0 (black) to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFormat {
    /// What each dimension of the tensor is: N (1), H, W and C in some order, such as "NHWC"; without C the picture is grey.
    pub layout: String,
    /// Order of the channels.
    #[serde(default)]
    pub channels: Channels,
    /// How the picture gets the tensor's size.
    #[serde(default)]
    pub resize: Resize,
    /// Value of a white pixel before mean and std; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// One number, or one for each channel in the tensor's order; 0 if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f64>,
    /// One number, or one for each channel in the tensor's order; 1 if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub std: Vec<f64>,
    /// Black is 1 and white is 0: for networks that want ink.
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
    /// One channel, the luminance.
    Grey,
}

/// How a picture gets a tensor's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// Each dimension by itself.
    #[default]
    Stretch,
    /// The largest part in the middle that has the tensor's proportions.
    Crop,
}

/// Where the dimensions of a picture are in the tensor.
struct Places {
    height: usize,
    width: usize,
    channel: Option<usize>,
}

/// Reads a picture as the value of a tensor.
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
    let picture = decode(path, file)?;
    let picture = match format.resize {
        Resize::Stretch => picture,
        Resize::Crop => crop(&picture, width, height),
    };
    let pixels: Vec<f32> = match format.channels {
        Channels::Grey => resized(&picture.to_luma32f(), width, height),
        Channels::Rgb | Channels::Bgr => resized(&picture.to_rgb32f(), width, height),
    };
    let number = |list: &[f64], channel: usize, default: f64| match list {
        [] => default,
        [one] => *one,
        many => many.get(channel).copied().unwrap_or(default),
    };
    let strides = strides(&info.shape);
    let value = |element: usize| {
        let at = |place: usize| {
            let stride = strides.get(place).copied().unwrap_or(1);
            element / stride % extent(place) as usize
        };
        let channel = places.channel.map_or(0, at);
        let source = match format.channels {
            Channels::Bgr => channels - 1 - channel,
            Channels::Rgb | Channels::Grey => channel,
        };
        let index = (at(places.height) * width as usize + at(places.width)) * channels + source;
        let pixel = f64::from(pixels.get(index).copied().unwrap_or(0.0));
        let pixel = if format.invert { 1.0 - pixel } else { pixel };
        let mean = number(&format.mean, channel, 0.0);
        (pixel * format.scale.unwrap_or(1.0) - mean) / number(&format.std, channel, 1.0)
    };
    Tensor::from_fn(info.dtype, &info.shape, value).map_err(|error| wrong(error.to_string()))
}

/// Elements from one index to the next along each dimension.
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

/// Where height, width and channel are, and how many channels; or what is wrong with the declaration.
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

fn decode(path: &Path, file: File) -> Result<DynamicImage> {
    let wrong = |error: &dyn std::fmt::Display| Error::file(path, error);
    let mut file = BufReader::new(file);
    let reader = ImageReader::new(&mut file)
        .with_guessed_format()
        .map_err(|error| wrong(&error))?;
    let Some(format) = reader.format() else {
        return Err(wrong(&"neither a PNG nor a JPEG picture"));
    };
    let start = |file: &mut BufReader<File>| file.rewind().map_err(|error| wrong(&error));
    start(&mut file)?;
    if format == FileFormat::Jpeg && !jpeg_ends(&mut file).map_err(|error| wrong(&error))? {
        return Err(wrong(&"the file is truncated"));
    }
    start(&mut file)?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_EXTENT);
    limits.max_image_height = Some(MAX_EXTENT);
    limits.max_alloc = Some(MAX_BYTES);
    let mut reader = ImageReader::with_format(&mut file, format);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|error| wrong(&error))?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(wrong(&format!(
            "{width} x {height} pixels; a picture has at most {MAX_PIXELS} in all"
        )));
    }
    DynamicImage::from_decoder(decoder).map_err(|error| wrong(&error))
}

/// Whether a JPEG file has its end marker behind the data of a scan: decoders make up what is missing. Thumbnails inside of other
/// segments have markers of their own, which do not count.
fn jpeg_ends(mut file: impl BufRead + Seek) -> std::io::Result<bool> {
    const START_OF_SCAN: u8 = 0xda;
    const END_OF_IMAGE: u8 = 0xd9;
    let mut in_scan = false;
    loop {
        // Up to the next marker: what is between segments, or the data of a scan.
        let mut skipped = Vec::new();
        file.read_until(0xff, &mut skipped)?;
        let mut marker = [0xff];
        while marker == [0xff] {
            if file.read(&mut marker)? == 0 {
                return Ok(false);
            }
        }
        match marker {
            [END_OF_IMAGE] => return Ok(in_scan),
            // A byte of the scan's data, restart markers, start of image, and what stands alone.
            [0x00 | 0x01 | 0xd0..=0xd8] => {}
            [kind] => {
                let mut length = [0; 2];
                if file.read_exact(&mut length).is_err() {
                    return Ok(false);
                }
                let rest = i64::from(u16::from_be_bytes(length)).saturating_sub(2);
                file.seek(SeekFrom::Current(rest.max(0)))?;
                in_scan |= kind == START_OF_SCAN;
            }
        }
    }
}

/// The largest part in the middle with the proportions of `width` to `height`.
fn crop(picture: &DynamicImage, width: u32, height: u32) -> DynamicImage {
    let (w, h) = (u64::from(picture.width()), u64::from(picture.height()));
    let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
    let wide = (w.min(h * width / height)).max(1);
    let high = (h.min(w * height / width)).max(1);
    picture.crop_imm(
        ((w - wide.min(w)) / 2) as u32,
        ((h - high.min(h)) / 2) as u32,
        wide as u32,
        high as u32,
    )
}

/// Pixels of the wanted size, row by row; each is the mean of what it covers, or interpolated linearly.
fn resized<P>(picture: &ImageBuffer<P, Vec<f32>>, width: u32, height: u32) -> Vec<f32>
where
    P: Pixel<Subpixel = f32> + 'static,
{
    if picture.dimensions() == (width, height) {
        return picture.as_raw().clone();
    }
    imageops::resize(picture, width, height, FilterType::Triangle).into_raw()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::codecs::jpeg::JpegEncoder;

    use super::*;

    #[test]
    fn a_picture_has_as_many_pixels_as_it_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picture.png");
        let decoded = |width: u32, height: u32| {
            let grey = ImageBuffer::<image::Luma<u8>, _>::new(width, height);
            grey.save(&path).unwrap();
            let picture = decode(&path, File::open(&path).unwrap());
            picture
                .map(|picture| picture.width())
                .map_err(|error| error.to_string())
        };
        assert_eq!(decoded(8192, 4096), Ok(8192));
        let error = decoded(8192, 4097).unwrap_err();
        assert!(error.contains("8192 x 4097 pixels"), "{error}");
    }

    #[test]
    fn every_truncation_of_a_jpeg_is_seen() {
        let pixels: Vec<u8> = (0..64 * 48).map(|i| (i * 7 % 251) as u8).collect();
        let mut file = Vec::new();
        let colour = image::ExtendedColorType::L8;
        let mut encoder = JpegEncoder::new(&mut file);
        encoder.encode(&pixels, 64, 48, colour).unwrap();
        assert!(jpeg_ends(Cursor::new(&file)).unwrap());
        for length in 0..file.len() {
            assert!(
                !jpeg_ends(Cursor::new(&file[..length])).unwrap(),
                "{length}"
            );
        }
        // An end marker in a segment before the scan, as thumbnails have one, is none of the picture's.
        let thumbnail = [0xff, 0xd8, 0xff, 0xe1, 0x00, 0x06, 0xff, 0xda, 0xff, 0xd9];
        let mut with = thumbnail.to_vec();
        with.extend(&file[2..]);
        assert!(jpeg_ends(Cursor::new(&with)).unwrap());
        with.truncate(with.len() - 2);
        assert!(!jpeg_ends(Cursor::new(&with)).unwrap());
        // What follows the end is not looked at.
        file.extend(b"more");
        assert!(jpeg_ends(Cursor::new(&file)).unwrap());
    }
}
