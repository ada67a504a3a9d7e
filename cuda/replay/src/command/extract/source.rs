// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of a kernel, from its image or Triton's cache.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gpureplay_cuda_launch::image::{self, MemberKind};

use crate::ReplayError;
use crate::command::failure::{self, Failure};

const MAX_TEXT_BYTES: u64 = 64 << 20;
pub(crate) const MAX_FOLDERS: usize = 1 << 16;
/// Nothing else that a recording names is copied.
const SOURCES: [&str; 8] = ["cu", "cuh", "h", "hpp", "cpp", "cc", "inl", "py"];
const STAGES: [&str; 6] = ["source", "ttir", "ttgir", "llir", "ptx", "json"];

#[derive(Default)]
pub(crate) struct Source {
    pub(crate) ptx: Option<Vec<u8>>,
    pub(crate) from: Option<String>,
    pub(crate) files: Vec<PathBuf>,
}

impl Source {
    pub(crate) fn find(image: &[u8], kernel: &str) -> Result<Self, Failure> {
        let mut found = Self::default();
        match crate::module::ptx(image, kernel) {
            Ok(mut text) => {
                // In a fatbin a text ends with zeros.
                let end = text.iter().position(|byte| *byte == 0);
                text.truncate(end.unwrap_or(text.len()));
                found.ptx = Some(text);
                found.from = Some("the image".to_owned());
            }
            Err(ReplayError::NoPtx(_)) => found.look_in_caches(image, kernel)?,
            Err(error) => return Err(error.into()),
        }
        let named = found.ptx.as_deref().map(named_files).unwrap_or_default();
        found
            .files
            .extend(named.into_iter().filter(|path| path.is_file()));
        Ok(found)
    }

    /// Triton gives the driver machine code, which its cache has beside the text.
    fn look_in_caches(&mut self, image: &[u8], kernel: &str) -> Result<(), Failure> {
        let is_cubin = |part: &image::Part<'_>| part.kind == MemberKind::Cubin;
        let single = image::parts(image).map_err(ReplayError::from)?;
        if !single.iter().all(is_cubin) {
            return Ok(());
        }
        for folder in caches() {
            let Some(cubin) = same_file(&folder, image, kernel) else {
                continue;
            };
            let path = cubin.with_extension("ptx");
            if !path.is_file() {
                continue;
            }
            self.ptx = Some(read(&path)?);
            self.from = Some(path.display().to_string());
            let stages = STAGES.iter().map(|stage| cubin.with_extension(stage));
            self.files = stages.filter(|path| path.is_file()).collect();
            return Ok(());
        }
        Ok(())
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    failure::read(path, MAX_TEXT_BYTES)
}

pub(crate) fn caches() -> Vec<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let own = set("TRITON_CACHE_DIR");
    let home = set("HOME").map(|home| home.join(".triton").join("cache"));
    let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
    let inductor = set("TORCHINDUCTOR_CACHE_DIR")
        .unwrap_or_else(|| std::env::temp_dir().join(format!("torchinductor_{user}")));
    let devices = (0..8).map(|device| inductor.join("triton").join(device.to_string()));
    own.into_iter().chain(home).chain(devices).collect()
}

fn same_file(cache: &Path, image: &[u8], kernel: &str) -> Option<PathBuf> {
    let is_same = |path: &Path| {
        let size = path.metadata().ok().map(|found| found.len());
        size == Some(image.len() as u64) && fs::read(path).is_ok_and(|bytes| bytes == image)
    };
    let folders = fs::read_dir(cache).ok()?.flatten().take(MAX_FOLDERS);
    for folder in folders.map(|entry| entry.path()) {
        let likely = folder.join(format!("{kernel}.cubin"));
        if is_same(&likely) {
            return Some(likely);
        }
        let entries = fs::read_dir(&folder).ok().into_iter().flatten().flatten();
        let mut cubins = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "cubin"));
        if let Some(found) = cubins.find(|path| is_same(path)) {
            return Some(found);
        }
    }
    None
}

/// `-lineinfo` writes `.file` directives.
fn named_files(text: &[u8]) -> BTreeSet<PathBuf> {
    let text = String::from_utf8_lossy(text);
    let lines = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(".file"));
    let names = lines.filter_map(|line| line.split('"').nth(1));
    names
        .map(PathBuf::from)
        .filter(|path| {
            let end = path.extension().and_then(|end| end.to_str());
            end.is_some_and(|end| SOURCES.contains(&end))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use gpureplay_cuda_launch::image::Format;

    use super::{Source, named_files, same_file};

    #[test]
    fn machine_code_alone_has_no_text() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../launch/tests/image/golden");
        let mut cubins = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let image = std::fs::read(entry.unwrap().path()).unwrap();
            let Some(Format::Cubin) = Format::of(&image) else {
                continue;
            };
            let found = Source::find(&image, "kernel").unwrap();
            assert!(found.ptx.is_none() && found.from.is_none());
            cubins += 1;
        }
        assert!(cubins > 0, "there is machine code to look at");
    }

    #[test]
    fn only_sources_are_taken_from_a_text() {
        let text = ".file\t1 \"/a/mine.cu\"\n.file 2 \"/etc/passwd\", 1, 2\n\t.file 3 \"/b/x.cuh\", 5, 6\n.file 4 \"cut";
        let found = named_files(text.as_bytes());
        let found: Vec<_> = found.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(found, ["/a/mine.cu", "/b/x.cuh"]);
    }

    #[test]
    fn a_cache_is_searched_by_bytes() {
        let cache = tempfile::tempdir().unwrap();
        for (folder, name, bytes) in [("a", "k", b"one"), ("b", "other", b"two")] {
            let folder = cache.path().join(folder);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(format!("{name}.cubin")), bytes).unwrap();
        }
        let found = |bytes: &[u8]| same_file(cache.path(), bytes, "k");
        assert_eq!(found(b"one"), Some(cache.path().join("a/k.cubin")));
        assert_eq!(found(b"two"), Some(cache.path().join("b/other.cubin")));
        assert_eq!(found(b"six"), None);
    }
}
