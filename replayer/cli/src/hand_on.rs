// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words about a recording of CUDA, which is a folder, are handed on to `gpureplay cuda`.

use std::ffi::OsString;
use std::path::Path;

/// Commands that `gpureplay cuda` has, too.
const SHARED: [&str; 3] = ["run", "info", "verify"];
/// Folders that every recording of CUDA has.
const PARTS: [&str; 3] = ["launches", "runs", "objects"];

/// The words, with `cuda` before the command if they name a recording of CUDA.
pub(crate) fn to_cuda(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_recording = |word: &OsString| {
        let text = word.to_string_lossy();
        let folder = text.rsplit_once('#').map_or(&*text, |(folder, _)| folder);
        !text.starts_with('-')
            && PARTS
                .iter()
                .all(|part| Path::new(folder).join(part).is_dir())
    };
    let command = words.get(1).and_then(|word| word.to_str());
    if command.is_some_and(|command| SHARED.contains(&command))
        && words.iter().skip(2).any(is_recording)
    {
        words.insert(1, "cuda".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{PARTS, to_cuda};

    #[test]
    fn only_words_about_a_recording_of_cuda_are_handed_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let words = |words: &str| -> Vec<OsString> {
            let words = words.replace('@', &path);
            words.split_whitespace().map(OsString::from).collect()
        };
        let before = words("gpureplay run @#run0 --no-graph");
        assert_eq!(
            to_cuda(before.clone()),
            before,
            "the folder is no recording yet"
        );
        for part in PARTS {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        assert_eq!(
            to_cuda(before),
            words("gpureplay cuda run @#run0 --no-graph")
        );
        assert_eq!(
            to_cuda(words("gpureplay info @")),
            words("gpureplay cuda info @")
        );
        for others in [
            "gpureplay diff @ @",
            "gpureplay run other.gpureplay",
            "gpureplay cuda run @",
            "gpureplay",
        ] {
            assert_eq!(to_cuda(words(others)), words(others));
        }
    }
}
