// SPDX-License-Identifier: MIT OR Apache-2.0
//! Build steps with dependencies and stamps.

use std::{
    fs,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    error::{Error, Result},
    files,
};

const TAIL: usize = 25;

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) makes: &'static str,
    pub(crate) inputs: &'static [&'static str],
    pub(crate) after: &'static [&'static str],
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Step {
    /// Whether it ran.
    pub(crate) fn run(&self, guest: &Path) -> Result<bool> {
        if self.is_done(guest) {
            return Ok(false);
        }
        let stamp = stamp_path(guest, self.name);
        let wanted = self.fingerprint(guest)?;
        // An interrupted step must not look done.
        let _ = fs::remove_file(&stamp);
        let script = guest.join("steps").join(format!("{}.sh", self.name));
        let mut command = Command::new("bash");
        command
            .arg(&script)
            .current_dir(guest)
            .env("GUEST", guest)
            .env("LC_ALL", "C.UTF-8")
            .envs(self.environment.iter().map(|(k, v)| (k, v)));
        let log = guest.join("log").join(format!("{}.log", self.name));
        logged(&mut command, self.makes, &log)?;
        files::create_dir(guest.join("stamps"))?;
        files::write(&stamp, wanted)?;
        Ok(true)
    }

    pub(crate) fn is_done(&self, guest: &Path) -> bool {
        let stamp = fs::read_to_string(stamp_path(guest, self.name));
        let wanted = self.fingerprint(guest);
        matches!((stamp, wanted), (Ok(stamp), Ok(wanted)) if stamp == wanted)
    }

    fn fingerprint(&self, guest: &Path) -> Result<String> {
        let mut hash = Fingerprint::default();
        hash.file(&guest.join("steps").join(format!("{}.sh", self.name)))?;
        for input in self.inputs {
            hash.file(&guest.join(input))?;
        }
        for (name, value) in &self.environment {
            hash.bytes(name.as_bytes());
            hash.bytes(value.as_bytes());
        }
        for step in self.after {
            hash.file(&stamp_path(guest, step))?;
        }
        Ok(hash.text())
    }
}

/// What was compiled on a step's result: `NAME-HASH.tar`.
pub(crate) struct Cache(PathBuf);

impl Cache {
    pub(crate) fn named(guest: &Path, name: &str, of: &str) -> Result<Cache> {
        let mut hash = Fingerprint::default();
        hash.file(&stamp_path(guest, of))?;
        let name = format!("{name}-{}.tar", hash.text().trim_end());
        Ok(Cache(guest.join("cache").join(name)))
    }

    pub(crate) fn give(&self, to: &Path) -> Result<()> {
        match self.0.is_file() {
            true => files::copy(&self.0, to),
            false => Ok(()),
        }
    }

    /// Replaces the file whole: others may read it.
    pub(crate) fn keep(&self, made: &Path) -> Result<()> {
        if let Some(parent) = self.0.parent() {
            files::create_dir(parent)?;
        }
        let new = self.0.with_extension(format!("{}.new", std::process::id()));
        files::copy(made, &new)?;
        fs::rename(&new, &self.0).map_err(Error::io("create", &self.0))
    }
}

fn stamp_path(guest: &Path, step: &str) -> PathBuf {
    guest.join("stamps").join(step)
}

pub(crate) fn logged(command: &mut Command, what: &str, log: &Path) -> Result<()> {
    if let Some(parent) = log.parent() {
        files::create_dir(parent)?;
    }
    let file = fs::File::create(log).map_err(Error::io("create", log))?;
    let copy = file.try_clone().map_err(Error::io("open", log))?;
    let program = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(copy)
        .spawn()
        .map_err(Error::start(program.clone()))?;
    let terminal = std::io::stderr().is_terminal();
    let status = loop {
        let ended = child.try_wait().map_err(Error::start(program.clone()))?;
        if let Some(status) = ended {
            break status;
        }
        if terminal && start.elapsed() > Duration::from_secs(1) {
            eprint!("\r  {what}… {:3} s", start.elapsed().as_secs());
            let _ = std::io::stderr().flush();
        }
        std::thread::sleep(Duration::from_millis(if terminal { 200 } else { 50 }));
    };
    if terminal && start.elapsed() > Duration::from_secs(1) {
        eprint!("\r\x1b[K");
    }
    if status.success() {
        if start.elapsed() > Duration::from_secs(2) {
            eprintln!("  {what}: {:.0} s", start.elapsed().as_secs_f64());
        }
        return Ok(());
    }
    Err(Error::Failed {
        what: format!("{what} (log: {})", log.display()),
        status,
        log: last_lines(log, TAIL),
    })
}

pub(crate) fn last_lines(path: &Path, count: usize) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// FNV-1a tells changed inputs apart, no more.
pub(crate) struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().copied().chain(bytes.len().to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) fn file(&mut self, path: &Path) -> Result<()> {
        let bytes = files::read(path)?;
        self.bytes(&bytes);
        Ok(())
    }

    pub(crate) fn tree(&mut self, dir: &Path) -> Result<()> {
        for path in files::entries(dir)? {
            self.bytes(path.to_string_lossy().as_bytes());
            if path.is_dir() {
                self.tree(&path)?;
            } else {
                self.file(&path)?;
            }
        }
        Ok(())
    }

    pub(crate) fn text(&self) -> String {
        format!("{:016x}\n", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_runs_once_per_change() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let guest = dir.path();
        fs::create_dir(guest.join("steps")).expect("directory");
        let script = guest.join("steps/first.sh");
        fs::write(&script, "echo \"$WHO\" >> \"$GUEST/ran\"\n").expect("script");
        let step = |who: &str| Step {
            name: "first",
            makes: "a test",
            inputs: &[],
            after: &[],
            environment: vec![("WHO", who.into())],
        };
        assert!(step("a").run(guest).expect("runs"));
        assert!(!step("a").run(guest).expect("skips"));
        assert!(step("b").run(guest).expect("runs for another environment"));
        fs::write(&script, "echo broken; exit 3\n").expect("script");
        let error = step("b").run(guest).expect_err("fails").to_string();
        assert!(
            error.contains("broken") && error.contains("first.log"),
            "{error}"
        );
        assert!(step("b").run(guest).is_err(), "a failed step is not done");
        let ran = fs::read_to_string(guest.join("ran")).expect("output");
        assert_eq!(ran, "a\nb\n");
    }

    #[test]
    fn fingerprint_separates_parts() {
        let mut one = Fingerprint::default();
        one.bytes(b"ab");
        one.bytes(b"c");
        let mut two = Fingerprint::default();
        two.bytes(b"a");
        two.bytes(b"bc");
        assert_ne!(one.text(), two.text());
    }
}
