// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that are packs, or that must be signed: they are checked in memory and used from a private copy.

pub(crate) mod open;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gpureplay_io::{Existing, beneath, shown};
use gpureplay_sign::{
    MAX_FILES, Pack, PackError, Packed, PublicKey, RECORDING, SIGNATURE, Signature, digest, is_safe,
};

use crate::error::{Error, Result};
use crate::files::Files;
use crate::manifest::{self, Manifest};
use crate::trust::{Trust, signature_error};
use open::{MAX_BYTES, PrivateCopy, open_named, read_recording};

/// Names and contents of the files of a recording.
type Contents = BTreeMap<String, Vec<u8>>;

/// Refuses a name that is one of the recording's own files where letter case does not count.
fn apart<'a>(path: &Path, mut names: impl Iterator<Item = &'a str>) -> Result<()> {
    let own = [RECORDING, SIGNATURE, manifest::FILE_NAME];
    let same = |name: &str| {
        let like = own.iter().find(|own| own.eq_ignore_ascii_case(name));
        like.filter(|own| **own != name).copied()
    };
    match names.find_map(|name| Some((name, same(name)?))) {
        Some((name, own)) => Err(refused(
            path,
            format!("{own} and {name} differ in letter case only; rename the latter"),
        )),
        None => Ok(()),
    }
}

fn refused(path: &Path, reason: impl ToString) -> Error {
    Error::Package {
        path: path.to_path_buf(),
        reason: reason.to_string(),
    }
}

impl Files {
    /// Reads a recording that is a directory, a file, or a pack, and checks its signature if one is demanded.
    ///
    /// What is checked is what is used: files are read once, into memory, and what the signature covers is copied into a directory
    /// that nobody else can write.
    ///
    /// # Errors
    /// There is no recording, its pack or its manifest cannot be used, or it is not signed as demanded.
    pub fn open(path: &Path, trust: &Trust) -> Result<Self> {
        let packed = if is_pack(path) {
            let bytes = open_named(path).and_then(read_recording);
            let bytes = bytes.map_err(|error| refused(path, error))?;
            Some(unpack(path, &bytes)?)
        } else {
            None
        };
        let directory = match path.is_dir() || packed.is_some() {
            true => path,
            false => path.parent().unwrap_or(Path::new("")),
        };
        let contents = match (packed, &trust.key) {
            (None, None) => return Self::read_plain(path),
            (Some(contents), None) => contents,
            (packed, Some(key)) => {
                let source = Source {
                    path,
                    directory,
                    packed,
                };
                source.signed(key, trust.minimum_counter)?
            }
        };
        let canonical = path.canonicalize().ok();
        let stem = canonical.as_deref().and_then(Path::file_stem);
        Self::from_contents(
            &contents,
            stem.unwrap_or_default().as_ref(),
            (path, directory),
        )
    }

    /// A recording or a pack that is in memory.
    ///
    /// # Errors
    /// The pack cannot be used, or it is not signed as demanded; a recording without a pack never is.
    pub fn from_bytes(bytes: Vec<u8>, trust: &Trust) -> Result<Self> {
        let path = Path::new("the recording in memory");
        if !Pack::is_pack(&bytes) {
            if trust.key.is_some() {
                let reason = "a signature is required, and only a pack holds one";
                return Err(refused(path, reason));
            }
            return Ok(Self {
                path: path.to_path_buf(),
                directory: PathBuf::new(),
                bytes,
                manifest: None,
                copy: None,
            });
        }
        let packed = unpack(path, &bytes)?;
        let contents = match &trust.key {
            None => packed,
            Some(key) => {
                let source = Source {
                    path,
                    directory: Path::new(""),
                    packed: Some(packed),
                };
                source.signed(key, trust.minimum_counter)?
            }
        };
        Self::from_contents(&contents, Path::new("recording"), (path, path))
    }

    /// Writes files into a new directory that only this user can enter. Nothing but these files can be used from then on.
    fn from_contents(
        contents: &Contents,
        name: &Path,
        (path, original): (&Path, &Path),
    ) -> Result<Self> {
        apart(original, contents.keys().map(String::as_str))?;
        let failed = |error: std::io::Error| Error::Write {
            path: "a temporary directory".into(),
            reason: error.to_string(),
        };
        let temporary = tempfile::Builder::new()
            .prefix("gpureplay-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(failed)?;
        let directory = temporary.path().join(match name.as_os_str().is_empty() {
            true => Path::new("recording"),
            false => name,
        });
        fs::create_dir(&directory).map_err(failed)?;
        for (name, contents) in contents {
            // Where letter case does not count, one of two files would replace the other.
            beneath::write_soon(&directory, Path::new(name), &[contents], Existing::Keep)
                .map_err(failed)?;
        }
        let manifest = Manifest::read(&directory)?;
        for file in manifest.iter().flat_map(Manifest::files) {
            let inside = file
                .to_str()
                .is_some_and(|name| is_safe(name) && contents.contains_key(name));
            if !inside {
                return Err(refused(
                    path,
                    format!(
                        "manifest.toml names {}, which is not in the pack or not covered by the signature",
                        shown(file)
                    ),
                ));
            }
        }
        let Some(bytes) = contents.get(RECORDING) else {
            return Err(refused(path, format!("it has no {RECORDING}")));
        };
        Ok(Self {
            path: path.to_path_buf(),
            bytes: bytes.clone(),
            directory,
            manifest,
            copy: Some(PrivateCopy {
                _directory: temporary,
                original: original.to_path_buf(),
            }),
        })
    }

    /// The recording's own file: of a pack that of its private copy.
    pub fn file(&self) -> PathBuf {
        match &self.copy {
            Some(_) => self.directory.join(RECORDING),
            None => self.path.clone(),
        }
    }

    /// The directory that the user knows: of a private copy what it is a copy of.
    pub fn original(&self) -> &Path {
        match &self.copy {
            Some(copy) => &copy.original,
            None => &self.directory,
        }
    }

    /// A file as people know it: not by the name of a copy that will be gone.
    pub fn shown(&self, file: &Path) -> PathBuf {
        let inside = file.strip_prefix(&self.directory).ok();
        match (&self.copy, inside) {
            (Some(copy), Some(inside)) => copy.original.join(inside),
            _ => file.to_path_buf(),
        }
    }

    /// The manifest and the files that it names: contents by name, for a signature or a pack.
    ///
    /// # Errors
    /// A file is missing, or has a name that signatures and packs do not allow; there are too many, or they have too many bytes.
    pub fn beside(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        self.beside_within(MAX_BYTES)
    }

    fn beside_within(&self, most: u64) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut files = BTreeMap::new();
        let Some(manifest) = &self.manifest else {
            return Ok(files);
        };
        let mut room = most;
        for path in std::iter::once(Path::new(manifest::FILE_NAME)).chain(manifest.files()) {
            let name = path.to_str().filter(|name| is_safe(name)).ok_or_else(|| {
                refused(
                    &self.directory,
                    format!(
                        "the manifest names {}, which cannot be signed or packed: a path inside the directory of letters, digits, _ - + . and / is expected",
                        shown(path)
                    ),
                )
            })?;
            if !files.contains_key(name) {
                if files.len() >= MAX_FILES as usize {
                    let reason = format!("it names more than {MAX_FILES} files");
                    return Err(refused(&self.directory.join(manifest::FILE_NAME), reason));
                }
                let contents = beneath::read(&self.directory, path, room)
                    .map_err(|error| Error::file(&self.directory.join(path), error))?;
                room = room.saturating_sub(contents.len() as u64);
                files.insert(name.to_owned(), contents);
            }
        }
        apart(&self.directory, files.keys().map(String::as_str))?;
        Ok(files)
    }

    /// The bytes of the recording's signature, if there is one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn signature(&self) -> Result<Option<Vec<u8>>> {
        match beneath::read(&self.directory, Path::new(SIGNATURE), MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read
                .map(Some)
                .map_err(|error| Error::file(&self.directory.join(SIGNATURE), error)),
        }
    }
}

fn is_pack(path: &Path) -> bool {
    let mut start = [0; 8];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && Pack::is_pack(&start)
}

fn unpack(path: &Path, bytes: &[u8]) -> Result<Contents> {
    let pack = Pack::parse(bytes).map_err(|error| {
        let reason = match error {
            PackError::NotAPack => "not a pack".to_owned(),
            PackError::Version(version) => {
                format!("a pack of version {version}, this program reads version 1")
            }
            PackError::Length => {
                "its length is not what its header says; the file is truncated or has grown".into()
            }
            PackError::Files(count) => format!("{count} files, more than {MAX_FILES}"),
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
        refused(path, reason)
    })?;
    let owned = |file: Packed<'_>| (file.name.to_owned(), file.bytes.to_vec());
    Ok(pack.files().map(owned).collect())
}

/// A recording whose signature is checked.
struct Source<'a> {
    path: &'a Path,
    directory: &'a Path,
    packed: Option<Contents>,
}

impl Source<'_> {
    /// Contents of a file of the recording.
    fn file(&self, name: &str) -> Result<Vec<u8>> {
        let missing = |reason: String| {
            let covered = "a signature is required, and it covers this file";
            refused(self.path, format!("{name}: {reason}; {covered}"))
        };
        match &self.packed {
            Some(files) => files
                .get(name)
                .cloned()
                .ok_or_else(|| missing("the pack has no such file".into())),
            None => {
                let recording = name == RECORDING;
                let opened = match recording && !self.path.is_dir() {
                    true => open_named(self.path),
                    false => beneath::open(self.directory, Path::new(name)),
                };
                let read = opened.and_then(|file| match recording {
                    true => read_recording(file),
                    false => beneath::contents(file, MAX_BYTES),
                });
                read.map_err(|error| missing(error.to_string()))
            }
        }
    }

    /// The files that the signature covers, each as it was when it was signed.
    fn signed(&self, key: &PublicKey, minimum: u64) -> Result<Contents> {
        let recording = self.file(RECORDING)?;
        let signature = self.file(SIGNATURE)?;
        let trusted = Signature::parse(&signature)
            .and_then(|signature| signature.verify(&recording, key, minimum))
            .map_err(|error| {
                let reason = format!("{SIGNATURE}: {}", signature_error(&error));
                refused(self.path, reason)
            })?;
        let mut files = BTreeMap::new();
        for file in trusted.files {
            let contents = self.file(file.name)?;
            if contents.len() as u64 != file.length || digest(&contents) != file.sha256 {
                let reason = format!("{}: it is not the file that was signed", file.name);
                return Err(refused(self.path, reason));
            }
            files.insert(file.name.to_owned(), contents);
        }
        files.insert(RECORDING.into(), trusted.recording.to_vec());
        // A device that checks signatures itself wants it too.
        files.insert(SIGNATURE.into(), signature.clone());
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents() -> Contents {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/saxpy-g52");
        let files = Files::read(&shipped).unwrap();
        let mut contents = files.beside().unwrap();
        contents.insert(RECORDING.into(), files.bytes);
        contents
    }

    #[test]
    fn a_copy_is_for_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saxpy.pack");
        fs::write(&path, gpureplay_sign::pack(&contents()).unwrap()).unwrap();
        let files = Files::read(&path).unwrap();
        let copy = files.copy.as_ref().unwrap()._directory.path();
        let mode = fs::metadata(copy).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{mode:o}");
        assert!(files.directory.starts_with(copy));
    }

    #[test]
    fn files_beside_are_as_many_and_as_long_as_they_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/saxpy-g52");
        fs::copy(shipped.join(RECORDING), folder.path().join(RECORDING)).unwrap();
        let named = |count: u32| {
            let mut text = "version = 1\nname = \"x\"\n[[case]]\n[case.inputs]\n".to_owned();
            for number in 0..count {
                text += &format!("t{number} = \"{number}\"\n");
                fs::write(folder.path().join(number.to_string()), "abcd").unwrap();
            }
            fs::write(folder.path().join(manifest::FILE_NAME), &text).unwrap();
            (Files::read(folder.path()).unwrap(), text.len() as u64)
        };
        let (files, manifest) = named(3);
        let together = manifest + 12;
        assert_eq!(files.beside_within(together).unwrap().len(), 4);
        assert!(files.beside_within(together - 1).is_err());
        // The manifest is one of them.
        assert!(named(MAX_FILES - 1).0.beside().is_ok());
        let error = named(MAX_FILES).0.beside().unwrap_err().to_string();
        assert!(error.contains("more than 4096 files"), "{error}");
    }

    #[test]
    fn names_that_differ_from_its_own_in_case_only_are_refused() {
        // Tensors may be called so.
        let mut both = contents();
        both.insert("inputs/X.npy".into(), b"other".to_vec());
        let path = Path::new("some.pack");
        let made = Files::from_contents(&both, Path::new("some"), (path, path)).unwrap();
        let there = fs::read(made.directory.join("inputs/X.npy")).unwrap();
        assert_eq!(there, b"other");
        for name in ["Recording.gpr", "recording.SIG", "MANIFEST.toml"] {
            let mut contents = contents();
            contents.insert(name.into(), Vec::new());
            let path = Path::new("some.pack");
            let made = Files::from_contents(&contents, Path::new("some"), (path, path));
            let error = made.unwrap_err().to_string();
            assert!(error.contains("letter case"), "{name}: {error}");
        }
    }
}
