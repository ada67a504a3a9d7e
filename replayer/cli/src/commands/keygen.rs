// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay keygen`: make a pair of keys.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_sign::SecretKey;

use super::write_error;
use crate::Result;
use crate::failure::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  gpureplay keygen mine
      writes mine.pem, which only you can read, and mine.pub.pem for everybody else
  openssl genpkey -algorithm ed25519 -out mine.pem; openssl pkey -in mine.pem -pubout -out mine.pub.pem
      makes the same files";

/// Make a pair of keys to sign recordings with
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Keygen {
    /// Name of the files without .pem; existing ones are never overwritten
    name: PathBuf,
}

impl Keygen {
    pub(crate) fn execute(&self) -> Result {
        let with = |ending: &str| {
            let mut name = self.name.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let (secret, public) = (with(".pem"), with(".pub.pem"));
        if public.exists() {
            return Err(exists(&public));
        }
        let mut seed = [0; 32];
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut seed))
            .map_err(|error| Failure::Output(format!("no random numbers: {error}")))?;
        let key =
            SecretKey::from_seed(seed).map_err(|error| Failure::Output(write_error(&error)))?;
        create(&secret, 0o600, &key.to_pem())?;
        create(&public, 0o644, &key.public().to_pem())?;
        let mut out = std::io::stdout().lock();
        write!(
            out,
            "{}: keep it secret\n{}: ",
            secret.display(),
            public.display()
        )?;
        for byte in key.public().bytes() {
            write!(out, "{byte:02x}")?;
        }
        writeln!(out)?;
        Ok(Outcome::Done)
    }
}

fn exists(path: &Path) -> Failure {
    Failure::Output(format!(
        "{} exists; a key is never overwritten, choose another name",
        path.display()
    ))
}

fn create(path: &Path, mode: u32, text: &str) -> Result<()> {
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists(path),
            _ => Failure::Output(format!("{}: {error}", path.display())),
        })
}
