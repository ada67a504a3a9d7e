// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where commands run.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpureplay_format::{Access, Builder, ElementType, RegionKind, SegmentKind, Tensor, TensorKind};

use crate::case::Case;
use crate::commands::Command;
use crate::count::{Cost, counted};
use crate::values::SIDE;

/// Bytes; beyond it or `MOST_STEPS` the process ends.
const MOST_HEAP: usize = 12 << 30;
const MOST_STEPS: u64 = 1 << 38;
/// Last bytes of standard error.
const KEPT: u64 = 4096;

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// -1 if it panicked.
    pub(crate) code: i32,
    pub(crate) text: String,
}

pub(crate) struct Place {
    folder: tempfile::TempDir,
    output: File,
    errors: File,
    screen: (OwnedFd, OwnedFd),
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let mut options = File::options();
            options.create(true).append(true).read(true);
            options.open(folder.path().join(name)).unwrap()
        };
        let (output, errors) = (file("out"), file("err"));
        let screen = (
            nix::unistd::dup(std::io::stdout()).unwrap(),
            nix::unistd::dup(std::io::stderr()).unwrap(),
        );
        let place = Self {
            folder,
            output,
            errors,
            screen,
        };
        place.share();
        place
    }

    fn share(&self) {
        let shared = self.folder.path().join("shared");
        fs::create_dir_all(shared.join("picture")).unwrap();
        let key = shared.join("key");
        self.run(["keygen".into(), key.into_os_string()].into());
        let mut builder = Builder::new(crate::recordings::GPU);
        builder.identity(0, 0xffff_0000, crate::recordings::GPU);
        let data = crate::recordings::DATA;
        builder.region(data, 1, Access::READ_WRITE, RegionKind::Data);
        let jobs = crate::recordings::JOBS;
        builder.region(jobs, 1, Access::READ_WRITE, RegionKind::Descriptors);
        let shape = [1, SIDE, SIDE, 3];
        let tensor = Tensor::dense("x", TensorKind::Input, ElementType::F32, &shape, data);
        let tensor = builder.tensor(tensor);
        let output = Tensor::dense("y", TensorKind::Output, ElementType::F32, &shape, data);
        let output = builder.tensor(output);
        builder.segment("run", SegmentKind::Run);
        builder.bind_input(tensor);
        builder.upload(jobs, &crate::recordings::null_job(0));
        builder.submit(1, jobs, 1000);
        builder.bind_output(output);
        let file = builder.finish().unwrap();
        fs::write(shared.join("picture/recording.gpr"), file).unwrap();
        let manifest =
            "version = 1\nname = \"x\"\n[images.x]\nlayout = \"NHWC\"\nresize = \"crop\"\n";
        fs::write(shared.join("picture/manifest.toml"), manifest).unwrap();
    }

    fn case(&self) -> PathBuf {
        self.folder.path().join("case")
    }

    fn words(&self, command: &Command) -> Vec<OsString> {
        let (case, shared) = (self.case(), self.folder.path().join("shared"));
        let place = |word: &str, mark: char, folder: &Path| {
            let (before, name) = word.split_once(mark)?;
            Some(format!("{before}{}", folder.join(name).display()))
        };
        let words = command.words.split(' ').map(|word| {
            place(word, '@', &case)
                .or_else(|| place(word, '%', &shared))
                .unwrap_or_else(|| word.to_owned())
        });
        words.map(OsString::from).collect()
    }

    fn run(&self, words: Vec<OsString>) -> (Cost, Outcome) {
        self.output.set_len(0).unwrap();
        self.errors.set_len(0).unwrap();
        nix::unistd::dup2_stdout(self.output.as_fd()).unwrap();
        nix::unistd::dup2_stderr(self.errors.as_fd()).unwrap();
        let mut code = -1;
        let mut cost = counted(MOST_HEAP, MOST_STEPS, || {
            let words = std::iter::once("gpureplay".into()).chain(words);
            let ended = catch_unwind(AssertUnwindSafe(|| gpureplay_command::execute(words)));
            // Exit codes can only be compared.
            let mut codes = (0..=255u8).map(|code| (i32::from(code), ExitCode::from(code)));
            if let Ok(ended) = ended {
                code = codes
                    .find(|(_, one)| *one == ended)
                    .map_or(-1, |found| found.0);
            }
        });
        std::io::stdout().flush().unwrap();
        nix::unistd::dup2_stdout(self.screen.0.as_fd()).unwrap();
        nix::unistd::dup2_stderr(self.screen.1.as_fd()).unwrap();
        cost.written = self.output.metadata().unwrap().len();
        let mut text = Vec::new();
        let mut errors = &self.errors;
        let end = errors.seek(SeekFrom::End(0)).unwrap();
        errors
            .seek(SeekFrom::Start(end.saturating_sub(KEPT)))
            .unwrap();
        errors.read_to_end(&mut text).unwrap();
        cost.written += end;
        let text = String::from_utf8_lossy(&text).into_owned();
        (cost, Outcome { code, text })
    }

    pub(crate) fn cost(&self, command: &Command, case: &Case) -> (Cost, Outcome) {
        let folder = self.case();
        case.write(&folder).unwrap();
        let (mut cost, outcome) = self.run(self.words(command));
        cost.written += written(&folder).saturating_sub(case.bytes());
        (cost, outcome)
    }
}

fn written(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => written(&entry.path()),
            _ => entry.metadata().map_or(0, |metadata| metadata.len()),
        })
        .sum()
}
