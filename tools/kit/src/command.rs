// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands in a test's directory.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Arguments: a line split at spaces, or a list.
pub trait Words {
    /// One by one.
    fn words(&self) -> Vec<OsString>;
}

impl Words for str {
    fn words(&self) -> Vec<OsString> {
        self.split_whitespace().map(OsString::from).collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<OsString> {
        self.as_str().words()
    }
}

impl<S: AsRef<OsStr>> Words for [S] {
    fn words(&self) -> Vec<OsString> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<S: AsRef<OsStr>, const N: usize> Words for [S; N] {
    fn words(&self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

impl<S: AsRef<OsStr>> Words for Vec<S> {
    fn words(&self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

/// Exit code (-1 after a signal), output, errors.
pub fn outcome(output: Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout), text(&output.stderr))
}

/// Runs a program; a test that fails shows the words.
pub fn run_in(
    folder: &Path,
    program: &str,
    words: &(impl Words + ?Sized),
) -> (i32, String, String) {
    let words = words.words();
    println!("{words:?}");
    let mut command = Command::new(program);
    command.current_dir(folder).args(words);
    outcome(command.output().unwrap())
}

/// A text with required content.
pub trait Says {
    /// Else the test fails and shows all.
    fn says(&self, part: &str) -> &Self;
}

impl Says for str {
    #[track_caller]
    fn says(&self, part: &str) -> &Self {
        assert!(self.contains(part), "no {part:?} in {self}");
        self
    }
}

/// A command's end.
pub trait Ended {
    /// Standard output; requires this code.
    fn gave(self, code: i32) -> String;

    /// Standard error; requires this code and text.
    fn ended(self, code: i32, text: &str) -> String;

    /// Standard error; requires a code of failure and this text.
    fn failed(self, text: &str) -> String;
}

impl Ended for (i32, String, String) {
    #[track_caller]
    fn gave(self, code: i32) -> String {
        let (is, out, err) = self;
        assert_eq!(is, code, "{out}{err}");
        out
    }

    #[track_caller]
    fn ended(self, code: i32, text: &str) -> String {
        let (is, out, err) = self;
        assert_eq!(is, code, "{out}{err}");
        err.says(text);
        err
    }

    #[track_caller]
    fn failed(self, text: &str) -> String {
        assert_ne!(self.0, 0, "{}{}", self.1, self.2);
        let code = self.0;
        self.ended(code, text)
    }
}

impl Ended for (i32, String) {
    #[track_caller]
    fn gave(self, code: i32) -> String {
        self.ended(code, "")
    }

    #[track_caller]
    fn ended(self, code: i32, text: &str) -> String {
        (self.0, String::new(), self.1).ended(code, text)
    }

    #[track_caller]
    fn failed(self, text: &str) -> String {
        (self.0, String::new(), self.1).failed(text)
    }
}

/// A test's directory, removed at the end.
pub struct Folder(tempfile::TempDir);

impl Default for Folder {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Folder {
    /// With a copy of a shipped recording.
    pub fn with(recording: &str, name: &str) -> Self {
        let folder = Self::default();
        crate::copy(&crate::shipped(recording), &folder.at(name));
        folder
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// [`Self::at`] as text.
    pub fn text(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// Exit code and output. @ marks files in it.
    pub fn ran(&self, program: &str, words: &(impl Words + ?Sized)) -> (i32, String) {
        let absolute = |word: OsString| match word.to_str().and_then(|word| word.strip_prefix('@'))
        {
            Some(name) => self.at(name).into_os_string(),
            None => word,
        };
        let words: Vec<OsString> = words.words().into_iter().map(absolute).collect();
        let (code, out, err) = run_in(self.path(), program, &words);
        (code, out + &err)
    }
}
