// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a recording's files are read from: a directory, or a private copy of a pack or of what a signature covers.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_sign::{
    Pack, PackError, PublicKey, RECORDING, SIGNATURE, Signature, WriteError, digest, is_safe,
};
use tempfile::TempDir;

use super::signed_files::{read, signature_error, write_error};
use gpureplay_library::shown;

use crate::Result;
use crate::common::destinations::Destinations;
use crate::common::failure::Failure;
use crate::manifest::{FILE_NAME, Manifest};

/// Whose recordings are accepted.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Trust {
    /// Refuse a recording that is not signed with this key: a PEM file, or 64 hexadecimal digits
    #[arg(long, value_name = "KEY")]
    require_signature: Option<String>,
    /// Refuse a signature with a smaller counter
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "require_signature"
    )]
    minimum_counter: u64,
}

/// A path that [`gpureplay_library::Files`] reads. A private copy is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// The private copy, and what it is a copy of.
    copy: Option<(TempDir, PathBuf)>,
}

impl Place {
    /// Finds the files of a recording that is a directory, a file, or a pack, and checks its signature if one is demanded.
    ///
    /// What is checked is what is used: files are read once, into memory, and what the signature covers is copied into a directory
    /// that nobody else can write.
    pub(crate) fn open(path: &Path, trust: &Trust) -> Result<Self> {
        let key = trust
            .require_signature
            .as_deref()
            .map(trusted_key)
            .transpose()?;
        let packed = if is_pack(path) {
            let bytes = read(path).map_err(Failure::Recording)?;
            Some(unpack(path, &bytes)?)
        } else {
            None
        };
        let files = match (packed, key) {
            (None, None) => {
                return Ok(Self {
                    path: path.to_path_buf(),
                    copy: None,
                });
            }
            (Some(files), None) => files,
            (packed, Some(key)) => {
                let directory = if path.is_dir() {
                    path
                } else {
                    path.parent().unwrap_or(Path::new(""))
                };
                let source = Source {
                    path,
                    directory,
                    packed,
                };
                source.check(&key, trust.minimum_counter)?
            }
        };
        let stem = path.canonicalize().ok();
        let stem = stem
            .as_deref()
            .and_then(Path::file_stem)
            .unwrap_or_default();
        let directory = match path.is_dir() || is_pack(path) {
            true => path,
            false => path.parent().unwrap_or(Path::new("")),
        };
        copy(&files, Path::new(stem), directory)
    }

    /// What must not be replaced: the files that the private copy was made from.
    pub(crate) fn reads(&self, destinations: &mut Destinations) {
        let Some((_, original)) = &self.copy else {
            return;
        };
        destinations.reads(original);
        for name in [RECORDING, SIGNATURE, FILE_NAME] {
            destinations.reads(&original.join(name));
        }
        if let Ok(Some(manifest)) = Manifest::read(original) {
            for file in manifest.files() {
                destinations.reads(&original.join(file));
            }
        }
    }

    /// The path to read.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file as people know it: not by the name of a copy that will be gone.
    pub(crate) fn shown(&self, file: &Path) -> PathBuf {
        let original = self.copy.as_ref().and_then(|(_, original)| {
            let inside = file.strip_prefix(&self.path).ok()?;
            Some(original.join(inside))
        });
        original.unwrap_or_else(|| file.to_path_buf())
    }
}

/// The key of `--require-signature`.
fn trusted_key(given: &str) -> Result<PublicKey> {
    match PublicKey::from_text(given) {
        Ok(key) => return Ok(key),
        // Digits, but of no usable key: there is no file of this name to look for.
        Err(error @ WriteError::WeakKey) => {
            return Err(Failure::Input(format!("{given}: {}", write_error(&error))));
        }
        Err(_) => {}
    }
    let text = read(Path::new(given)).map_err(Failure::Input)?;
    PublicKey::from_text(&String::from_utf8_lossy(&text))
        .map_err(|error| Failure::Input(format!("{given}: {}", write_error(&error))))
}

fn is_pack(path: &Path) -> bool {
    let mut start = [0; 8];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && Pack::is_pack(&start)
}

fn unpack(path: &Path, bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>> {
    let pack = Pack::parse(bytes).map_err(|error| {
        let reason = match error {
            PackError::NotAPack => "not a pack".to_owned(),
            PackError::Version(version) => {
                format!("a pack of version {version}, this program reads version 1")
            }
            PackError::Length => {
                "its length is not what its header says; the file is truncated or has grown".into()
            }
            PackError::TableChecksum => {
                "the checksum of its table is wrong, the file was changed".into()
            }
            PackError::Name(index) => {
                format!("the name of file {index} is not allowed or out of order")
            }
            PackError::Place(index) => format!("file {index} lies outside of the pack"),
            PackError::Checksum(index) => {
                format!("the checksum of file {index} is wrong, the pack was changed")
            }
            PackError::NotZero(index) => format!("bytes at file {index} that must be zero are not"),
        };
        Failure::Recording(format!("{}: {reason}", shown(&path)))
    })?;
    let owned = |file: gpureplay_sign::Packed<'_>| (file.name.to_owned(), file.bytes.to_vec());
    Ok(pack.files().map(owned).collect())
}

/// A recording whose signature is checked.
struct Source<'a> {
    path: &'a Path,
    directory: &'a Path,
    packed: Option<BTreeMap<String, Vec<u8>>>,
}

impl Source<'_> {
    /// Contents of a file of the recording.
    fn file(&self, name: &str) -> Result<Vec<u8>> {
        let missing = |reason: String| {
            Failure::Recording(format!(
                "{}: {reason}; a signature is required, and it covers this file",
                shown(&self.path)
            ))
        };
        match &self.packed {
            Some(files) => files
                .get(name)
                .cloned()
                .ok_or_else(|| missing(format!("the pack has no {name}"))),
            None if name == RECORDING && !self.path.is_dir() => read(self.path).map_err(missing),
            None => read(&self.directory.join(name)).map_err(missing),
        }
    }

    /// The files that the signature covers, each as it was when it was signed.
    fn check(&self, key: &PublicKey, minimum: u64) -> Result<BTreeMap<String, Vec<u8>>> {
        let refused =
            |reason: String| Failure::Recording(format!("{}: {reason}", shown(&self.path)));
        let recording = self.file(RECORDING)?;
        let signature = self.file(SIGNATURE)?;
        let trusted = Signature::parse(&signature)
            .and_then(|signature| signature.verify(&recording, key, minimum))
            .map_err(|error| refused(format!("{SIGNATURE}: {}", signature_error(&error))))?;
        let mut files = BTreeMap::new();
        for file in trusted.files {
            let contents = self.file(file.name)?;
            if contents.len() as u64 != file.length || digest(&contents) != file.sha256 {
                return Err(refused(format!(
                    "{}: it is not the file that was signed",
                    file.name
                )));
            }
            files.insert(file.name.to_owned(), contents);
        }
        let recording = trusted.recording.to_vec();
        files.insert(RECORDING.into(), recording);
        Ok(files)
    }
}

/// Writes files into a new directory that only this user can enter. Nothing but these files can be used from then on.
fn copy(files: &BTreeMap<String, Vec<u8>>, name: &Path, original: &Path) -> Result<Place> {
    let failed = |error: std::io::Error| Failure::Output(format!("a temporary directory: {error}"));
    let temporary = tempfile::Builder::new()
        .prefix("gpureplay-")
        .tempdir()
        .map_err(failed)?;
    let directory = temporary.path().join(if name.as_os_str().is_empty() {
        Path::new("recording")
    } else {
        name
    });
    fs::create_dir(&directory).map_err(failed)?;
    for (name, contents) in files {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        fs::write(&path, contents).map_err(failed)?;
    }
    if let Some(manifest) = Manifest::read(&directory)? {
        for path in manifest.files() {
            let inside = path
                .to_str()
                .is_some_and(|name| is_safe(name) && files.contains_key(name));
            if !inside {
                return Err(Failure::Recording(format!(
                    "manifest.toml names {}, which is not in the pack or not covered by the signature",
                    shown(&path)
                )));
            }
        }
    }
    Ok(Place {
        path: directory,
        copy: Some((temporary, original.to_path_buf())),
    })
}
