// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands CUDA recordings (folders), and `record` on NVIDIA GPUs, to `gpureplay cuda`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Arg;

const SHARED: [&str; 11] = [
    "run", "info", "verify", "sign", "pack", "jobs", "bench", "diff", "extract", "analyse", "tune",
];
/// Every CUDA recording has all of them.
const PARTS: [&str; 3] = ["launches", "runs", "objects"];
const NVIDIA: &str = "/dev/nvidiactl";

pub(crate) fn to_cuda(words: Vec<OsString>) -> Vec<OsString> {
    to_cuda_on(words, Path::new(NVIDIA).exists())
}

pub(crate) fn to_cuda_on(mut words: Vec<OsString>, has_nvidia: bool) -> Vec<OsString> {
    let is_recording = |word: &OsString| {
        let text = word.to_string_lossy();
        let (folder, number) = text.rsplit_once('#').unwrap_or((&*text, ""));
        // Also `FOLDER#LAUNCH` of a missing folder.
        let is_launch = !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && !Path::new(&*text).exists();
        let has_parts = || {
            PARTS
                .iter()
                .all(|part| Path::new(folder).join(part).is_dir())
        };
        !text.starts_with('-') && (is_launch || has_parts())
    };
    let command = words.get(1).and_then(|word| word.to_str());
    match command {
        Some("record") => recorded(words, has_nvidia),
        Some(command) if SHARED.contains(&command) && words.iter().skip(2).any(is_recording) => {
            words.insert(1, "cuda".into());
            words
        }
        _ => words,
    }
}

/// Without other options, records a whole run into a folder with the app's name.
fn recorded(words: Vec<OsString>, has_nvidia: bool) -> Vec<OsString> {
    let Some(end) = words.iter().position(|word| word == "--") else {
        return words;
    };
    let (options, app) = words[2..].split_at(end - 2);
    let asked = options
        .windows(2)
        .position(|pair| pair == ["--recorder", "cuda"]);
    let joined = options.iter().position(|word| word == "--recorder=cuda");
    let (first, count) = match (asked, joined) {
        (Some(at), _) => (at, 2),
        (None, Some(at)) => (at, 1),
        (None, None) if has_nvidia && !gives_other(options) => (0, 0),
        (None, None) => return words,
    };
    let mut handed: Vec<OsString> = [&words[0], OsStr::new("cuda"), &words[1]]
        .map(OsString::from)
        .into();
    let rest = options.iter().enumerate();
    let rest = rest.filter(|(at, _)| !(first..first + count).contains(at));
    let mut rest: Vec<OsString> = rest.map(|(_, word)| word.clone()).collect();
    let single = ["--pick", "--kernel", "--run", "--region"];
    let gives = |rest: &[OsString], options: &[&str]| {
        let is_one = |word: &OsString| {
            let word = word.to_string_lossy();
            options.iter().any(|option| word.starts_with(option))
        };
        rest.iter().any(is_one)
    };
    if !gives(&rest, &single) {
        rest.insert(0, "--run".into());
    }
    if !gives(&rest, &["-o", "--output"]) {
        let program = app.get(1).map(Path::new);
        let mut name = program
            .and_then(Path::file_stem)
            .unwrap_or_default()
            .to_owned();
        name.push("-recording");
        rest.extend(["-o".into(), name]);
    }
    handed.extend(rest);
    handed.extend_from_slice(app);
    handed
}

/// Options that only the other GPUs' `record` has.
fn gives_other(words: &[OsString]) -> bool {
    let command = crate::command();
    let has = |path: &[&str], word: &str| {
        let mut names = path.iter();
        let found = names.try_fold(&command, |command, name| command.find_subcommand(name));
        found.is_some_and(|found| found.get_arguments().any(|option| is_given(option, word)))
    };
    let mut words = words.iter().map(|word| word.to_string_lossy());
    words.any(|word| has(&["record"], &word) && !has(&["cuda", "record"], &word))
}

fn is_given(option: &Arg, word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else {
        let letter = word.strip_prefix('-').and_then(|word| word.chars().next());
        return letter.is_some() && letter == option.get_short();
    };
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    let older = option.get_all_aliases().unwrap_or_default();
    option.get_long() == Some(name) || older.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{PARTS, to_cuda_on};

    fn words(words: &str) -> Vec<OsString> {
        words.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn only_words_about_a_recording_of_cuda_are_handed_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let words = |text: &str| words(&text.replace('@', &path));
        let to_cuda = |words| to_cuda_on(words, false);
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
        for command in [
            "info",
            "sign -k k.pem",
            "jobs",
            "bench",
            "verify",
            "pack -o p",
            "extract",
            "tune",
        ] {
            assert_eq!(
                to_cuda(words(&format!("gpureplay {command} @"))),
                words(&format!("gpureplay cuda {command} @"))
            );
        }
        for command in ["extract -o x", "analyse --deny", "tune"] {
            assert_eq!(
                to_cuda(words(&format!("gpureplay {command} missing#0"))),
                words(&format!("gpureplay cuda {command} missing#0"))
            );
        }
        for others in [
            "gpureplay run missing#x",
            "gpureplay compile @ @",
            "gpureplay run other.gpureplay",
            "gpureplay cuda run @",
            "gpureplay",
        ] {
            assert_eq!(to_cuda(words(others)), words(others));
        }
    }

    #[test]
    fn record_takes_what_the_machine_has_or_what_is_asked_for() {
        let cuda = words("gpureplay cuda record --run -o python3-recording -- python3 app.py");
        let plain = words("gpureplay record -- python3 app.py");
        assert_eq!(to_cuda_on(plain.clone(), true), cuda);
        assert_eq!(to_cuda_on(plain.clone(), false), plain);
        for asked in ["--recorder cuda", "--recorder=cuda"] {
            let asked = words(&format!("gpureplay record {asked} -- python3 app.py"));
            assert_eq!(to_cuda_on(asked, false), cuda);
        }
        assert_eq!(
            to_cuda_on(
                words("gpureplay record --region turn -o r -- ./a -o x"),
                true
            ),
            words("gpureplay cuda record --region turn -o r -- ./a -o x")
        );
        for others in [
            "gpureplay record --recorder model -- ./app",
            "gpureplay record --reads=a=a.npy -- ./app --recorder cuda",
            "gpureplay record --name a.src=a --fixed-weights -- ./app",
            "gpureplay record -f -- ./app",
            "gpureplay record -h",
        ] {
            assert_eq!(to_cuda_on(words(others), true), words(others), "{others}");
        }
    }
}
