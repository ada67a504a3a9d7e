// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensor files (.safetensors, .png, .jpg, raw): the wanted value, or refused.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use gpureplay_library::values::{ImageFormat, read};
use gpureplay_library::{ElementType, TensorInfo, TensorKind};

const NAMES: [&str; 4] = ["x.safetensors", "x.png", "x.jpg", "x.raw"];

static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = std::env::temp_dir().join(format!("gpureplay-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    directory
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((how, contents)) = bytes.split_first() else {
        return;
    };
    let path = DIRECTORY.join(NAMES[usize::from(how % 4)]);
    std::fs::write(&path, contents).expect("a file in the temporary directory");
    let info = TensorInfo {
        name: "x".into(),
        kind: TensorKind::Input,
        dtype: ElementType::F32,
        shape: vec![1, 4, 4, 3],
        external: true,
        bytes: 4 * 4 * 3 * 4,
    };
    let format = ImageFormat {
        layout: "NHWC".into(),
        ..ImageFormat::default()
    };
    match read(&path, &info, Some(&format)) {
        Ok(tensor) => assert!(tensor.bytes().len() <= bytes.len().max(info.bytes) * 8),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
