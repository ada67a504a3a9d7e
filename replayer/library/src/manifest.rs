// SPDX-License-Identifier: MIT OR Apache-2.0
//! `manifest.toml`: facts for people, and expected outputs.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gpureplay_format::TensorKind;
use gpureplay_host::{beneath, shown};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::values::{ImageFormat, is_standard_input, split};

pub use crate::names::MANIFEST as FILE_NAME;

/// The only version.
pub const VERSION: u32 = 1;
/// Default relative tolerance of outputs.
pub const DEFAULT_TOLERANCE: f64 = 1e-5;
/// A NaN or an infinity would allow anything.
pub fn is_tolerance(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

const MAX_BYTES: u64 = 1 << 20;

const MOST_VARIANTS: usize = 64;

/// Bytes of a kernel, class or GPU name, as of a tensor: reports repeat them per job or answer.
pub const MOST_NAME: usize = 255;
/// Bytes of a recording's name and a reference's: reports repeat the latter per output.
pub const MOST_LINE: usize = 1024;
const MOST_PATH: usize = 4096;
/// Bytes of a description, a command, a fact of the provenance: shown once.
pub const MOST_TEXT: usize = 1 << 16;

/// Longest prefix of at most so many bytes.
pub fn beginning(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

fn bounded(place: &dyn Fn() -> String, text: &str, most: usize) -> std::result::Result<(), String> {
    if text.len() <= most {
        return Ok(());
    }
    Err(format!(
        "{} has {} bytes, expected at most {most}: shorten it",
        place(),
        text.len()
    ))
}

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`VERSION`].
    pub version: u32,
    /// As the directory's.
    pub name: String,
    /// One line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The command that made the recording.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// GPU, kernel, driver, runtime, framework, app, and more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provenance: BTreeMap<String, String>,
    /// By tensor name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Output>,
    /// By tensor name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, ImageFormat>,
    /// Weights by tensor name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub external: BTreeMap<String, External>,
    /// Inputs with an independent reference's outputs.
    #[serde(default, rename = "case", skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<Case>,
    /// For other GPUs.
    #[serde(default, rename = "variant", skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Job chains with known kernels.
    #[serde(default, rename = "job", skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
}

/// A job chain's launch; several chains may have one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// In the recording, from 0.
    pub submission: usize,
    /// From 0 in that chain; all its jobs if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<usize>,
    /// In the app, from 0.
    pub launch: u32,
    /// Name.
    pub kernel: String,
    /// Work-items per dimension.
    pub global: Sizes,
    /// Work-items of a group, if the app chose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<Sizes>,
}

/// Three sizes, as text `24x24x1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sizes(pub [u64; 3]);

impl From<[u64; 3]> for Sizes {
    fn from(sizes: [u64; 3]) -> Self {
        Self(sizes)
    }
}

impl From<Sizes> for String {
    fn from(Sizes([x, y, z]): Sizes) -> Self {
        format!("{x}x{y}x{z}")
    }
}

impl TryFrom<String> for Sizes {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let sizes: Vec<u64> = text
            .split('x')
            .filter_map(|size| size.parse().ok())
            .collect();
        match <[u64; 3]>::try_from(sizes) {
            Ok(sizes) if String::from(Self(sizes)) == text => Ok(Self(sizes)),
            _ => Err(format!("'{text}' is not three sizes such as 24x24x1")),
        }
    }
}

/// Facts about an output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Largest difference, relative to the larger of the expected and the mean magnitude; 0: equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Class names, for a classification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// A weight outside the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// Relative to the directory; `FILE.safetensors#NAME` for a tensor of several.
    pub file: PathBuf,
    /// Of the file, in hexadecimal.
    pub sha256: String,
}

/// Recording for another GPU: its file holds only data that the first one lacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// A GPU, or a board with it.
    pub gpu: String,
    /// Relative to the directory.
    pub file: PathBuf,
    /// Of the whole recording, in hexadecimal.
    pub sha256: String,
    /// One line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub made: String,
}

/// Paths are relative to the recording's directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Files by tensor name.
    pub inputs: BTreeMap<String, PathBuf>,
    /// Files by tensor name.
    #[serde(default)]
    pub expected: BTreeMap<String, PathBuf>,
    /// What computed the expected outputs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
}

impl Manifest {
    /// `None` if the directory has no manifest.
    ///
    /// # Errors
    /// It cannot be read, or is not a manifest.
    pub fn read(directory: &Path) -> Result<Option<Self>, Error> {
        let path = directory.join(FILE_NAME);
        let wrong = |reason: String| Error::Manifest {
            path: path.clone(),
            reason,
        };
        let bytes = match beneath::read(directory, Path::new(FILE_NAME), MAX_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| wrong(error.to_string()))?,
        };
        let manifest = Self::decode(&bytes, &path)?;
        for file in manifest.files() {
            // Devices and pipes may never end, links lead elsewhere. Missing files are reported when needed.
            if let Err(error) = beneath::open(directory, file)
                && error.kind() == ErrorKind::InvalidInput
            {
                return Err(wrong(format!(
                    "names {}, which is not a file inside the directory: {error}",
                    shown(file)
                )));
            }
        }
        Ok(Some(manifest))
    }

    /// SHA-256 of the recording in hexadecimal, if stated.
    pub fn recording_sha256(&self) -> Option<&str> {
        self.provenance.get("sha256").map(String::as_str)
    }

    /// Relative to the recording's directory.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let cases = self.cases.iter();
        let cases = cases.flat_map(|case| case.inputs.values().chain(case.expected.values()));
        let external = self.external.values().map(|external| &external.file);
        let variants = self.variants.iter().map(|variant| variant.file.as_path());
        cases
            .chain(external)
            .map(|file| split(file).0)
            .chain(variants)
    }

    /// Drops variants and their files: a changed recording does not change them.
    pub fn drop_variants(&mut self, files: &mut BTreeMap<String, Vec<u8>>) {
        for variant in self.variants.drain(..) {
            files.retain(|name, _| Path::new(name) != variant.file);
        }
    }

    pub(crate) fn tensors(
        &self,
    ) -> impl Iterator<Item = (&'static str, &String, Option<TensorKind>)> {
        let outputs = self.outputs.keys().map(|name| ("outputs", name, None));
        let images = self.images.keys().map(|name| ("images", name, None));
        let weight = Some(TensorKind::Weight);
        let external = self.external.keys();
        let external = external.map(move |name| ("external", name, weight));
        let cases = self.cases.iter().flat_map(|case| {
            let names = case.inputs.keys().chain(case.expected.keys());
            names.map(|name| ("a case", name, None))
        });
        outputs.chain(images).chain(external).chain(cases)
    }

    pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Manifest {
            path: path.to_path_buf(),
            reason,
        };
        if bytes.len() as u64 > MAX_BYTES {
            return Err(wrong(format!("longer than {MAX_BYTES} bytes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        Self::parse(text).map_err(wrong)
    }

    /// # Errors
    /// Where and why it is not one.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let manifest: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| {
                1 + text
                    .bytes()
                    .take(span.start)
                    .filter(|&byte| byte == b'\n')
                    .count()
            });
            let reason: Vec<&str> = error.message().lines().collect();
            format!("line {line}: {}", reason.join(" "))
        })?;
        if manifest.version != VERSION {
            return Err(format!(
                "version {} is not known, this program reads version {VERSION}",
                manifest.version
            ));
        }
        if manifest.variants.len() > MOST_VARIANTS {
            return Err(format!(
                "{} variants, expected at most {MOST_VARIANTS}",
                manifest.variants.len()
            ));
        }
        for (name, output) in &manifest.outputs {
            let stated = output.tolerance.unwrap_or(DEFAULT_TOLERANCE);
            if !is_tolerance(stated) {
                return Err(format!(
                    "[outputs.{name}]: tolerance {stated}, expected a number from 0 on"
                ));
            }
        }
        manifest.texts_are_bounded()?;
        manifest.jobs_are_named_once()?;
        manifest.names_no_standard_input()?;
        Ok(manifest)
    }

    fn texts_are_bounded(&self) -> std::result::Result<(), String> {
        let plain = |what: &'static str| move || what.to_owned();
        bounded(&plain("name"), &self.name, MOST_LINE)?;
        bounded(&plain("description"), &self.description, MOST_TEXT)?;
        bounded(&plain("command"), &self.command, MOST_TEXT)?;
        for (key, value) in &self.provenance {
            bounded(&plain("a key of [provenance]"), key, MOST_NAME)?;
            bounded(&|| format!("[provenance]: {key}"), value, MOST_TEXT)?;
        }
        for (name, output) in &self.outputs {
            bounded(&plain("the name of an [outputs.NAME]"), name, MOST_NAME)?;
            for (at, label) in output.labels.iter().enumerate() {
                let place = || format!("[outputs.{name}]: label {at}");
                bounded(&place, label, MOST_NAME)?;
            }
        }
        for (name, image) in &self.images {
            bounded(&plain("the name of an [images.NAME]"), name, MOST_NAME)?;
            let place = || format!("[images.{name}]: layout");
            bounded(&place, &image.layout, MOST_NAME)?;
        }
        for (name, external) in &self.external {
            bounded(&plain("the name of an [external.NAME]"), name, MOST_NAME)?;
            let place = || format!("[external.{name}]: sha256");
            bounded(&place, &external.sha256, MOST_NAME)?;
        }
        for (number, case) in (1..).zip(&self.cases) {
            let place = || format!("[[case]] {number}: reference");
            bounded(&place, &case.reference, MOST_LINE)?;
            for name in case.inputs.keys().chain(case.expected.keys()) {
                let place = || format!("[[case]] {number}: the name of a tensor");
                bounded(&place, name, MOST_NAME)?;
            }
        }
        for (number, variant) in (1..).zip(&self.variants) {
            let place = |what| move || format!("[[variant]] {number}: {what}");
            bounded(&place("gpu"), &variant.gpu, MOST_NAME)?;
            bounded(&place("sha256"), &variant.sha256, MOST_NAME)?;
            bounded(&place("made"), &variant.made, MOST_TEXT)?;
        }
        for (number, job) in (1..).zip(&self.jobs) {
            let place = || format!("[[job]] {number}: kernel");
            bounded(&place, &job.kernel, MOST_NAME)?;
        }
        for file in self.files() {
            let place = || "the path of a file".to_owned();
            bounded(&place, &file.to_string_lossy(), MOST_PATH)?;
        }
        Ok(())
    }

    fn names_no_standard_input(&self) -> std::result::Result<(), String> {
        match self.files().any(is_standard_input) {
            true => Err("it names -, which is standard input: name a file".to_owned()),
            false => Ok(()),
        }
    }

    fn jobs_are_named_once(&self) -> std::result::Result<(), String> {
        let mut named: Vec<(usize, &Job)> = (1..).zip(&self.jobs).collect();
        // A whole chain (`None`) sorts before its jobs.
        named.sort_by_key(|(_, job)| (job.submission, job.job));
        let twice = named.array_windows().find(|[(_, before), (_, after)]| {
            let same = before.job.is_none() || before.job == after.job;
            before.submission == after.submission && same
        });
        match twice {
            None => Ok(()),
            Some([(first, _), (second, job)]) => Err(format!(
                "[[job]] {first} and [[job]] {second} name the same job of submission {}: leave one of them out",
                job.submission
            )),
        }
    }

    pub(crate) fn names_chains_of(&self, chains: usize) -> std::result::Result<(), String> {
        match (1..)
            .zip(&self.jobs)
            .find(|(_, job)| job.submission >= chains)
        {
            None => Ok(()),
            Some((number, job)) => Err(format!(
                "[[job]] {number} names submission {}, but the recording submits {}, counted from 0",
                job.submission,
                crate::text::count(chains as u64, "chain")
            )),
        }
    }

    /// # Errors
    /// TOML cannot hold a value, or [`Manifest::parse`] refuses it.
    pub fn to_text(&self) -> Result<String, Error> {
        let wrong = |reason| Error::Write {
            path: FILE_NAME.into(),
            reason,
        };
        self.texts_are_bounded()
            .and_then(|()| self.jobs_are_named_once())
            .and_then(|()| self.names_no_standard_input())
            .map_err(wrong)?;
        let text = toml::to_string_pretty(self).map_err(|error| wrong(error.to_string()))?;
        match text.len() as u64 > MAX_BYTES {
            true => Err(wrong(format!(
                "it would have {} bytes, expected at most {MAX_BYTES}",
                text.len()
            ))),
            false => Ok(text),
        }
    }

    /// Drops job names from the end until the text fits, and says how many.
    ///
    /// # Errors
    /// TOML cannot hold a value.
    pub fn fit(&mut self) -> Result<usize, Error> {
        let length = |manifest: &Self| {
            let text = toml::to_string_pretty(manifest);
            text.map(|text| text.len() as u64)
                .map_err(|error| Error::Write {
                    path: FILE_NAME.into(),
                    reason: error.to_string(),
                })
        };
        let before = self.jobs.len();
        if length(self)? <= MAX_BYTES {
            return Ok(0);
        }
        let (mut fits, mut beyond) = (0, before);
        let mut kept = self.clone();
        while fits + 1 < beyond {
            let middle = fits.midpoint(beyond);
            kept.jobs = self.jobs.iter().take(middle).cloned().collect();
            match length(&kept)? <= MAX_BYTES {
                true => fits = middle,
                false => beyond = middle,
            }
        }
        self.jobs.truncate(fits);
        Ok(before - fits)
    }

    /// Tolerance of an output.
    pub fn tolerance(&self, output: &str) -> f64 {
        let stated = self.outputs.get(output).and_then(|output| output.tolerance);
        stated.unwrap_or(DEFAULT_TOLERANCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_inside_and_are_files() {
        let name = format!("gpureplay-manifest-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("inputs")).unwrap();
        std::fs::write(folder.join("inputs/a.npy"), "").unwrap();
        let with = |file: &str, external: &str| {
            let text = format!(
                "version = 1\nname = \"x\"\n[[case]]\ninputs = {{ a = \"{file}\" }}\n\
                 [external.w]\nfile = \"{external}\"\nsha256 = \"\"\n"
            );
            std::fs::write(folder.join(FILE_NAME), text).unwrap();
            Manifest::read(&folder)
        };
        let good = "weights/w.safetensors#w";
        assert!(with("inputs/a.npy", good).unwrap().is_some());
        for bad in ["/dev/zero", "../x.npy", "inputs/../../x.npy", "inputs"] {
            let error = with(bad, good).unwrap_err().to_string();
            assert!(error.contains("inside the directory"), "{error}");
            let error = with("inputs/a.npy", bad).unwrap_err().to_string();
            assert!(error.contains("inside the directory"), "{error}");
        }
        assert!(with("inputs/a.npy", "/w.safetensors#w").is_err());
        assert!(with("inputs/b.npy", good).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_manifest_has_as_many_variants_as_it_may() {
        let with = |variants: usize| {
            let variant = "[[variant]]\ngpu = \"g31\"\nfile = \"a\"\nsha256 = \"\"\n";
            Manifest::parse(&format!(
                "version = 1\nname = \"x\"\n{}",
                variant.repeat(variants)
            ))
        };
        assert_eq!(with(MOST_VARIANTS).unwrap().variants.len(), MOST_VARIANTS);
        let error = with(MOST_VARIANTS + 1).unwrap_err();
        assert!(error.contains("65 variants"), "{error}");
    }

    #[test]
    fn texts_are_as_long_as_they_may_be() {
        let of = |key: &str, length: usize| {
            let text = key.replace('@', &"k".repeat(length));
            Manifest::parse(&format!("version = 1\n{text}"))
        };
        let job = "[[job]]\nsubmission = 0\nlaunch = 0\nglobal = \"1x1x1\"";
        let named = |text: &str| format!("name = \"x\"\n{text}");
        for (text, place, most) in [
            ("name = \"@\"".to_owned(), "name", MOST_LINE),
            (named("description = \"@\""), "description", MOST_TEXT),
            (named("command = \"@\""), "command", MOST_TEXT),
            (
                named("[provenance]\n@ = \"x\""),
                "a key of [provenance]",
                MOST_NAME,
            ),
            (
                named("[provenance]\nk = \"@\""),
                "[provenance]: k",
                MOST_TEXT,
            ),
            (
                named("[outputs.@]"),
                "the name of an [outputs.NAME]",
                MOST_NAME,
            ),
            (
                named("[outputs.o]\nlabels = [\"a\", \"@\"]"),
                "[outputs.o]: label 1",
                MOST_NAME,
            ),
            (
                named("[images.@]\nlayout = \"x\""),
                "the name of an [images.NAME]",
                MOST_NAME,
            ),
            (
                named("[images.i]\nlayout = \"@\""),
                "[images.i]: layout",
                MOST_NAME,
            ),
            (
                named("[external.@]\nfile = \"x\"\nsha256 = \"\""),
                "the name of an [external.NAME]",
                MOST_NAME,
            ),
            (
                named("[external.w]\nfile = \"x\"\nsha256 = \"@\""),
                "[external.w]: sha256",
                MOST_NAME,
            ),
            (
                named("[external.w]\nfile = \"@\"\nsha256 = \"\""),
                "the path of a file",
                MOST_PATH,
            ),
            (
                named("[[case]]\ninputs = {}\nreference = \"@\""),
                "[[case]] 1: reference",
                MOST_LINE,
            ),
            (
                named("[[case]]\ninputs = { @ = \"x\" }"),
                "[[case]] 1: the name of a tensor",
                MOST_NAME,
            ),
            (
                named("[[variant]]\ngpu = \"@\"\nfile = \"x\"\nsha256 = \"\""),
                "[[variant]] 1: gpu",
                MOST_NAME,
            ),
            (
                named("[[variant]]\ngpu = \"\"\nfile = \"x\"\nsha256 = \"@\""),
                "[[variant]] 1: sha256",
                MOST_NAME,
            ),
            (
                named("[[variant]]\ngpu = \"\"\nfile = \"x\"\nsha256 = \"\"\nmade = \"@\""),
                "[[variant]] 1: made",
                MOST_TEXT,
            ),
            (
                named(&format!("{job}\nkernel = \"@\"")),
                "[[job]] 1: kernel",
                MOST_NAME,
            ),
        ] {
            let most_read = of(&text, most);
            assert!(most_read.is_ok(), "{place}: {most_read:?}");
            let error = of(&text, most + 1).unwrap_err();
            let expected = format!("{place} has {} bytes, expected at most {most}", most + 1);
            assert!(error.starts_with(&expected), "{error}");
        }
        let mut manifest = of("name = \"@\"", 1).unwrap();
        manifest.command = "c".repeat(MOST_TEXT + 1);
        assert!(
            manifest.to_text().is_err(),
            "what is not read is not written"
        );
        manifest.command = beginning(&manifest.command, MOST_TEXT).to_owned();
        assert!(manifest.to_text().is_ok());
        assert_eq!(beginning("aä", 2), "a");
    }

    #[test]
    fn standard_input_is_no_file() {
        for name in ["-", "-/", "-/."] {
            for place in ["inputs", "expected"] {
                let other = if place == "expected" {
                    "inputs = {}\n"
                } else {
                    ""
                };
                let case = format!("[[case]]\n{other}{place} = {{ x = \"{name}\" }}");
                let error = Manifest::parse(&format!("version = 1\nname = \"x\"\n{case}"));
                assert!(error.unwrap_err().contains("standard input"), "{case}");
            }
        }
        let file = "version = 1\nname = \"x\"\n[[case]]\ninputs = { x = \"-.npy\" }";
        assert!(Manifest::parse(file).is_ok());
    }

    #[test]
    fn what_a_manifest_has_no_room_for_is_left_out() {
        let mut manifest = Manifest::parse("version = 1\nname = \"x\"").unwrap();
        assert_eq!(manifest.fit().unwrap(), 0);
        let all: Vec<Job> = (0..20_000)
            .map(|submission| Job {
                submission,
                kernel: "k".repeat(100),
                ..Job::default()
            })
            .collect();
        manifest.jobs = all.clone();
        assert!(
            manifest.to_text().is_err(),
            "what is not read is not written"
        );
        let left_out = manifest.fit().unwrap();
        assert!(left_out > 0);
        assert_eq!(manifest.jobs, all[..all.len() - left_out]);
        let text = manifest.to_text().unwrap();
        assert!(Manifest::parse(&text).is_ok());
        manifest.jobs.push(all[manifest.jobs.len()].clone());
        assert!(manifest.to_text().is_err());
    }

    #[test]
    fn a_job_is_named_once() {
        let of = |jobs: &[(usize, Option<usize>)]| {
            let mut text = "version = 1\nname = \"x\"\n".to_owned();
            for (submission, job) in jobs {
                let job = job.map_or_else(String::new, |job| format!("job = {job}\n"));
                text += &format!(
                    "[[job]]\nsubmission = {submission}\n{job}launch = 0\nkernel = \"k\"\nglobal = \"1x1x1\"\n"
                );
            }
            Manifest::parse(&text)
        };
        let good = of(&[(1, Some(1)), (0, None), (1, Some(0)), (2, None)]).unwrap();
        assert!(good.names_chains_of(3).is_ok());
        let error = good.names_chains_of(2).unwrap_err();
        assert!(error.starts_with("[[job]] 4 names submission 2"), "{error}");
        for bad in [
            [(1, None), (0, None), (1, None)],
            [(1, Some(3)), (0, Some(3)), (1, Some(3))],
            [(1, None), (0, None), (1, Some(3))],
            [(1, Some(3)), (1, Some(4)), (1, None)],
        ] {
            let error = of(&bad).unwrap_err();
            assert!(
                error.contains("name the same job of submission 1"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_tolerance_allows_less_than_anything() {
        for (stated, good) in [
            ("0.0", true),
            ("1e-4", true),
            ("nan", false),
            ("inf", false),
            ("-1.0", false),
        ] {
            let text = format!("version = 1\nname = \"x\"\n[outputs.out]\ntolerance = {stated}\n");
            assert_eq!(Manifest::parse(&text).is_ok(), good, "{stated}");
        }
    }

    #[test]
    fn a_manifest_comes_back() {
        let mut manifest = Manifest {
            version: VERSION,
            name: "x".into(),
            ..Manifest::default()
        };
        manifest.provenance.insert("gpu".into(), "Mali-G52".into());
        manifest.outputs.insert(
            "out".into(),
            Output {
                tolerance: Some(0.0),
                labels: vec!["zero".into()],
            },
        );
        manifest.cases.push(Case {
            inputs: [("a".to_owned(), PathBuf::from("inputs/a.npy"))].into(),
            expected: [("out".to_owned(), PathBuf::from("expected/out.npy"))].into(),
            reference: "NumPy".into(),
        });
        manifest.jobs.push(Job {
            submission: 3,
            job: Some(1),
            launch: 2,
            kernel: "im2col".into(),
            global: [24, 24, 1].into(),
            local: Some([4, 4, 1].into()),
        });
        let text = manifest.to_text().unwrap();
        assert_eq!(
            toml::from_str::<Manifest>(&text).unwrap(),
            manifest,
            "{text}"
        );
        assert_eq!(manifest.tolerance("out"), 0.0);
        assert_eq!(manifest.tolerance("other"), DEFAULT_TOLERANCE);
    }
}
