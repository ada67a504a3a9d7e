// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directories, libraries and commands of a test.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::app;

/// With the stand-in as the driver.
pub(crate) struct Stage {
    folder: TempDir,
}

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn ended(command: &mut Command) -> Said {
    let output = command.output().expect("started");
    Said {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect("JSON")
    }

    pub(crate) fn fits(&self, schema: &str) -> Value {
        crate::schema_check::assert_fits(schema, &self.out);
        self.json()
    }

    #[track_caller]
    pub(crate) fn gave(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        assert!(self.out.contains(part), "no {part:?} in {self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn warns(self, part: &str) -> Self {
        assert!(self.err.contains(part), "no {part:?} in {self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn answers_as(self, alone: &Self) -> Self {
        assert_eq!((self.code, &self.out), (Some(0), &alone.out), "{self:?}");
        self
    }
}

fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let path = test.parent().expect("works").join(name);
    assert!(
        path.exists(),
        "{} is built as a dependency of this test",
        path.display()
    );
    path
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("works");
        let driver = folder.path().join("libcuda.so.1");
        std::os::unix::fs::symlink(library("libgpureplay_cuda_fake.so"), driver).expect("works");
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn on_the_fake(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GPUREPLAY") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.folder.path())
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env(
                "GPUREPLAY_CUDA_PRELOAD",
                library("libgpureplay_cuda_preload.so"),
            );
        command
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        println!("{words}");
        let mut command = self.on_the_fake(Path::new(env!("CARGO_BIN_EXE_gpureplay-cuda")));
        command.args(words.split_whitespace());
        command
    }

    pub(crate) fn run(&self, words: &str) -> Said {
        ended(&mut self.command(words))
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("read")
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("a text")
    }

    pub(crate) fn objects(&self) -> Vec<PathBuf> {
        let entries = |folder: &Path| {
            let entries = std::fs::read_dir(folder).expect("read");
            entries.map(|entry| entry.expect("read").path())
        };
        let folders = entries(&self.path("rec/objects"));
        folders.flat_map(|folder| entries(&folder)).collect()
    }

    pub(crate) fn with_app(&self, words: &str, task: &str) -> Command {
        println!("{task}:");
        let mut command = self.command(words);
        command
            .arg("--")
            .arg(std::env::current_exe().expect("a path"))
            .args(app::ARGUMENTS);
        command.env(app::VARIABLE, task).env(app::RESOLVE, "proc");
        command
    }

    pub(crate) fn app(&self, words: &str, task: &str) -> Said {
        ended(&mut self.with_app(words, task))
    }

    pub(crate) fn traced(&self, words: &str, task: &str) -> Said {
        ended(self.with_app(words, task).env("GPUREPLAY_FAKE_TRACE", "1"))
    }

    pub(crate) fn record(&self, words: &str, task: &str) -> Said {
        let words = format!("record -v -o {} {words}", self.path("rec").display());
        self.app(&words, task)
    }

    /// Turns of a loop; `answers` has the program's results.
    pub(crate) fn record_turns(&self, what: &str, words: &str) -> Said {
        let answers = self.path("answers");
        std::fs::create_dir(&answers).expect("works");
        let words = format!("record -v --run {words} -o {}", self.path("rec").display());
        let mut command = self.with_app(&words, &format!("turns {what}"));
        ended(command.env("PLUMBING_ANSWERS", answers)).gave(0)
    }

    pub(crate) fn answers(&self, task: &str, variable: (&str, &str), folder: &str) -> Said {
        let folder = self.path(folder);
        std::fs::create_dir(&folder).expect("works");
        let mut command = self.program(task);
        command
            .env(variable.0, variable.1)
            .env("PLUMBING_ANSWERS", folder);
        ended(&mut command)
    }

    pub(crate) fn test_command(&self, name: &str, variable: &str) -> Command {
        let mut command = self.on_the_fake(&std::env::current_exe().expect("a path"));
        command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(variable, "1");
        command
    }

    fn program(&self, task: &str) -> Command {
        let mut command = self.test_command("app::program", app::VARIABLE);
        command.env(app::VARIABLE, task).env(app::RESOLVE, "proc");
        command
    }

    pub(crate) fn alone(&self, task: &str) -> Said {
        ended(&mut self.program(task))
    }
}

pub(crate) fn recorded(task: &str) -> Stage {
    let stage = Stage::new();
    stage.record("--pick all", task).gave(0);
    stage
}
