// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay keygen`.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_host::{Existing, write_secret, write_whole};
use gpureplay_sign::SecretKey;

use gpureplay_library::{shown, write_error};

use crate::Result;
use crate::common::failure::{Failure, Outcome};
use crate::common::terminal;

const EXAMPLES: &str = "\
Examples:
  gpureplay keygen -o mine
      writes mine.pem, which only you can read, and mine.pub.pem for everybody else
  openssl genpkey -algorithm ed25519 -out mine.pem; openssl pkey -in mine.pem -pubout -out mine.pub.pem
      makes the same files";

/// Create a signing key
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Keygen {
    /// Name of the files without .pem; existing ones are never overwritten
    #[arg(
        short,
        long,
        value_name = "NAME",
        required_unless_present = "name",
        conflicts_with = "name"
    )]
    output: Option<PathBuf>,
    /// As --output
    #[arg(hide = true)]
    name: Option<PathBuf>,
}

impl Keygen {
    pub(crate) fn execute(&self) -> Result {
        let (secret, public) = self.files()?;
        for path in [&secret, &public] {
            // A dangling link exists too.
            if path.symlink_metadata().is_ok() {
                return Err(exists(path));
            }
        }
        let mut seed = [0; 32];
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut seed))
            .map_err(|error| Failure::Output(format!("no random numbers: {error}")))?;
        let key =
            SecretKey::from_seed(seed).map_err(|error| Failure::Output(write_error(&error)))?;
        // First: a secret key is never left alone.
        let public_text = key.public().to_pem();
        write_whole(&public, public_text.as_bytes(), Existing::Keep)
            .map_err(|error| failed(&public, &error))?;
        if let Err(error) = write_secret(&secret, key.to_pem().as_bytes()) {
            let _ = std::fs::remove_file(&public);
            return Err(failed(&secret, &error));
        }
        let mut out = terminal::report(false);
        writeln!(out, "{}: keep it secret", shown(&secret))?;
        write!(out, "{}: ", shown(&public))?;
        for byte in key.public().bytes() {
            write!(out, "{byte:02x}")?;
        }
        writeln!(out)?;
        Ok(Outcome::Done)
    }

    fn files(&self) -> Result<(PathBuf, PathBuf)> {
        let name = self.output.as_ref().or(self.name.as_ref());
        let name = name.ok_or_else(|| Failure::Usage("--output NAME is missing".into()))?;
        let bytes = name.as_os_str().as_bytes();
        // It drops a slash or dot at the end.
        let named = name.file_name().map(OsStrExt::as_bytes);
        if !named.is_some_and(|last| bytes.ends_with(last)) {
            return Err(Failure::Usage(format!(
                "{}: expected a name for the files, such as keys/mine",
                shown(name)
            )));
        }
        let with = |ending: &str| {
            let mut name = name.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        Ok((with(".pem"), with(".pub.pem")))
    }
}

fn exists(path: &Path) -> Failure {
    Failure::Output(format!(
        "{}: exists; a key is never overwritten, choose another name",
        shown(path)
    ))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Failure::Output(format!("{}: {error}", shown(path))),
    }
}
