// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by tests of the secure world.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use gpureplay_sign::{RECORDING, SIGNATURE, SecretKey, sign};
use gpureplay_tensors::read_npy;
use tempfile::TempDir;

use super::{build, options, run};
use crate::{
    error::{Error, Result},
    files,
    folder::Folder,
    run::{
        secure_log::{LATE_POWER_OFF, is_complaint},
        session::{Checked, Outcome, SECURE_LOG},
    },
};

const TIMEOUT: u64 = 300;
const TIMEOUT_FULL: u64 = 1800;
/// Bytes of 8 x 8 pixels, and of ten probabilities, f32.
pub(super) const DIGIT: usize = 256;
pub(super) const PROBABILITIES: usize = 40;

/// Waits until background client `$client` runs; `during` gets GPU, memory and client state. One program looks: a
/// process per look could miss the run. Clients killed while loading make OP-TEE complain.
pub(super) const UNTIL_IT_RUNS: &str = "gpureplay_tee_memory -w 100 > during\n\
    grep State: /proc/$client/status >> during\n";

pub(super) struct Rig<'a> {
    pub(super) folder: &'a Folder,
    pub(super) built: build::Built,
    pub(super) full: bool,
}

pub(super) struct Share(TempDir);

impl Share {
    pub(super) fn new() -> Result<Share> {
        let directory = files::temporary()?;
        Ok(Share(directory))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        files::write(self.path(name), bytes)
    }

    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>> {
        files::read(self.path(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.read(name)?).into_owned())
    }
}

pub(super) fn pack(recording: &[u8], key: &SecretKey, counter: u64) -> Result<Vec<u8>> {
    let fail = |error| Error::Usage(format!("cannot sign: {error:?}"));
    let signature = sign(key, counter, recording, &BTreeMap::new()).map_err(fail)?;
    packed(recording, Some(signature))
}

pub(super) fn packed(recording: &[u8], signature: Option<Vec<u8>>) -> Result<Vec<u8>> {
    let mut files = BTreeMap::from([(RECORDING.to_owned(), recording.to_vec())]);
    files.extend(signature.map(|bytes| (SIGNATURE.to_owned(), bytes)));
    gpureplay_sign::pack(&files).map_err(|error| Error::Usage(format!("cannot pack: {error:?}")))
}

pub(super) fn recording(folder: &Folder, name: &str) -> PathBuf {
    folder.repository.join("recordings").join(name)
}

impl Rig<'_> {
    pub(super) fn script(&self, share: &Share, text: &str) -> Result<Outcome> {
        self.boot(share, text, false)
    }

    fn boot(&self, share: &Share, text: &str, quiet: bool) -> Result<Outcome> {
        let timeout = if self.full { TIMEOUT_FULL } else { TIMEOUT };
        let options = crate::run::session::Options {
            share: Some(share.0.path().to_path_buf()),
            quiet_secure_world: quiet,
            ..options(&self.built, timeout)
        };
        let words = ["bash", "-c", text].map(String::from);
        run(self.folder, &options, &words)
    }

    pub(super) fn clean(&self, share: &Share, text: &str) -> Result<String> {
        let outcome = self.boot(share, text, true)?;
        if outcome.clean().is_err() {
            return Err(failed(&outcome).into());
        }
        quiet(&outcome)?;
        Ok(outcome.said().into_owned())
    }
}

pub(super) fn failed(outcome: &Outcome) -> String {
    let stderr = fs::read_to_string(outcome.logs.join("stderr")).unwrap_or_default();
    format!(
        "{:?} {:?}, {}, logs: {}",
        outcome.end,
        outcome.faults.first(),
        stderr.trim(),
        outcome.logs.display()
    )
}

fn quiet(outcome: &Outcome) -> Checked {
    let log = fs::read(outcome.logs.join(SECURE_LOG))
        .map_err(|error| format!("{SECURE_LOG}: {error}, logs: {}", outcome.logs.display()))?;
    let log = String::from_utf8_lossy(&log);
    let complaint = log
        .lines()
        .find(|line| is_complaint(line) && !line.starts_with(LATE_POWER_OFF));
    complaint.map_or(Ok(()), |line| {
        Err(format!(
            "secure world: {line}, logs: {}",
            outcome.logs.display()
        ))
    })
}

pub(super) fn npy(path: &Path) -> Result<Vec<u8>> {
    let tensor =
        read_npy(path).map_err(|error| Error::Usage(format!("{}: {error}", path.display())))?;
    Ok(tensor.bytes().to_vec())
}
