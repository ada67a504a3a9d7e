// SPDX-License-Identifier: MIT OR Apache-2.0
//! PNG and JPEG pictures within limits.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use png::{BitDepth, ColorType, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::error::{Error, Result};
use crate::values::MAX_EXTENT;

/// 8192 x 4096 pixels: each takes up to 20 bytes on its way to a value.
const MAX_PIXELS: u64 = 1 << 25;
/// The largest picture takes eight bytes per pixel, and does not compress.
const MAX_PNG: u64 = 9 * MAX_PIXELS;
/// Bytes of a file read whole.
const MAX_JPEG: u64 = 4 * MAX_PIXELS;
/// Bytes for palettes and lines of the PNG decoder.
const MAX_BESIDE: usize = 1 << 24;
/// Pixels over all scans of a JPEG: each progressive scan may visit every pixel, and takes a dozen bytes of file.
/// Encoders write about ten scans.
const MAX_VISITED: u64 = 1 << 31;
/// Weights of red, green and blue (ITU-R BT.709).
const LUMINANCE: [f32; 3] = [0.2126, 0.7152, 0.0722];

const PNG_SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
const JPEG_SIGNATURE: [u8; 3] = [0xff, 0xd8, 0xff];

pub(super) struct Picture {
    width: usize,
    height: usize,
    /// Per pixel: grey, grey and alpha, RGB, or RGB and alpha.
    channels: usize,
    /// Bytes of a sample: 1, or 2 with the larger first.
    depth: usize,
    samples: Vec<u8>,
}

#[derive(Clone)]
pub(super) struct Part {
    columns: Range<usize>,
    rows: Range<usize>,
}

impl Picture {
    pub(super) fn decode(path: &Path, file: File) -> Result<Self> {
        let mut file = BufReader::new(file);
        let mut signature = Vec::new();
        let start = file.by_ref().take(PNG_SIGNATURE.len() as u64);
        let decoded = BufReader::new(start)
            .read_to_end(&mut signature)
            .and_then(|_| file.rewind())
            .map_err(|error| error.to_string())
            .and_then(|()| {
                if signature == PNG_SIGNATURE {
                    check_length(&mut file, MAX_PNG)?;
                    png(file)
                } else if signature.starts_with(&JPEG_SIGNATURE) {
                    check_length(&mut file, MAX_JPEG)?;
                    jpeg(file)
                } else {
                    Err("neither a PNG nor a JPEG picture".into())
                }
            });
        decoded.map_err(|reason| Error::file(path, reason))
    }

    pub(super) fn extent(&self) -> (u64, u64) {
        (self.width as u64, self.height as u64)
    }

    pub(super) fn whole(&self) -> Part {
        Part {
            columns: 0..self.width,
            rows: 0..self.height,
        }
    }

    /// The largest middle part of these proportions.
    pub(super) fn middle(&self, width: u32, height: u32) -> Part {
        let (w, h) = (self.width as u64, self.height as u64);
        let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
        let wide = w.min(h.saturating_mul(width) / height).max(1);
        let high = h.min(w.saturating_mul(height) / width).max(1);
        let middle = |all: u64, part: u64| {
            let first = ((all - part.min(all)) / 2) as usize;
            first..first + part as usize
        };
        Part {
            columns: middle(w, wide),
            rows: middle(h, high),
        }
    }

    /// Luminance from 0 to 1; `each` gets number and pixels of each row.
    pub(super) fn grey(
        &self,
        part: &Part,
        width: u32,
        height: u32,
        each: impl FnMut(usize, &[f32]),
    ) {
        let colours = self.channels > 2;
        let value = |pixel| {
            if !colours {
                return [self.sample(pixel, 0)];
            }
            let weighed = LUMINANCE.iter().enumerate();
            [weighed
                .map(|(c, weight)| self.sample(pixel, c) * weight)
                .sum()]
        };
        self.resized(part, width, height, value, each);
    }

    /// As [`Self::grey`], with red, green and blue of each pixel.
    pub(super) fn rgb(
        &self,
        part: &Part,
        width: u32,
        height: u32,
        each: impl FnMut(usize, &[f32]),
    ) {
        let step = usize::from(self.channels > 2);
        let value = |pixel| [0, 1, 2].map(|channel| self.sample(pixel, channel * step));
        self.resized(part, width, height, value, each);
    }

    /// One channel of a pixel, from 0 to 1.
    fn sample(&self, pixel: usize, channel: usize) -> f32 {
        let first = (pixel * self.channels + channel) * self.depth;
        match self.samples.get(first..first + self.depth) {
            Some(&[byte]) => f32::from(byte) / f32::from(u8::MAX),
            Some(&[high, low]) => f32::from(u16::from_be_bytes([high, low])) / f32::from(u16::MAX),
            _ => 0.0,
        }
    }

    /// The mean of what a new pixel covers, or linear interpolation. Holds one row at a time.
    fn resized<const CHANNELS: usize>(
        &self,
        part: &Part,
        width: u32,
        height: u32,
        value: impl Fn(usize) -> [f32; CHANNELS],
        mut each: impl FnMut(usize, &[f32]),
    ) {
        let columns: Vec<Taps> = taps(part.columns.len(), width as usize).collect();
        let mut pixels = Vec::with_capacity(width as usize * CHANNELS);
        let mut line = vec![[0.0; CHANNELS]; part.columns.len()];
        let add = |sum: &mut [f32; CHANNELS], value: [f32; CHANNELS], weight: f32| {
            sum.iter_mut()
                .zip(value)
                .for_each(|(s, v)| *s += v * weight);
        };
        for (number, row) in taps(part.rows.len(), height as usize).enumerate() {
            line.fill([0.0; CHANNELS]);
            pixels.clear();
            for (y, weight) in row.weights {
                let first = (part.rows.start + y) * self.width + part.columns.start;
                for (x, sum) in line.iter_mut().enumerate() {
                    add(sum, value(first + x), weight);
                }
            }
            for column in &columns {
                let mut sum = [0.0; CHANNELS];
                for (x, weight) in &column.weights {
                    if let Some(value) = line.get(*x) {
                        add(&mut sum, *value, *weight);
                    }
                }
                pixels.extend(sum.map(|value| value.clamp(0.0, 1.0)));
            }
            each(number, &pixels);
        }
    }
}

struct Taps {
    /// Source elements, and weights that add up to 1.
    weights: Vec<(usize, f32)>,
}

/// Weights form a triangle around each new element's centre. They reach zero one new element away, or one old element
/// if that is larger.
fn taps(from: usize, to: usize) -> impl Iterator<Item = Taps> {
    let ratio = from as f32 / to as f32;
    let reach = ratio.max(1.0);
    let tap = move |element: usize| {
        let centre = (element as f32 + 0.5) * ratio;
        let first = ((centre - reach).floor().max(0.0) as usize).min(from.saturating_sub(1));
        let end = ((centre + reach).ceil() as usize).clamp(first + 1, from.max(first + 1));
        let weight = |i: usize| (1.0 - ((i as f32 - (centre - 0.5)) / reach).abs()).max(0.0);
        let sum: f32 = (first..end).map(weight).sum();
        let weights = (first..end).map(|i| (i, weight(i) / sum)).collect();
        Taps { weights }
    };
    (0..to).map(tap)
}

fn check_size(width: u64, height: u64) -> std::result::Result<(), String> {
    let extent = u64::from(MAX_EXTENT);
    if width == 0 || height == 0 || width > extent || height > extent || width * height > MAX_PIXELS
    {
        return Err(format!(
            "{width} x {height} pixels; a picture is at most {extent} wide and high, and has at most {MAX_PIXELS} in all"
        ));
    }
    Ok(())
}

/// Leaves the file rewound.
fn check_length(file: &mut impl Seek, most: u64) -> std::result::Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let length = file.seek(SeekFrom::End(0)).map_err(io)?;
    file.rewind().map_err(io)?;
    match length > most {
        true => Err(format!(
            "{length} bytes; a picture of this format has at most {most}"
        )),
        false => Ok(()),
    }
}

/// A PNG file without chunks that change no sample, however long.
struct Needed<R> {
    file: R,
    head: Vec<u8>,
    head_taken: usize,
    chunk_left: u64,
}

impl<R: BufRead + Seek> Needed<R> {
    /// Bytes of a chunk's length and kind.
    const HEAD: u64 = 8;

    fn new(mut file: R) -> std::io::Result<Self> {
        let mut head = Vec::new();
        file.by_ref().take(Self::HEAD).read_to_end(&mut head)?;
        Ok(Self {
            file,
            head,
            head_taken: 0,
            chunk_left: 0,
        })
    }

    fn next_chunk(&mut self) -> std::io::Result<()> {
        loop {
            self.head.clear();
            self.head_taken = 0;
            let mut head = self.file.by_ref().take(Self::HEAD);
            head.read_to_end(&mut self.head)?;
            let Some((length, kind)) = self.head.split_first_chunk() else {
                return Ok(());
            };
            let rest = u64::from(u32::from_be_bytes(*length)) + 4;
            // A capital marks a critical chunk; of the others only transparency matters.
            if kind.first().is_some_and(u8::is_ascii_uppercase) || kind == b"tRNS" {
                self.chunk_left = rest;
                return Ok(());
            }
            self.file.seek_relative(rest as i64)?;
        }
    }
}

impl<R: BufRead + Seek> BufRead for Needed<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.head_taken == self.head.len() && self.chunk_left == 0 {
            self.next_chunk()?;
        }
        if self.head_taken < self.head.len() {
            return Ok(&self.head[self.head_taken..]);
        }
        let bytes = self.file.fill_buf()?;
        let most = usize::try_from(self.chunk_left).unwrap_or(usize::MAX);
        Ok(&bytes[..bytes.len().min(most)])
    }

    fn consume(&mut self, amount: usize) {
        if self.head_taken < self.head.len() {
            self.head_taken += amount;
        } else {
            self.chunk_left -= amount as u64;
            self.file.consume(amount);
        }
    }
}

impl<R: BufRead + Seek> Read for Needed<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R> Seek for Needed<R> {
    /// The decoder demands `Seek`, but reads from start to end.
    fn seek(&mut self, _: SeekFrom) -> std::io::Result<u64> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

fn png(file: impl BufRead + Seek) -> std::result::Result<Picture, String> {
    let wrong = |error: png::DecodingError| error.to_string();
    let limits = png::Limits { bytes: MAX_BESIDE };
    let file = Needed::new(file).map_err(|error| error.to_string())?;
    let mut decoder = png::Decoder::new_with_limits(file, limits);
    let (width, height) = decoder.read_header_info().map_err(wrong)?.size();
    check_size(width.into(), height.into())?;
    // Palettes become colours, fewer than 8 bits become 8; 16 stay.
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(wrong)?;
    let (colour, depth) = reader.output_color_type();
    let size = reader.output_buffer_size().ok_or("too large")?;
    let mut samples = vec![0; size];
    reader.next_frame(&mut samples).map_err(wrong)?;
    Ok(Picture {
        width: width as usize,
        height: height as usize,
        channels: match colour {
            ColorType::Grayscale | ColorType::Indexed => 1,
            ColorType::GrayscaleAlpha => 2,
            ColorType::Rgb => 3,
            ColorType::Rgba => 4,
        },
        depth: if depth == BitDepth::Sixteen { 2 } else { 1 },
        samples,
    })
}

fn jpeg(mut file: impl BufRead + Seek) -> std::result::Result<Picture, String> {
    let io = |error: std::io::Error| error.to_string();
    let wrong = |error: zune_jpeg::errors::DecodeErrors| error.to_string();
    let scans = jpeg_scans(&mut file).map_err(io)?;
    let scans = scans.ok_or("the file is truncated")?;
    file.rewind().map_err(io)?;
    let mut bytes = Vec::new();
    file.take(MAX_JPEG).read_to_end(&mut bytes).map_err(io)?;
    let options = DecoderOptions::default().set_strict_mode(false);
    let options = options.set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&bytes), options);
    decoder.decode_headers().map_err(wrong)?;
    let (width, height) = decoder.dimensions().ok_or("it has no size")?;
    check_size(width as u64, height as u64)?;
    let most = MAX_VISITED / (width as u64 * height as u64);
    if scans > most {
        return Err(format!(
            "{scans} scans; a picture of {width} x {height} pixels has at most {most}"
        ));
    }
    let (colours, channels) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (ColorSpace::Luma, 1),
        _ => (ColorSpace::RGB, 3),
    };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    Ok(Picture {
        width,
        height,
        channels,
        depth: 1,
        samples: decoder.decode().map_err(wrong)?,
    })
}

/// Number of scans. `None` without an end marker after a scan's data: decoders make up what is missing. Markers of
/// thumbnails in other segments do not count.
fn jpeg_scans(mut file: impl BufRead + Seek) -> std::io::Result<Option<u64>> {
    const START_OF_SCAN: u8 = 0xda;
    const END_OF_IMAGE: u8 = 0xd9;
    let mut scans = 0;
    loop {
        file.skip_until(0xff)?;
        let mut marker = [0xff];
        while marker == [0xff] {
            if file.read(&mut marker)? == 0 {
                return Ok(None);
            }
        }
        match marker {
            [END_OF_IMAGE] => return Ok((scans > 0).then_some(scans)),
            // Scan data, and markers without a length.
            [0x00 | 0x01 | 0xd0..=0xd8] => {}
            [kind] => {
                let mut length = [0; 2];
                if file.read_exact(&mut length).is_err() {
                    return Ok(None);
                }
                let rest = i64::from(u16::from_be_bytes(length)).saturating_sub(2);
                file.seek_relative(rest.max(0))?;
                scans += u64::from(kind == START_OF_SCAN);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn a_picture_has_as_many_pixels_as_it_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picture.png");
        let decoded = |width: u32, height: u32| {
            let mut encoder = png::Encoder::new(File::create(&path).unwrap(), width, height);
            encoder.set_depth(BitDepth::One);
            let black = vec![0; width as usize / 8 * height as usize];
            let mut writer = encoder.write_header().unwrap();
            writer.write_image_data(&black).unwrap();
            drop(writer);
            let picture = Picture::decode(&path, File::open(&path).unwrap());
            picture
                .map(|picture| picture.width)
                .map_err(|error| error.to_string())
        };
        assert_eq!(decoded(8192, 4096), Ok(8192));
        let error = decoded(8192, 4097).unwrap_err();
        assert!(error.contains("8192 x 4097 pixels"), "{error}");
        let error = decoded(16392, 8).unwrap_err();
        assert!(error.contains("at most 16384 wide"), "{error}");
    }

    /// Grey and progressive. Each empty scan visits all pixels.
    fn scanned(width: u16, height: u16, scans: usize) -> Vec<u8> {
        let mut file = vec![0xff, 0xd8];
        // One table of quantization, one of codes: a single one-bit code.
        file.extend([0xff, 0xdb, 0, 67, 0]);
        file.extend([1; 64]);
        file.extend([0xff, 0xc2, 0, 11, 8]);
        file.extend([height.to_be_bytes(), width.to_be_bytes()].concat());
        file.extend([1, 1, 0x11, 0]);
        for class in [0x00, 0x10] {
            file.extend([0xff, 0xc4, 0, 20, class, 1]);
            file.extend([0; 16]);
        }
        for scan in 0..scans {
            let last = if scan == 0 { 0 } else { 63 };
            file.extend([0xff, 0xda, 0, 8, 1, 1, 0, u8::from(scan > 0), last, 0]);
            file.extend([0; 4]);
        }
        file.extend([0xff, 0xd9]);
        file
    }

    #[test]
    fn a_jpeg_has_as_many_scans_as_its_size_allows() {
        let decoded = |scans| {
            let file = scanned(8192, 4096, scans);
            match jpeg(Cursor::new(file)) {
                Ok(_) => "decoded".to_owned(),
                Err(error) => error,
            }
        };
        let (within, beyond) = (decoded(64), decoded(65));
        assert!(!within.contains("scans;"), "{within}");
        assert!(
            beyond.contains("65 scans; a picture of 8192 x 4096"),
            "{beyond}"
        );
    }

    #[test]
    fn a_file_is_as_long_as_its_format_allows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picture");
        let error = |start: &[u8], length: u64| {
            std::fs::write(&path, start).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_len(length).unwrap();
            let picture = Picture::decode(&path, File::open(&path).unwrap());
            picture.map(drop).unwrap_err().to_string()
        };
        for (start, most) in [(&PNG_SIGNATURE[..], MAX_PNG), (&JPEG_SIGNATURE, MAX_JPEG)] {
            let longer = error(start, most + 1);
            assert!(longer.contains("bytes; a picture of this"), "{longer}");
            let as_long = error(start, most);
            assert!(!as_long.contains("bytes; a picture of this"), "{as_long}");
        }
    }

    #[test]
    fn a_picture_is_as_wide_and_high_as_it_may_be() {
        assert_eq!(check_size(1 << 14, 1 << 11), Ok(()));
        assert_eq!(check_size(1 << 11, 1 << 14), Ok(()));
        for (width, height) in [((1 << 14) + 1, 1), (1, (1 << 14) + 1), (0, 1), (1, 0)] {
            assert!(check_size(width, height).is_err(), "{width} x {height}");
        }
    }

    #[test]
    fn every_truncation_of_a_jpeg_is_seen() {
        let mut file = include_bytes!("../../tests/pictures/grey.jpg").to_vec();
        assert_eq!(jpeg_scans(Cursor::new(&file)).unwrap(), Some(1));
        for length in 0..file.len() {
            let scans = jpeg_scans(Cursor::new(&file[..length])).unwrap();
            assert_eq!(scans, None, "{length}");
        }
        let thumbnail = [0xff, 0xd8, 0xff, 0xe1, 0x00, 0x06, 0xff, 0xda, 0xff, 0xd9];
        let mut with = thumbnail.to_vec();
        with.extend(&file[2..]);
        assert!(jpeg_scans(Cursor::new(&with)).unwrap().is_some());
        with.truncate(with.len() - 2);
        assert!(jpeg_scans(Cursor::new(&with)).unwrap().is_none());
        file.extend(b"more");
        assert!(jpeg_scans(Cursor::new(&file)).unwrap().is_some());
    }
}
