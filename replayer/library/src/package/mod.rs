// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packs and signed recordings.

pub(crate) mod open;
pub(crate) mod seal;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gpureplay_host::{Existing, beneath, shown};
use gpureplay_sign::{
    MAX_FILES, MAX_SIGNATURE, Pack, PackError, Packed, PublicKey, RECORDING, SIGNATURE, Signature,
    SignatureError, digest, is_safe,
};

use crate::error::{Error, Result};
use crate::files::Files;
use crate::manifest::{self, Manifest};
use crate::trust::{Trust, signature_error};
use open::{Held, MAX_BYTES, PrivateCopy, open_named, read_recording, read_within};

const MAX_FOLDERS: usize = 256;

type Contents<'a> = BTreeMap<String, Cow<'a, [u8]>>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Use,
    Look,
}

/// Refuses files in too many directories: each has to be made.
fn within_folders<'a>(path: &Path, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut folders = BTreeSet::new();
    for name in names {
        let ends = name.match_indices('/');
        folders.extend(ends.filter_map(|(end, _)| name.get(..end)));
        if folders.len() > MAX_FOLDERS {
            let reason = format!("its files lie in more than {MAX_FOLDERS} folders");
            return Err(refused(path, reason));
        }
    }
    Ok(())
}

/// Refuses names that differ only in case from the recording's own.
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
    /// Reads a directory, a file, or a pack, and checks its signature if demanded.
    ///
    /// Files are read once. What the signature covers is copied into a directory that only this user can write, so
    /// what is used is what was checked.
    ///
    /// # Errors
    /// No recording, an unusable pack or manifest, or not signed as demanded.
    pub fn open(path: &Path, trust: &Trust) -> Result<Self> {
        Self::open_for(Purpose::Use, path, trust)
    }

    /// [`Files::open`] without a private copy: files beside the recording cannot be used.
    ///
    /// # Errors
    /// As for [`Files::open`].
    pub fn look(path: &Path, trust: &Trust) -> Result<Self> {
        Self::open_for(Purpose::Look, path, trust)
    }

    fn open_for(purpose: Purpose, path: &Path, trust: &Trust) -> Result<Self> {
        let bytes = match is_pack(path) {
            true => {
                let bytes = open_named(path).and_then(read_recording);
                Some(bytes.map_err(|error| refused(path, error))?)
            }
            false => None,
        };
        let packed = bytes.as_ref().map(|bytes| unpack(path, bytes));
        let packed = packed.transpose()?;
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
        match purpose {
            Purpose::Use => Self::from_contents(&contents, path, directory),
            Purpose::Look => Self::held(&contents, path, directory),
        }
    }

    /// A recording or a pack.
    ///
    /// # Errors
    /// An unusable pack, or not signed as demanded; a bare recording never is.
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
                held: None,
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
        Self::from_contents(&contents, path, path)
    }

    fn held(contents: &Contents<'_>, path: &Path, original: &Path) -> Result<Self> {
        named_apart(contents, original)?;
        let at = original.join(manifest::FILE_NAME);
        let manifest = contents.get(manifest::FILE_NAME);
        let manifest = manifest.map(|bytes| Manifest::decode(bytes, &at));
        let manifest = manifest.transpose()?;
        let bytes = covered(contents, manifest.as_ref(), path)?;
        let variants = manifest.iter().flat_map(|manifest| &manifest.variants);
        let variants = variants.filter_map(|variant| {
            let name = variant.file.to_str()?;
            Some((name.to_owned(), contents.get(name)?.to_vec()))
        });
        let variants = variants.collect();
        let signature = contents.get(SIGNATURE);
        let seal = signature.map(|signature| {
            seal::of(signature, bytes, |name, length| {
                let there = contents.get(name).map(|contents| contents.as_ref());
                let there = there.filter(|contents| contents.len() as u64 == length);
                Ok(there.map(Cow::Borrowed))
            })
        });
        Ok(Self {
            path: path.to_path_buf(),
            bytes: bytes.to_vec(),
            directory: original.to_path_buf(),
            manifest,
            copy: None,
            held: Some(Held { variants, seal }),
        })
    }

    fn from_contents(contents: &Contents<'_>, path: &Path, original: &Path) -> Result<Self> {
        named_apart(contents, original)?;
        let failed = |error: std::io::Error| Error::Write {
            path: "a temporary directory".into(),
            reason: error.to_string(),
        };
        let temporary = tempfile::Builder::new()
            .prefix("gpureplay-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(failed)?;
        let directory = temporary.path().join("recording");
        fs::create_dir(&directory).map_err(failed)?;
        for (name, contents) in contents {
            // Names may differ only in case: one must not replace the other.
            beneath::write_soon(&directory, Path::new(name), &[contents], Existing::Keep)
                .map_err(failed)?;
        }
        let manifest = Manifest::read(&directory)?;
        let bytes = covered(contents, manifest.as_ref(), path)?.to_vec();
        Ok(Self {
            path: path.to_path_buf(),
            bytes,
            directory,
            manifest,
            held: None,
            copy: Some(PrivateCopy {
                _directory: temporary,
                original: original.to_path_buf(),
            }),
        })
    }

    /// The recording's own file; for a pack, in its private copy.
    pub fn file(&self) -> PathBuf {
        match &self.copy {
            Some(_) => self.directory.join(RECORDING),
            None => self.path.clone(),
        }
    }

    /// The original of a private copy.
    pub fn original(&self) -> &Path {
        match &self.copy {
            Some(copy) => &copy.original,
            None => &self.directory,
        }
    }

    /// Path of a file for people: not that of a temporary copy.
    pub fn shown(&self, file: &Path) -> PathBuf {
        let inside = file.strip_prefix(&self.directory).ok();
        match (&self.copy, inside) {
            (Some(copy), Some(inside)) => copy.original.join(inside),
            _ => file.to_path_buf(),
        }
    }

    /// The manifest and its files by name, for a signature or a pack.
    ///
    /// # Errors
    /// A file is missing or has a forbidden name; too many files or bytes.
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

    /// # Errors
    /// It cannot be read.
    pub fn signature(&self) -> Result<Option<Vec<u8>>> {
        match beneath::read(&self.directory, Path::new(SIGNATURE), MAX_SIGNATURE) {
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

fn named_apart(contents: &Contents<'_>, path: &Path) -> Result<()> {
    apart(path, contents.keys().map(String::as_str))?;
    within_folders(path, contents.keys().map(String::as_str))
}

/// The recording, if the contents have all files that the manifest names.
fn covered<'a>(
    contents: &'a Contents<'_>,
    manifest: Option<&Manifest>,
    path: &Path,
) -> Result<&'a [u8]> {
    let mut files = manifest.into_iter().flat_map(Manifest::files);
    let outside = files.find(|file| {
        let name = file.to_str().filter(|name| is_safe(name));
        !name.is_some_and(|name| contents.contains_key(name))
    });
    if let Some(file) = outside {
        let reason = format!(
            "manifest.toml names {}, which is not in the pack or not covered by the signature",
            shown(file)
        );
        return Err(refused(path, reason));
    }
    match contents.get(RECORDING) {
        Some(bytes) => Ok(bytes),
        None => Err(refused(path, format!("it has no {RECORDING}"))),
    }
}

fn unpack<'a>(path: &Path, bytes: &'a [u8]) -> Result<Contents<'a>> {
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
    let named = |file: Packed<'a>| (file.name.to_owned(), Cow::Borrowed(file.bytes));
    Ok(pack.files().map(named).collect())
}

struct Source<'a> {
    path: &'a Path,
    directory: &'a Path,
    packed: Option<Contents<'a>>,
}

impl<'a> Source<'a> {
    fn file(&self, name: &str, most: u64) -> Result<Cow<'a, [u8]>> {
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
                    true => read_within(file, most),
                    false => beneath::contents(file, most),
                });
                read.map(Cow::Owned)
                    .map_err(|error| missing(error.to_string()))
            }
        }
    }

    /// Files that the signature covers, unchanged.
    fn signed(&self, key: &PublicKey, minimum: u64) -> Result<Contents<'a>> {
        let wrong = |reason: String| refused(self.path, format!("{SIGNATURE}: {reason}"));
        let signature = self.file(SIGNATURE, MAX_SIGNATURE)?;
        let wrong = |error| wrong(signature_error(&error));
        let stated = Signature::parse(&signature).map_err(wrong)?;
        if stated.signer() != *key {
            return Err(wrong(SignatureError::Key));
        }
        let recording = self.file(RECORDING, stated.recording_length().min(MAX_BYTES))?;
        let trusted = stated.verify(&recording, key, minimum).map_err(wrong)?;
        let mut files = BTreeMap::new();
        for file in trusted.files {
            let contents = self.file(file.name, file.length)?;
            if contents.len() as u64 != file.length || digest(&contents) != file.sha256 {
                let reason = format!("{}: it is not the file that was signed", file.name);
                return Err(refused(self.path, reason));
            }
            files.insert(file.name.to_owned(), contents);
        }
        files.insert(RECORDING.into(), recording);
        // A device that checks signatures wants it too.
        files.insert(SIGNATURE.into(), signature);
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents() -> Contents<'static> {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/saxpy-g52");
        let files = Files::read(&shipped).unwrap();
        let mut contents = files.beside().unwrap();
        contents.insert(RECORDING.into(), files.bytes);
        let owned = contents.into_iter();
        owned
            .map(|(name, bytes)| (name, Cow::Owned(bytes)))
            .collect()
    }

    #[test]
    fn a_copy_is_for_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saxpy.pack");
        let files = contents().into_iter();
        let files = files.map(|(name, bytes)| (name, bytes.into_owned()));
        fs::write(&path, gpureplay_sign::pack(&files.collect()).unwrap()).unwrap();
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
        // The manifest counts too.
        assert!(named(MAX_FILES - 1).0.beside().is_ok());
        let error = named(MAX_FILES).0.beside().unwrap_err().to_string();
        assert!(error.contains("more than 4096 files"), "{error}");
    }

    #[test]
    fn names_that_differ_from_its_own_in_case_only_are_refused() {
        let mut both = contents();
        both.insert("inputs/X.npy".into(), Cow::Borrowed(b"other"));
        let path = Path::new("some.pack");
        let made = Files::from_contents(&both, path, path).unwrap();
        let there = fs::read(made.directory.join("inputs/X.npy")).unwrap();
        assert_eq!(there, b"other");
        for name in ["Recording.gpr", "recording.SIG", "MANIFEST.toml"] {
            let mut contents = contents();
            contents.insert(name.into(), Cow::Borrowed(&[]));
            let path = Path::new("some.pack");
            let made = Files::from_contents(&contents, path, path);
            let error = made.unwrap_err().to_string();
            assert!(error.contains("letter case"), "{name}: {error}");
        }
    }

    #[test]
    fn files_lie_in_as_many_folders_as_they_may() {
        let checked = |folders: usize| {
            let name = |at: usize| [format!("{at}/x"), format!("{at}/y/x")];
            let names: Vec<String> = (0..folders / 2).flat_map(name).collect();
            within_folders(Path::new("x"), names.iter().map(String::as_str))
        };
        assert!(checked(MAX_FOLDERS).is_ok());
        let error = checked(MAX_FOLDERS + 2).unwrap_err().to_string();
        assert!(error.contains("more than 256 folders"), "{error}");
    }
}
