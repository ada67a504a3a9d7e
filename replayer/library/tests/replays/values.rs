// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files as values, good and bad.

use std::path::{Path, PathBuf};

use gpureplay_library::values::{encode, read};
use gpureplay_library::{ElementType, Tensor, TensorInfo, TensorKind};

pub(crate) struct Folder(tempfile::TempDir);

impl Default for Folder {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Folder {
    pub(crate) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.at(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

pub(crate) fn info(dtype: ElementType, shape: &[u64]) -> TensorInfo {
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
    let folder = Folder::default();
    let tensor = Tensor::from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    let path = folder.at("x.bin");
    std::fs::write(&path, encode(&path, &tensor).unwrap()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), tensor.bytes());
    assert_eq!(
        read(&path, &info(ElementType::F32, &[2, 2]), None).unwrap(),
        tensor
    );
    let text = |shape| {
        read(&path, &info(ElementType::F32, shape), None)
            .unwrap_err()
            .to_string()
    };
    assert!(text(&[3, 2]).contains("16 bytes, but x f32[3,2] has 24"));
    assert!(text(&[2]).contains("more bytes, but x f32[2] has 8"));
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn safetensors_are_chosen_by_name() {
    let folder = Folder::default();
    let data: Vec<u8> = [1.5f32, -2.0, 7.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}"#;
    let path = folder.put("w.safetensors", &safetensors(header, &data));
    let named = PathBuf::from(format!("{}#a", path.display()));
    let a = read(&named, &info(ElementType::F32, &[2]), None).unwrap();
    assert_eq!(a, Tensor::from_f32(&[2], &[1.5, -2.0]).unwrap());
    let x = read(&path, &info(ElementType::F32, &[1]), None).unwrap();
    assert_eq!(x.value(0), 7.0);
    let none = PathBuf::from(format!("{}#b", path.display()));
    let text = read(&none, &info(ElementType::F32, &[2]), None)
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
        let text = read(&path, &info(ElementType::F32, &[1]), None)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("bad.safetensors: not a .safetensors file"),
            "{text}"
        );
    }
}
