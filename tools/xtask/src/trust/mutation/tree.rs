// SPDX-License-Identifier: MIT OR Apache-2.0
//! The crates with all changes behind switches.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use super::{
    change::{Change, Texts},
    schema::{Instrumented, Place, instrument},
};
use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

const COPIED: [&str; 7] = [
    "replayer/core",
    "replayer/format",
    "base/sign",
    "mali/drive",
    "mali/facts",
    "nano-driver",
    "README.md",
];
const SWITCH: &str = "replayer/format/src";
/// Each leaves out what the compiler refused before.
const BUILDS: usize = 40;

pub(super) struct Program {
    pub(super) package: String,
    pub(super) path: PathBuf,
    pub(super) folder: PathBuf,
}

pub(super) struct Tree {
    folder: PathBuf,
    pub(super) programs: Vec<Program>,
    pub(super) refused: BTreeSet<u32>,
    pub(super) constants: BTreeSet<u32>,
    files: BTreeSet<String>,
}

impl Tree {
    pub(super) fn build(folder: &Path, packages: &[&str], changes: &[&Change]) -> Result<Self> {
        let mut tree = Self {
            folder: folder.to_owned(),
            programs: Vec::new(),
            refused: BTreeSet::new(),
            constants: BTreeSet::new(),
            files: BTreeSet::new(),
        };
        tree.copy(packages)?;
        for _ in 0..BUILDS {
            let places = tree.write(changes, 0)?;
            let refusals = tree.compile(packages)?;
            if refusals.is_empty() {
                return Ok(tree);
            }
            let before = tree.refused.len();
            tree.refuse(&refusals, &places);
            if tree.refused.len() == before {
                let first = refusals.first().map_or("", |refusal| &refusal.text);
                return Err(Error::Usage(format!(
                    "the crates do not compile, and no change is the reason: {first}"
                )));
            }
        }
        Err(Error::Usage(format!(
            "the crates do not compile after {BUILDS} tries"
        )))
    }

    pub(super) fn alone(&mut self, packages: &[&str], change: &Change) -> Result<bool> {
        self.write(&[change], change.number)?;
        Ok(self.compile(packages)?.is_empty())
    }

    fn copy(&self, packages: &[&str]) -> Result<()> {
        let tracked = gpureplay_task::output(
            Command::new("git")
                .current_dir(root())
                .args(["ls-files", "--"])
                .args(COPIED),
        )?;
        for name in tracked.lines().chain(["Cargo.lock", "rust-toolchain.toml"]) {
            put(&root().join(name), &self.folder.join(name))?;
        }
        let kept: BTreeSet<PathBuf> = tracked.lines().map(|name| self.folder.join(name)).collect();
        for folder in COPIED {
            prune(&self.folder.join(folder), &kept)?;
        }
        let path = root().join("Cargo.toml");
        let text = files::text(&path)?;
        let wrong =
            |error: &dyn std::fmt::Display| Error::Usage(format!("{}: {error}", path.display()));
        let mut manifest: toml::Table = text.parse().map_err(|error| wrong(&error))?;
        let workspace = manifest
            .get_mut("workspace")
            .and_then(toml::Value::as_table_mut)
            .ok_or_else(|| wrong(&"no workspace"))?;
        let members: Vec<toml::Value> = COPIED
            .iter()
            .filter(|folder| self.folder.join(folder).join("Cargo.toml").exists())
            .map(|&folder| folder.into())
            .collect();
        debug_assert!(members.len() >= packages.len());
        workspace.insert("members".into(), members.into());
        workspace.remove("default-members");
        workspace.remove("exclude");
        // A change may reveal an overflow.
        workspace.insert(
            "lints".into(),
            toml::from_str::<toml::Table>(
                "[rust]\narithmetic_overflow = \"allow\"\nunconditional_panic = \"allow\"\n\
                 unconditional_recursion = \"allow\"\n[clippy]\n",
            )
            .map_err(|error| wrong(&error))?
            .into(),
        );
        if let Some(profile) = manifest
            .get_mut("profile")
            .and_then(|profile| profile.get_mut("dev"))
            .and_then(toml::Value::as_table_mut)
        {
            profile.insert("debug".into(), false.into());
            profile.insert("incremental".into(), false.into());
        }
        let text = toml::to_string(&manifest).map_err(|error| wrong(&error))?;
        write(&self.folder.join("Cargo.toml"), &text)
    }

    /// Returns places; change `on` is on from the beginning.
    fn write(
        &mut self,
        changes: &[&Change],
        on: u32,
    ) -> Result<BTreeMap<String, (String, Vec<Place>)>> {
        let mut texts = Texts::default();
        let mut files: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
        for change in changes {
            let all = files.entry(&change.file).or_default();
            if !self.refused.contains(&change.number) {
                all.push(change);
            }
        }
        let lib = format!("{SWITCH}/lib.rs");
        files.entry(&lib).or_default();
        let others = self.files.clone();
        for file in &others {
            files.entry(file).or_default();
        }
        let mut written = BTreeMap::new();
        for (file, changes) in files {
            let text = texts.get(file)?;
            let Instrumented {
                text: mut made,
                mut places,
                lost,
                constants,
            } = instrument(text, &changes)
                .map_err(|error| Error::Usage(format!("{file}: {error}")))?;
            self.refused.extend(lost);
            self.constants.extend(constants);
            self.files.insert(file.to_owned());
            if file == lib {
                let switch = "#![no_std]\nextern crate self as gpureplay_format;\n\
                              #[doc(hidden)]\n#[path = \"mutation_switch.rs\"]\npub mod mutation;\n";
                let inner = made.replace("#![forbid(unsafe_code)]\n", "");
                let moved = made.len() as isize - inner.len() as isize;
                let grown = switch.len() as isize - "#![no_std]\n".len() as isize - moved;
                made = inner.replacen("#![no_std]\n", switch, 1);
                for place in &mut places {
                    let shift = |at: usize| at.saturating_add_signed(grown);
                    place.range = shift(place.range.start)..shift(place.range.end);
                }
            }
            write(&self.folder.join(file), &made)?;
            written.insert(file.to_owned(), (made, places));
        }
        write(
            &self.folder.join(SWITCH).join("mutation_switch.rs"),
            &include_str!("../../../mutation_switch.rs")
                .replace("ACTIVE: u32 = 0", &format!("ACTIVE: u32 = {on}")),
        )?;
        Ok(written)
    }

    fn compile(&mut self, packages: &[&str]) -> Result<Vec<Refusal>> {
        let mut command = Command::new("cargo");
        command
            .current_dir(&self.folder)
            .args([
                "test",
                "--no-run",
                "--lib",
                "--tests",
                "--message-format=json",
            ])
            .args(["--quiet", "--offline"])
            .args(packages.iter().flat_map(|name| ["--package", name]))
            // Others' crates are there already.
            .env("CARGO_TARGET_DIR", root().join("target"))
            .env("CARGO_INCREMENTAL", "0")
            .stderr(Stdio::inherit());
        let output = command.output().map_err(Error::start("cargo"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut refusals = Vec::new();
        self.programs.clear();
        for line in text.lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            match message["reason"].as_str() {
                Some("compiler-message") => refusals.extend(Refusal::of(&message["message"])),
                Some("compiler-artifact") => self.programs.extend(program(&message)),
                _ => {}
            }
        }
        if !output.status.success() && refusals.is_empty() {
            return Err(Error::Failed {
                what: "cargo test --no-run".into(),
                status: output.status,
                log: String::new(),
            });
        }
        Ok(refusals)
    }

    /// Leaves out changes at each error's place, else all on its lines.
    fn refuse(&mut self, refusals: &[Refusal], places: &BTreeMap<String, (String, Vec<Place>)>) {
        for refusal in refusals {
            let spans = || {
                refusal
                    .spans
                    .iter()
                    .filter_map(|(file, start, end)| Some((places.get(file)?, *start, *end)))
            };
            let mut found: Vec<u32> = spans()
                .flat_map(|((_, places), start, end)| {
                    places
                        .iter()
                        .filter(move |place| place.range.start <= start && end <= place.range.end)
                })
                .map(|place| place.number)
                .collect();
            if found.is_empty() {
                found = spans()
                    .flat_map(|((text, places), start, end)| {
                        let from = text.get(..start).and_then(|text| text.rfind('\n'));
                        let to = text.get(end..).and_then(|text| text.find('\n'));
                        let (from, to) = (from.unwrap_or(0), to.map_or(text.len(), |at| end + at));
                        places.iter().filter(move |place| {
                            from <= place.range.start && place.range.start < to
                        })
                    })
                    .map(|place| place.number)
                    .collect();
            }
            self.refused.extend(found);
        }
    }
}

struct Refusal {
    text: String,
    /// File, first byte, byte after the last.
    spans: Vec<(String, usize, usize)>,
}

impl Refusal {
    fn of(message: &Value) -> Option<Self> {
        (message["level"] == "error").then(|| {
            let mut spans = Vec::new();
            collect(message, &mut spans);
            Self {
                text: message["rendered"].as_str().unwrap_or_default().to_owned(),
                spans,
            }
        })
    }
}

fn collect(message: &Value, spans: &mut Vec<(String, usize, usize)>) {
    for span in message["spans"].as_array().into_iter().flatten() {
        if let (Some(file), Some(start), Some(end)) = (
            span["file_name"].as_str(),
            span["byte_start"].as_u64(),
            span["byte_end"].as_u64(),
        ) {
            spans.push((file.to_owned(), start as usize, end as usize));
        }
    }
    for note in message["children"].as_array().into_iter().flatten() {
        collect(note, spans);
    }
}

fn program(message: &Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_owned();
    let text = std::fs::read_to_string(manifest).ok()?;
    let package = text
        .lines()
        .find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))?;
    Some(Program {
        package: package.to_owned(),
        path,
        folder,
    })
}

fn prune(folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for path in files::entries(folder)? {
        if path.is_dir() {
            prune(&path, kept)?;
        } else if !kept.contains(&path) {
            std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Leaves an equal file alone, or cargo would build it again.
fn put(from: &Path, to: &Path) -> Result<()> {
    if to.extension() == Some(OsStr::new("rs")) && to.exists() {
        let old = files::read(to)?;
        if old == files::read(from)? {
            return Ok(());
        }
    }
    let bytes = files::text(from)?;
    write(to, &bytes)
}

fn write(to: &Path, text: &str) -> Result<()> {
    if std::fs::read(to).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        files::create_dir(folder)?;
    }
    files::write(to, text)
}
