// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of every kind as values, good and bad.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpureplay_library::values::{Channels, ImageFormat, Resize, read, write};
use gpureplay_library::{DType, Existing, Tensor, TensorInfo, TensorKind};
use image::{Rgb, RgbImage};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gpureplay-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn info(dtype: DType, shape: &[u64]) -> TensorInfo {
    TensorInfo {
        name: "x".into(),
        kind: TensorKind::Input,
        dtype,
        shape: shape.to_vec(),
        external: false,
        bytes: shape.iter().product::<u64>() as usize * dtype.size() as usize,
    }
}

#[test]
fn raw_files_hold_the_elements_and_nothing_else() {
    let folder = Folder::new("raw");
    let tensor = Tensor::from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    let path = folder.0.join("x.bin");
    write(&path, &tensor, Existing::Keep).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), tensor.bytes());
    assert_eq!(
        read(&path, &info(DType::F32, &[2, 2]), None).unwrap(),
        tensor
    );
    let text = |shape| {
        read(&path, &info(DType::F32, shape), None)
            .unwrap_err()
            .to_string()
    };
    assert!(text(&[3, 2]).contains("16 bytes, but x f32[3,2] has 24"));
    assert!(text(&[2]).contains("more bytes, but x f32[2] has 8"));
}

/// A .safetensors file by its specification: length, JSON, data.
fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn safetensors_are_chosen_by_name() {
    let folder = Folder::new("safetensors");
    let data: Vec<u8> = [1.5f32, -2.0, 7.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}"#;
    let path = folder.put("w.safetensors", &safetensors(header, &data));
    let named = PathBuf::from(format!("{}#a", path.display()));
    let a = read(&named, &info(DType::F32, &[2]), None).unwrap();
    assert_eq!(a, Tensor::from_f32(&[2], &[1.5, -2.0]).unwrap());
    // Without a name it is the tensor's own.
    let x = read(&path, &info(DType::F32, &[1]), None).unwrap();
    assert_eq!(x.value(0), 7.0);
    let none = PathBuf::from(format!("{}#b", path.display()));
    let text = read(&none, &info(DType::F32, &[2]), None)
        .unwrap_err()
        .to_string();
    assert!(text.contains("has no tensor b; it has a, x"), "{text}");
    for bad in [
        &b"\xff\xff\xff\xff\xff\xff\xff\x7f{}"[..],
        b"short",
        &safetensors(
            r#"{"x":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}"#,
            &data,
        ),
    ] {
        let path = folder.put("bad.safetensors", bad);
        let text = read(&path, &info(DType::F32, &[1]), None)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("bad.safetensors: not a .safetensors file"),
            "{text}"
        );
    }
}

fn picture() -> RgbImage {
    RgbImage::from_fn(4, 2, |x, y| {
        Rgb([(x * 60) as u8, (y * 200) as u8, 255 - x as u8])
    })
}

#[test]
fn pictures_become_what_the_manifest_declares() {
    let folder = Folder::new("pictures");
    let path = folder.0.join("p.png");
    picture().save(&path).unwrap();
    let format = ImageFormat {
        layout: "NCHW".into(),
        channels: Channels::Bgr,
        mean: vec![0.5, 0.25, 0.125],
        std: vec![2.0, 1.0, 0.5],
        ..ImageFormat::default()
    };
    let tensor = read(&path, &info(DType::F32, &[1, 3, 2, 4]), Some(&format)).unwrap();
    for (index, value) in tensor.values().enumerate() {
        let (channel, y, x) = (index / 8, index / 4 % 2, index % 4);
        let pixel = picture().get_pixel(x as u32, y as u32).0[2 - channel];
        let wanted = (f64::from(pixel) / 255.0 - format.mean[channel]) / format.std[channel];
        assert!(
            (value - wanted).abs() < 1e-6,
            "{index}: {value}, not {wanted}"
        );
    }
    // Bytes, as quantised networks take them.
    let bytes = ImageFormat {
        layout: "HWC".into(),
        scale: Some(255.0),
        ..ImageFormat::default()
    };
    let tensor = read(&path, &info(DType::U8, &[2, 4, 3]), Some(&bytes)).unwrap();
    assert_eq!(tensor.bytes(), picture().as_raw());
    // Half the size: the mean of two columns, of two rows. Grey, inverted.
    let small = ImageFormat {
        layout: "HW".into(),
        channels: Channels::Grey,
        invert: true,
        ..ImageFormat::default()
    };
    let white = folder.0.join("white.png");
    RgbImage::from_pixel(9, 9, Rgb([255; 3]))
        .save(&white)
        .unwrap();
    let tensor = read(&white, &info(DType::F32, &[3, 3]), Some(&small)).unwrap();
    assert!(tensor.values().all(|value| value.abs() < 1e-6));
    // The middle: columns 1 and 2 of 4.
    let crop = ImageFormat {
        layout: "HWC".into(),
        resize: Resize::Crop,
        scale: Some(255.0),
        ..ImageFormat::default()
    };
    let tensor = read(&path, &info(DType::U8, &[2, 2, 3]), Some(&crop)).unwrap();
    assert_eq!((tensor.value(0), tensor.value(3)), (60.0, 120.0));
    let jpeg = folder.0.join("p.jpg");
    RgbImage::from_pixel(8, 8, Rgb([200, 100, 50]))
        .save(&jpeg)
        .unwrap();
    let tensor = read(&jpeg, &info(DType::U8, &[2, 2, 3]), Some(&crop)).unwrap();
    assert!(
        (tensor.value(0) - 200.0).abs() <= 3.0,
        "{}",
        tensor.value(0)
    );
}

#[test]
fn bad_pictures_and_declarations_are_errors() {
    let folder = Folder::new("bad-pictures");
    let path = folder.0.join("p.png");
    picture().save(&path).unwrap();
    let x = info(DType::F32, &[1, 2, 4, 3]);
    let text =
        |path: &Path, format: Option<&ImageFormat>| read(path, &x, format).unwrap_err().to_string();
    assert!(text(&path, None).contains("add [images.x]"));
    let mut wrong: BTreeMap<&str, ImageFormat> = BTreeMap::new();
    let good = ImageFormat {
        layout: "NHWC".into(),
        ..ImageFormat::default()
    };
    wrong.insert(
        "each of H and W once",
        ImageFormat {
            layout: "NHCC".into(),
            ..good.clone()
        },
    );
    wrong.insert(
        "3 channels do not fit",
        ImageFormat {
            layout: "NCHW".into(),
            ..good.clone()
        },
    );
    wrong.insert(
        "has 3 dimensions",
        ImageFormat {
            layout: "HWC".into(),
            ..good.clone()
        },
    );
    wrong.insert(
        "std has a number",
        ImageFormat {
            std: vec![0.0],
            ..good.clone()
        },
    );
    wrong.insert(
        "mean has 2 numbers",
        ImageFormat {
            mean: vec![0.0; 2],
            ..good.clone()
        },
    );
    for (reason, format) in &wrong {
        let found = text(&path, Some(format));
        assert!(found.contains(reason), "{found}");
    }
    let whole = std::fs::read(&path).unwrap();
    let cut = folder.put("cut.png", &whole[..whole.len() / 2]);
    assert!(text(&cut, Some(&good)).contains("cut.png"));
    let other = folder.put("other.jpg", b"not a picture at all");
    assert!(text(&other, Some(&good)).contains("other.jpg"));
    // A header that promises 4 gigapixels: refused before memory is taken.
    let mut huge = whole.clone();
    huge[16..20].copy_from_slice(&0x0001_0000u32.to_be_bytes());
    huge[20..24].copy_from_slice(&0x0001_0000u32.to_be_bytes());
    let huge = folder.put("huge.png", &huge);
    assert!(text(&huge, Some(&good)).contains("huge.png"));
}
