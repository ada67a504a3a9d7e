// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other variants of a kernel in Triton's cache.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::command::extract::source::{MAX_FOLDERS, caches};

const MOST_IMAGES: usize = 1 << 10;
const MAX_TEXT_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) threads: u32,
    /// Dynamic, in bytes.
    pub(super) shared: u32,
}

#[derive(Deserialize)]
struct Description {
    name: String,
    num_warps: u32,
    shared: u32,
    target: Target,
}

#[derive(Deserialize)]
struct Target {
    backend: String,
    arch: u32,
    warp_size: u32,
}

/// 90 is `sm_90`.
pub(super) fn images(kernel: &str, capability: u32) -> Vec<(PathBuf, Own)> {
    let folders = caches().into_iter().flat_map(|cache| {
        let entries = fs::read_dir(cache).ok().into_iter().flatten();
        entries.flatten().take(MAX_FOLDERS)
    });
    let mut found: Vec<_> = folders
        .filter_map(|folder| image(&folder.path(), kernel, capability))
        .take(MOST_IMAGES)
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn image(folder: &Path, kernel: &str, capability: u32) -> Option<(PathBuf, Own)> {
    let text = folder.join(format!("{kernel}.json"));
    if text.metadata().ok()?.len() > MAX_TEXT_BYTES {
        return None;
    }
    let known: Description = serde_json::from_slice(&fs::read(text).ok()?).ok()?;
    let target = &known.target;
    let fits = known.name == kernel && target.backend == "cuda" && target.arch == capability;
    let threads = known.num_warps.checked_mul(target.warp_size)?;
    let cubin = folder.join(format!("{kernel}.cubin"));
    let own = Own {
        threads,
        shared: known.shared,
    };
    (fits && cubin.is_file()).then_some((cubin, own))
}

#[cfg(test)]
mod tests {
    use super::{Own, image};

    #[test]
    fn a_kernel_of_another_name_or_gpu_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let text = r#"{"hash": "x", "target": {"backend": "cuda", "arch": 90, "warp_size": 32}, "num_warps": 8, "num_ctas": 1, "shared": 2048, "name": "add"}"#;
        write("add.json", text);
        let found = |kernel, capability| image(folder.path(), kernel, capability);
        assert_eq!(found("add", 90), None, "there is no machine code");
        write("add.cubin", "");
        let own = Own {
            threads: 256,
            shared: 2048,
        };
        assert_eq!(
            found("add", 90),
            Some((folder.path().join("add.cubin"), own))
        );
        assert_eq!(found("add", 80), None);
        write("sub.json", text);
        write("sub.cubin", "");
        assert_eq!(found("sub", 90), None);
        write("add.json", "{}");
        assert_eq!(found("add", 90), None);
    }
}
