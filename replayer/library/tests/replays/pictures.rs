// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures as values, and refused ones.

use std::fs::File;
use std::path::{Path, PathBuf};

use gpureplay_library::ElementType;
use gpureplay_library::values::{Channels, ImageFormat, Resize, read};
use png::{BitDepth, ColorType};

use crate::values::{Folder, info};

fn laid(layout: &str) -> ImageFormat {
    ImageFormat {
        layout: layout.into(),
        ..ImageFormat::default()
    }
}

fn pictures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures")
}

const PALETTE: [u8; 12] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 200, 210, 220];

fn write_png(path: &Path, size: (u32, u32), colour: ColorType, depth: BitDepth, data: &[u8]) {
    let mut encoder = png::Encoder::new(File::create(path).unwrap(), size.0, size.1);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    if colour == ColorType::Indexed {
        encoder.set_palette(&PALETTE);
        if depth == BitDepth::Eight {
            // The first colour is transparent.
            encoder.set_trns(&[0, 255]);
        }
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
}

fn picture() -> Vec<u8> {
    let pixel = |i: u8| [i % 4 * 60, i / 4 * 200, 255 - i % 4];
    (0..8).flat_map(pixel).collect()
}

fn write_rgb(path: &Path, pixels: &[u8]) {
    write_png(path, (4, 2), ColorType::Rgb, BitDepth::Eight, pixels);
}

/// Colour, depth, data, luminance, and reds if different.
macro_rules! kinds {
    ($($colour:ident, $depth:ident, $data:expr => $grey:expr $(, $red:expr)?;)*) => {
        [$(($colour, $depth, $data, $grey, kinds!(@ $grey $(, $red)?))),*]
    };
    (@ $grey:expr) => { $grey };
    (@ $grey:expr, $red:expr) => { $red };
}

/// 5 x 3 pixels to 2 x 2. Expected values: crate `image` 0.25.10, whose weights of red, green and blue differ in
/// the fifth digit.
#[test]
fn every_kind_of_picture_gives_the_known_values() {
    use BitDepth::{Eight, One, Sixteen, Two};
    use ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
    let bytes = |each: u32| (0..each * 15).map(|i| (i * 37 % 256) as u8).collect();
    let bits = vec![0xa8, 0x50, 0x98];
    let pairs = vec![0x1b, 0x40, 0xe4, 0x80, 0x1b, 0xc0];
    let indices = (0..15).map(|i| i % 4).collect();
    let kinds = kinds! {
        Grayscale, Eight, bytes(1) => [0.314483, 0.347995, 0.593895, 0.427763];
        GrayscaleAlpha, Eight, bytes(2) => [0.355169, 0.479234, 0.486185, 0.410606];
        Rgb, Eight, bytes(3) => [0.379772, 0.457146, 0.541707, 0.450313],
            [0.367335, 0.553431, 0.435517, 0.42197];
        Rgba, Eight, bytes(4) => [0.413548, 0.528472, 0.493911, 0.440066],
            [0.385205, 0.422282, 0.590196, 0.427629];
        Grayscale, Sixteen, bytes(2) => [0.355623, 0.478799, 0.485973, 0.411171];
        Rgb, Sixteen, bytes(6) => [0.357802, 0.493605, 0.634762, 0.454031],
            [0.437556, 0.627573, 0.432316, 0.421801];
        Rgba, Sixteen, bytes(8) => [0.380502, 0.608292, 0.378114, 0.403583],
            [0.348272, 0.405846, 0.672138, 0.301904];
        Grayscale, One, bits => [0.511364, 0.511364, 0.397727, 0.625];
        Indexed, Two, pairs => [0.29262, 0.365703, 0.29262, 0.490481],
            [0.258913, 0.331996, 0.258913, 0.456774];
        Indexed, Eight, indices => [0.271229, 0.381746, 0.427201, 0.252513],
            [0.237522, 0.348039, 0.393494, 0.218806];
    };
    let folder = Folder::default();
    let grey = ImageFormat {
        channels: Channels::Grey,
        ..laid("HW")
    };
    for (colour, depth, data, luminance, reds) in kinds {
        let path = folder.at(format!("{colour:?}-{depth:?}.png"));
        write_png(&path, (5, 3), colour, depth, &data);
        let rgb = laid("CHW");
        let found = read(&path, &info(ElementType::F32, &[2, 2]), Some(&grey)).unwrap();
        let red = read(&path, &info(ElementType::F32, &[3, 2, 2]), Some(&rgb)).unwrap();
        for (found, wanted) in found.values().zip(luminance).chain(red.values().zip(reds)) {
            let near = (found - wanted).abs() < 2e-5;
            assert!(near, "{colour:?} {depth:?}: {found}, not {wanted}");
        }
    }
    let jpeg = pictures().join("grey.jpg");
    let found = read(&jpeg, &info(ElementType::F32, &[2, 3]), Some(&grey)).unwrap();
    let wanted = [0.489985, 0.491074, 0.486502, 0.488101, 0.491243, 0.491159];
    for (found, wanted) in found.values().zip(wanted) {
        assert!((found - wanted).abs() < 2e-6, "{found}, not {wanted}");
    }
}

#[test]
fn pictures_become_what_the_manifest_declares() {
    let folder = Folder::default();
    let path = folder.at("p.png");
    write_rgb(&path, &picture());
    let format = ImageFormat {
        channels: Channels::Bgr,
        mean: vec![0.5, 0.25, 0.125],
        std: vec![2.0, 1.0, 0.5],
        ..laid("NCHW")
    };
    let tensor = read(&path, &info(ElementType::F32, &[1, 3, 2, 4]), Some(&format)).unwrap();
    for (index, value) in tensor.values().enumerate() {
        let (channel, y, x) = (index / 8, index / 4 % 2, index % 4);
        let pixel = picture()[(y * 4 + x) * 3 + 2 - channel];
        let wanted = (f64::from(pixel) / 255.0 - format.mean[channel]) / format.std[channel];
        assert!(
            (value - wanted).abs() < 1e-6,
            "{index}: {value}, not {wanted}"
        );
    }
    let bytes = ImageFormat {
        scale: Some(255.0),
        ..laid("HWC")
    };
    let tensor = read(&path, &info(ElementType::U8, &[2, 4, 3]), Some(&bytes)).unwrap();
    assert_eq!(tensor.bytes(), picture());
    let small = ImageFormat {
        channels: Channels::Grey,
        invert: true,
        ..laid("HW")
    };
    let white = folder.at("white.png");
    write_png(
        &white,
        (9, 9),
        ColorType::Rgb,
        BitDepth::Eight,
        &[255; 9 * 9 * 3],
    );
    let tensor = read(&white, &info(ElementType::F32, &[3, 3]), Some(&small)).unwrap();
    assert!(tensor.values().all(|value| value.abs() < 1e-6));
    // Columns 1 and 2 of 4.
    let crop = ImageFormat {
        resize: Resize::Crop,
        scale: Some(255.0),
        ..laid("HWC")
    };
    let tensor = read(&path, &info(ElementType::U8, &[2, 2, 3]), Some(&crop)).unwrap();
    assert_eq!((tensor.value(0), tensor.value(3)), (60.0, 120.0));
    let jpeg = pictures().join("colour.jpg");
    let tensor = read(&jpeg, &info(ElementType::U8, &[2, 2, 3]), Some(&crop)).unwrap();
    assert!(
        (tensor.value(0) - 200.0).abs() <= 3.0,
        "{}",
        tensor.value(0)
    );
}

#[test]
fn bad_pictures_and_declarations_are_errors() {
    let folder = Folder::default();
    let path = folder.at("p.png");
    write_rgb(&path, &picture());
    let x = info(ElementType::F32, &[1, 2, 4, 3]);
    let text =
        |path: &Path, format: Option<&ImageFormat>| read(path, &x, format).unwrap_err().to_string();
    assert!(text(&path, None).contains("add [images.x]"));
    let good = laid("NHWC");
    let with = |mean: usize, std: Vec<f64>| ImageFormat {
        mean: vec![0.0; mean],
        std,
        ..good.clone()
    };
    for (reason, format) in [
        ("each of H and W once", laid("NHCC")),
        ("3 channels do not fit", laid("NCHW")),
        ("has 3 dimensions", laid("HWC")),
        ("std has a number", with(0, vec![0.0])),
        ("mean has 2 numbers", with(2, Vec::new())),
    ] {
        let found = text(&path, Some(&format));
        assert!(found.contains(reason), "{found}");
    }
    let whole = std::fs::read(&path).unwrap();
    // The last 12 bytes only mark the end.
    for length in 0..whole.len() - 12 {
        let cut = folder.put("cut.png", &whole[..length]);
        assert!(text(&cut, Some(&good)).contains("cut.png"), "{length}");
    }
    for at in 0..whole.len() - 12 {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        let damaged = folder.put("damaged.png", &damaged);
        assert!(text(&damaged, Some(&good)).contains("damaged.png"), "{at}");
    }
    let other = folder.put("other.jpg", b"not a picture at all");
    assert!(text(&other, Some(&good)).contains("other.jpg"));
    // 4 gigapixels: refused before memory is taken.
    let mut huge = whole.clone();
    huge[16..20].copy_from_slice(&0x0001_0000u32.to_be_bytes());
    huge[20..24].copy_from_slice(&0x0001_0000u32.to_be_bytes());
    let huge = folder.put("huge.png", &huge);
    assert!(text(&huge, Some(&good)).contains("huge.png"));
}
