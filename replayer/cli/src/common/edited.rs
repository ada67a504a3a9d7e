// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings made from another one.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use gpureplay_edit::{Changed, EditError, Pair, ShaderFile, Taken};
use gpureplay_jobs::Selector;
use gpureplay_library::files::{FILE_NAME, SIGNATURE_NAME};
use gpureplay_library::{Bindings, Files, Manifest, Recording, Tensor, Trust, manifest, shown};
use gpureplay_tensors::encode_npy;

use crate::Result;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::Failure;
use crate::common::job_options::{one, table};
use crate::common::manifest_text::manifest_text;
use crate::common::model_options::WorkLimit;
use crate::common::new_directory::NewDirectory;
use crate::common::tensor_arguments::TensorFile;
use gpureplay_library::TensorKind;

pub(crate) fn open(path: &Path, trust: &Trust, force: Force) -> Result<(Recording, Destinations)> {
    let recording = Recording::open_trusted(path, trust)?.apart()?;
    let mut destinations = Destinations::new(force.force);
    destinations.reads(path);
    destinations.reads_recording(recording.files());
    Ok((recording, destinations))
}

pub(crate) fn say_unsigned(out: &mut impl Write, files: &Files) -> Result<()> {
    if files.signature()?.is_some() {
        writeln!(
            out,
            "the signature of {} is not that of what was written; sign it with `gpureplay sign`",
            shown(&files.path)
        )?;
    }
    Ok(())
}

pub(crate) fn bindings(recording: &Recording, inputs: &[TensorFile]) -> Result<Bindings> {
    let files = recording.files();
    let view = recording.verified().recording();
    let mut bindings = Bindings::new(view, &files.path);
    for given in inputs {
        let name = given.resolve(recording.tensors(), TensorKind::Input, "--input")?;
        bindings.bind_file(files, &name, &given.path)?;
    }
    let case = files.case().filter(|_| inputs.is_empty());
    for (name, path) in case.into_iter().flat_map(|case| &case.inputs) {
        bindings.bind_file(files, name, &files.directory.join(path))?;
    }
    Ok(bindings)
}

const MAX_CODE: u64 = 1 << 24;

const MAX_INTERFACE: u64 = 1 << 16;

fn read(path: &Path, most: u64, what: &str) -> Result<Vec<u8>> {
    let wrong = |reason: String| Failure::Input(format!("{}: {reason}", shown(path)));
    let metadata = fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !metadata.is_file() || metadata.len() == 0 || metadata.len() > most {
        return Err(wrong(format!("is no file with {what}")));
    }
    fs::read(path).map_err(|error| wrong(error.to_string()))
}

pub(crate) fn read_code(path: &Path) -> Result<Vec<u8>> {
    read(path, MAX_CODE, "the code of a shader")
}

pub(crate) fn read_shader(path: &Path) -> Result<ShaderFile> {
    let bytes = read_code(path)?;
    let beside = path.with_extension("toml");
    let wrong = |reason: String| Failure::Input(format!("{}: {reason}", shown(&beside)));
    let interface = match beside.symlink_metadata() {
        Ok(_) if beside != path => {
            let text = read(&beside, MAX_INTERFACE, "a shader's interface")?;
            let text = String::from_utf8(text).map_err(|error| wrong(error.to_string()))?;
            Some(toml::from_str(&text).map_err(|error| wrong(error.to_string()))?)
        }
        _ => None,
    };
    Ok(ShaderFile {
        bytes,
        interface: interface.map(Box::new),
    })
}

/// A job of another recording, `RECORDING:JOB`, with its first case's values. Both need the demanded signature.
pub(crate) fn taken(
    text: &str,
    ours: &Recording,
    pairs: &[Pair],
    trust: &Trust,
    work: WorkLimit,
) -> Result<Taken> {
    let (path, job) = text.split_once(':').ok_or_else(|| {
        Failure::Usage(format!(
            "{text}: expected a file with a shader, or RECORDING:JOB"
        ))
    })?;
    let theirs = Recording::open_trusted(path, trust)?.apart()?;
    let jobs = table(&theirs)?;
    let selector: Selector = job.parse()?;
    let index = one(&selector, &jobs)?;
    let values = bindings(&theirs, &[])?;
    let limit = work.limit_work;
    Ok(Taken::new(
        ours, &theirs, &jobs, index, &values, pairs, limit,
    )?)
}

fn beside(recording: &Recording, changed: &Manifest) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let wanted: Vec<PathBuf> = changed.files().map(Path::to_path_buf).collect();
    let files = recording.files().beside()?.into_iter();
    let files = files.map(|(name, contents)| (PathBuf::from(name), contents));
    Ok(files.filter(|(name, _)| wanted.contains(name)).collect())
}

pub(crate) struct Edited {
    folder: PathBuf,
    place: NewDirectory,
    destinations: Destinations,
    outdated_signature: Option<PathBuf>,
}

impl Edited {
    pub(crate) fn claim_if(
        folder: Option<&Path>,
        force: Force,
        destinations: &Destinations,
    ) -> Result<Option<Self>> {
        let claim = |folder| Self::claim(folder, force, destinations);
        folder.map(claim).transpose()
    }

    pub(crate) fn claim(folder: &Path, force: Force, destinations: &Destinations) -> Result<Self> {
        let place = NewDirectory::new(folder.to_path_buf(), force)?;
        let occupied = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if occupied && !folder.join(FILE_NAME).is_file() {
            return Err(Failure::Output(format!(
                "{}: holds something else than a recording; choose another directory",
                shown(folder)
            )));
        }
        let signature = folder.join(SIGNATURE_NAME);
        let outdated_signature = signature.symlink_metadata().is_ok().then_some(signature);
        let mut claimed = destinations.again();
        for name in [FILE_NAME, manifest::FILE_NAME, SIGNATURE_NAME] {
            claimed.claim_here(&folder.join(name))?;
        }
        Ok(Self {
            folder: folder.to_path_buf(),
            place,
            destinations: destinations.again(),
            outdated_signature,
        })
    }

    pub(crate) fn write(
        &self,
        bytes: &[u8],
        described: &Manifest,
        expected: &BTreeMap<String, Tensor>,
    ) -> Result<()> {
        self.write_with(bytes, described, expected, BTreeMap::new())
    }

    pub(crate) fn put(
        &self,
        recording: &Recording,
        changed: &Changed,
        command: String,
        out: &mut impl Write,
    ) -> Result<()> {
        let manifest = Manifest {
            command,
            ..changed.manifest.clone()
        };
        let more = beside(recording, &manifest)?;
        self.write_with(&changed.bytes, &manifest, &BTreeMap::new(), more)?;
        let folder = shown(&self.folder);
        writeln!(out, "{folder}: written, without a signature")?;
        Ok(())
    }

    fn write_with(
        &self,
        bytes: &[u8],
        described: &Manifest,
        expected: &BTreeMap<String, Tensor>,
        mut files: BTreeMap<PathBuf, Vec<u8>>,
    ) -> Result<()> {
        files.insert(
            manifest::FILE_NAME.into(),
            manifest_text(described)?.into_bytes(),
        );
        for (name, tensor) in expected {
            let npy = encode_npy(tensor);
            files.insert(Path::new("expected").join(format!("{name}.npy")), npy);
        }
        files.insert(FILE_NAME.into(), bytes.to_vec());
        self.place.write(&files, &self.destinations)?;
        if let Some(signature) = &self.outdated_signature {
            fs::remove_file(signature)
                .map_err(|error| Failure::Output(format!("{}: {error}", shown(signature))))?;
        }
        Ok(())
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Library(error) => error.into(),
            EditError::Jobs(_) | EditError::Rule(_) | EditError::Deep(_) | EditError::Encode(_) => {
                Self::Recording(error.to_string())
            }
            EditError::Failed { .. }
            | EditError::NotReached { .. }
            | EditError::NotReproduced { .. } => Self::Device(error.to_string()),
            EditError::NoInput(_) | EditError::Gate { .. } => Self::Input(error.to_string()),
            other => Self::Usage(other.to_string()),
        }
    }
}
