// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds, reads and checks a recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use gpureplay_core::Rule;
use gpureplay_format::layout::FAMILY_STREAMS;
use gpureplay_format::{Recording, TensorKind};
use gpureplay_host::beneath;
use mali_jobs::streams;

use crate::digest::sha256;
use crate::error::Error;
use crate::family::Verified;
use crate::host_rules;
use crate::manifest::{self, Case, Manifest};
use crate::package::open::{Held, PrivateCopy, open_named, read_recording};
use crate::tensors::{TensorInfo, chains_of};
use crate::trust::Trust;
use crate::values::{self, ImageFormat};

pub use crate::names::{RECORDING as FILE_NAME, SIGNATURE as SIGNATURE_NAME};

/// A recording and the files beside it.
#[derive(Debug)]
pub struct Files {
    /// The recording itself.
    pub path: PathBuf,
    /// Manifest, inputs and expected outputs.
    pub directory: PathBuf,
    /// Recording.
    pub bytes: Vec<u8>,
    /// If any.
    pub manifest: Option<Manifest>,
    pub(crate) copy: Option<PrivateCopy>,
    /// Set if the files are only looked at: `directory` is empty.
    pub(crate) held: Option<Held>,
}

impl Files {
    /// Reads a directory with `recording.gpr`, such a file, or a pack. Does not check who made it.
    ///
    /// # Errors
    /// No recording, or an unusable pack or manifest.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::open(path, &Trust::default())
    }

    pub(crate) fn read_plain(path: &Path) -> Result<Self, Error> {
        let missing = |reason: &str| Error::NoRecording {
            path: path.to_path_buf(),
            reason: reason.to_owned(),
        };
        let metadata = std::fs::metadata(path).map_err(|error| missing(&error.to_string()))?;
        let (file, directory, opened) = if metadata.is_dir() {
            let opened = beneath::open(path, Path::new(FILE_NAME));
            if matches!(&opened, Err(error) if error.kind() == ErrorKind::NotFound) {
                return Err(missing(&format!("contains no {FILE_NAME}")));
            }
            (path.join(FILE_NAME), path.to_path_buf(), opened)
        } else {
            let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
            (path.to_path_buf(), directory, open_named(path))
        };
        let bytes = opened.and_then(read_recording);
        let bytes = bytes.map_err(|error| Error::NoRecording {
            path: file.clone(),
            reason: error.to_string(),
        })?;
        let manifest = Manifest::read(&directory)?;
        Ok(Self {
            path: file,
            directory,
            bytes,
            manifest,
            copy: None,
            held: None,
        })
    }

    /// The recording's name.
    pub fn name(&self) -> String {
        if let Some(manifest) = &self.manifest {
            return manifest.name.clone();
        }
        let path = self.original().canonicalize().unwrap_or_default();
        let name = match path.is_file() {
            true => path.file_stem(),
            false => path.file_name(),
        };
        name.map_or_else(|| "recording".into(), |name| name.to_string_lossy().into())
    }

    /// The manifest's first case.
    pub fn case(&self) -> Option<&Case> {
        self.manifest.as_ref()?.cases.first()
    }

    /// Parses the bytes; also checks the manifest's hash.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(&self) -> Result<Recording<'_>, Error> {
        let recording = self.view()?;
        self.is_the_manifests()?;
        Ok(recording)
    }

    /// # Errors
    /// The bytes are damaged.
    pub fn view(&self) -> Result<Recording<'_>, Error> {
        Recording::parse(&self.bytes).map_err(|error| Error::Damaged {
            path: self.path.clone(),
            error,
        })
    }

    /// Checks rules, and that the manifest fits.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn verify<'a>(&self, recording: &'a Recording<'a>) -> Result<Verified<'a>, Error> {
        let verified = Verified::check(recording).map_err(|violation| {
            let path = self.path.clone();
            // The rule says that a launch is wrong; `streams::broken` says what.
            let launch = (violation.rule == Rule::JobConfiguration)
                .then(|| streams::broken(recording))
                .flatten();
            match launch {
                Some((action, broken)) if recording.header().family.get() == FAMILY_STREAMS => {
                    Error::Launch {
                        path,
                        action,
                        broken,
                    }
                }
                _ => Error::NotAllowed { path, violation },
            }
        })?;
        self.is_the_manifests()?;
        let tensors = host_rules::check(recording).map_err(|broken| Error::Unsuitable {
            path: self.path.clone(),
            broken,
        })?;
        self.described(&tensors)?;
        self.names_its_jobs(recording)?;
        Ok(verified)
    }

    fn is_the_manifests(&self) -> Result<(), Error> {
        let stated = self.manifest.as_ref().and_then(Manifest::recording_sha256);
        let Some(expected) = stated else {
            return Ok(());
        };
        let found = sha256(&self.bytes);
        if found.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        Err(Error::NotTheManifests {
            path: self.path.clone(),
            expected: expected.to_owned(),
            found,
        })
    }

    /// Missing files of the manifest, in its order.
    pub fn missing(&self) -> Vec<PathBuf> {
        // What is held is complete.
        if self.held.is_some() {
            return Vec::new();
        }
        let named = self.manifest.iter().flat_map(Manifest::files);
        let missing = named.filter(|file| beneath::open(&self.directory, file).is_err());
        let mut missing: Vec<PathBuf> = missing.map(|file| self.directory.join(file)).collect();
        missing.dedup();
        missing
    }

    pub(crate) fn image(&self, tensor: &str) -> Option<&ImageFormat> {
        self.manifest.as_ref()?.images.get(tensor)
    }

    /// [`values::split`], but keeps the name of the recording's directory whole.
    pub(crate) fn split<'a>(&self, path: &'a Path) -> (PathBuf, Option<&'a str>) {
        let (before, inside) = match path.strip_prefix(&self.directory) {
            Ok(inside) => (self.directory.as_path(), inside),
            Err(_) => (Path::new(""), path),
        };
        let (file, part) = values::split(inside);
        (before.join(file), part)
    }

    /// Opens a file of the manifest without following links, or any other that the user names.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<File> {
        let inside = path.strip_prefix(&self.directory).ok();
        let mut named = self.manifest.iter().flat_map(Manifest::files);
        match inside.filter(|inside| named.any(|file| file == *inside)) {
            Some(file) => beneath::open(&self.directory, file),
            None => File::open(path),
        }
    }

    fn names_its_jobs(&self, recording: &Recording<'_>) -> Result<(), Error> {
        let Some(manifest) = &self.manifest else {
            return Ok(());
        };
        let chains = recording.segments().iter();
        let chains = chains.map(|segment| chains_of(recording, segment) as usize);
        let named = manifest.names_chains_of(chains.sum());
        named.map_err(|reason| Error::Manifest {
            path: self.directory.join(manifest::FILE_NAME),
            reason,
        })
    }

    fn described(&self, tensors: &[TensorInfo]) -> Result<(), Error> {
        let Some(manifest) = &self.manifest else {
            return Ok(());
        };
        let kinds: BTreeMap<&str, TensorKind> = tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor.kind))
            .collect();
        let unknown = manifest.tensors().find(|(_, name, wanted)| {
            let found = kinds.get(name.as_str());
            !found.is_some_and(|found| wanted.is_none_or(|wanted| *found == wanted))
        });
        match unknown {
            None => Ok(()),
            Some((place, name, kind)) => Err(Error::Manifest {
                path: self.directory.join(manifest::FILE_NAME),
                reason: format!(
                    "{place} names {name}, but the recording has no {} of this name",
                    kind.map_or("tensor", TensorKind::name)
                ),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use gpureplay_format::{Access, Builder, ElementType, RegionKind, SegmentKind, Tensor};

    use super::*;

    const GPU: u32 = 0x7212_0000;
    const DATA: u64 = 0x300_0000;
    const CHAIN: u64 = 0x10_0000_0000;

    /// All outputs are in the same memory.
    fn files(outputs: &[(&str, u32)], pages: u32, manifest: &str) -> Files {
        files_of_layer("run", outputs, pages, manifest)
    }

    fn files_of_layer(layer: &str, outputs: &[(&str, u32)], pages: u32, manifest: &str) -> Files {
        let mut builder = Builder::new(GPU);
        builder.identity(0, 0xffff_0000, GPU);
        builder.region(DATA, pages, Access::READ_WRITE, RegionKind::Data);
        let mut tensors = Vec::new();
        for &(name, elements) in outputs {
            let shape = [elements];
            let kind = TensorKind::Output;
            tensors.push(builder.tensor(Tensor::dense(name, kind, ElementType::U8, &shape, DATA)));
        }
        builder.region(CHAIN, 1, Access::READ_WRITE, RegionKind::Descriptors);
        builder.segment(layer, SegmentKind::Run);
        builder.rearm(CHAIN);
        builder.submit(1, CHAIN, 1000);
        for tensor in tensors {
            builder.bind_output(tensor);
        }
        Files {
            path: "recording.gpr".into(),
            directory: PathBuf::new(),
            bytes: builder.finish().unwrap(),
            manifest: Some(Manifest::parse(manifest).unwrap()),
            copy: None,
            held: None,
        }
    }

    const HEAD: &str = "version = 1\nname = \"x\"\n";

    #[test]
    fn a_manifest_names_tensors_that_are_there() {
        let with = |rest: &str| {
            let files = files(&[("out", 16)], 1, &format!("{HEAD}{rest}"));
            let verified = files.verify(&files.view().unwrap()).map(drop);
            verified.map_err(|error| error.to_string())
        };
        assert_eq!(with("[outputs.out]\ntolerance = 0.0\n"), Ok(()));
        for wrong in [
            "[outputs.other]\n",
            "[external.out]\nfile = \"w.npy\"\nsha256 = \"\"\n",
            "[images.other]\nlayout = \"HW\"\n",
            "[[case]]\ninputs = { other = \"a.npy\" }\n",
            "[[case]]\ninputs = {}\nexpected = { other = \"a.npy\" }\n",
        ] {
            let error = with(wrong).unwrap_err();
            assert!(error.contains("manifest.toml: "), "{error}");
            assert!(error.contains("but the recording has no "), "{error}");
        }
    }

    #[test]
    fn outputs_that_share_memory_take_no_more_than_the_limit() {
        let in_pages = |pages: u32, outputs: &[(&str, u32)]| {
            let files = files(outputs, pages, HEAD);
            let verified = files.verify(&files.view().unwrap()).map(drop);
            verified.map_err(|error| error.to_string())
        };
        // The recording has a fourth page, for a job.
        let together = |outputs: &[(&str, u32)]| in_pages(3, outputs);
        let most = 3 << 12;
        let mut outputs = vec![
            ("a", most),
            ("b", most),
            ("c", most),
            ("d", most),
            ("e", most),
        ];
        assert_eq!(together(&outputs), Ok(()));
        // 16 pages in all: four times those of the recording.
        outputs.push(("f", 1 << 12));
        assert_eq!(together(&outputs), Ok(()));
        outputs.push(("g", 1));
        let error = together(&outputs).unwrap_err();
        assert!(
            error.contains("65537 bytes together, more than 65536"),
            "{error}"
        );
        // Outputs of a recording of 2 GiB have at most 4 GiB.
        let half = 1 << 31;
        assert_eq!(in_pages(1 << 19, &[("a", half), ("b", half)]), Ok(()));
        let error = in_pages(1 << 19, &[("a", half), ("b", half), ("c", 1)]).unwrap_err();
        assert!(
            error.contains("4294967297 bytes together, more than 4294967296"),
            "{error}"
        );
    }

    #[test]
    fn a_name_is_as_long_as_that_of_a_file() {
        let broken = |tensor: usize, layer: usize| {
            let [tensor, layer] = [tensor, layer].map(|length| "n".repeat(length));
            let files = files_of_layer(&layer, &[(&tensor, 16)], 1, HEAD);
            let verified = files.verify(&files.view().unwrap()).map(drop);
            verified.err().map(|error| error.to_string())
        };
        assert_eq!(broken(255, 255), None);
        for error in [broken(256, 255), broken(255, 256)].map(Option::unwrap) {
            assert!(error.contains("a name has 256 bytes"), "{error}");
        }
    }

    #[test]
    fn a_device_is_no_recording() {
        let error = Files::read(Path::new("/dev/zero")).unwrap_err();
        assert!(error.to_string().contains("is a device"), "{error}");
    }
}
