// SPDX-License-Identifier: MIT OR Apache-2.0
//! Apps whose render node is the model.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use gpureplay_library::shown;

use crate::Result;
use crate::common::companion;
use crate::common::failure::Failure;
use crate::common::gpu_argument;

/// Variables by which users choose OpenCL runtimes.
const RUNTIMES: [&str; 2] = ["OCL_ICD_VENDORS", "OCL_ICD_FILENAMES"];
/// Beside Mesa's C library.
const LOADER: &str = "ld-linux-x86-64.so.2";

const DEFAULT: &str = "g52";

/// Options of the node.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeOptions {
    /// The model's GPU: g31, g52, g57, g610, g71, g72, g76, or a board
    #[arg(id = "node_gpu", long = "gpu", value_name = "GPU", default_value = DEFAULT, value_parser = gpu_argument::node_gpu)]
    gpu: String,
    /// Mesa with panfrost, as `cargo xtask mesa` makes it. If not given, ~/.cache/gpureplay/mesa; without that, the machine's
    #[arg(long, value_name = "DIR")]
    mesa: Option<PathBuf>,
    /// The node's library; if not given, libgpureplay_node.so beside this command, in ../lib or ../lib/gpureplay
    #[arg(long, value_name = "FILE")]
    node_library: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelNode {
    gpu: String,
    library: PathBuf,
    mesa: Option<PathBuf>,
}

impl NodeOptions {
    pub(crate) fn unnamed() -> Result<Self> {
        Ok(Self {
            gpu: DEFAULT.to_owned(),
            mesa: None,
            node_library: None,
        })
    }

    pub(crate) fn node(&self) -> Result<ModelNode> {
        Ok(ModelNode {
            gpu: self.gpu.clone(),
            library: companion::NODE.find(self.node_library.as_deref())?,
            mesa: self.mesa()?,
        })
    }

    fn mesa(&self) -> Result<Option<PathBuf>> {
        if let Some(mesa) = &self.mesa {
            return match runtime(mesa).exists() {
                true => Ok(Some(absolute(mesa))),
                false => Err(Failure::Input(format!(
                    "{}: not there; `cargo xtask mesa` makes such a folder and says its name",
                    shown(&runtime(mesa))
                ))),
            };
        }
        if RUNTIMES.iter().any(|name| env::var_os(name).is_some()) {
            return Ok(None);
        }
        let built = cache().join("mesa");
        if runtime(&built).exists() {
            return Ok(built.canonicalize().ok());
        }
        if cfg!(target_arch = "x86_64") {
            return Err(Failure::Device(format!(
                "no Mesa with panfrost: Debian builds it for Arm only. `cargo xtask mesa` builds it into {}, once; --mesa DIR names another, \
                 and with OCL_ICD_VENDORS set the app takes what that names",
                shown(&built)
            )));
        }
        Ok(None)
    }
}

impl ModelNode {
    pub(crate) fn gpu(&self) -> &str {
        &self.gpu
    }

    pub(crate) fn command(&self, app: &[String]) -> Result<Command> {
        let (program, arguments) = app
            .split_first()
            .ok_or_else(|| Failure::Usage("which app?".into()))?;
        let mut command = match self.mesa.as_deref().filter(|mesa| is_newer(mesa)) {
            Some(mesa) => through_loader(mesa, program, arguments)?,
            None => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
        };
        command.env(
            "LD_PRELOAD",
            preload(env::var_os("LD_PRELOAD"), &self.library),
        );
        command.env("GPUREPLAY_NODE_GPU", &self.gpu);
        command.env("RUSTICL_ENABLE", "panfrost");
        // Then Mesa asks for no PCI device.
        command.env("MESA_LOADER_DRIVER_OVERRIDE", "panfrost");
        if let Some(mesa) = &self.mesa {
            command.env("OCL_ICD_VENDORS", mesa.join("icd"));
        }
        Ok(command)
    }
}

/// Last: earlier libraries reach it as they would the driver.
fn preload(before: Option<OsString>, library: &Path) -> OsString {
    let mut list = before.unwrap_or_default();
    if !list.is_empty() {
        list.push(":");
    }
    list.push(library);
    list
}

/// The loader ignores the variable, so the app's folders follow Mesa's.
fn libraries(mesa: &Path, theirs: Option<OsString>) -> OsString {
    let own = mesa.join("libc").into_os_string();
    match theirs.filter(|folders| !folders.is_empty()) {
        Some(folders) => preload(Some(own), Path::new(&folders)),
        None => own,
    }
}

fn runtime(mesa: &Path) -> PathBuf {
    mesa.join("icd/rusticl.icd")
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn cache() -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    let cache = env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    cache.map_or_else(home, PathBuf::from).join("gpureplay")
}

fn is_newer(mesa: &Path) -> bool {
    let theirs = fs::read_to_string(mesa.join("libc/version")).ok();
    let ours = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok();
    let ours = ours.and_then(|output| String::from_utf8(output.stdout).ok());
    let ours = ours
        .as_deref()
        .and_then(|text| version(text.split(' ').next_back()?));
    let theirs = theirs.as_deref().and_then(version);
    matches!((ours, theirs), (Some(ours), Some(theirs)) if ours < theirs)
}

fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Mesa's newer C library also serves the app.
fn through_loader(mesa: &Path, program: &str, arguments: &[String]) -> Result<Command> {
    let file = found(program)?;
    let mut words = interpreted(&file)?;
    words.push(file.into());
    words.extend(arguments.iter().map(OsString::from));
    let mut command = Command::new(mesa.join("libc").join(LOADER));
    let theirs = env::var_os("LD_LIBRARY_PATH");
    command.arg("--library-path").arg(libraries(mesa, theirs));
    // Programs may look at their names.
    if words.first().map(OsString::as_os_str) == Some(found(program)?.as_os_str()) {
        command.arg("--argv0").arg(program);
    }
    command.args(words);
    Ok(command)
}

fn found(program: &str) -> Result<PathBuf> {
    if program.contains('/') {
        return Ok(program.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).map(|folder| folder.join(program));
    let file = { places }.find(|place| place.is_file());
    file.ok_or_else(|| Failure::Usage(format!("{program}: not found in PATH")))
}

/// Interpreter and argument from `#!`; nothing for a program.
fn interpreted(file: &Path) -> Result<Vec<OsString>> {
    let wrong = |error| Failure::Usage(format!("{}: {error}", shown(file)));
    let mut start = Vec::new();
    let opened = fs::File::open(file).map_err(wrong)?;
    std::io::Read::read_to_end(&mut std::io::Read::take(opened, 256), &mut start).map_err(wrong)?;
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let Some(line) = line.strip_prefix(b"#!") else {
        return Ok(Vec::new());
    };
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        // `env` would start the program without the loader.
        (Some(env), Some(name)) if Path::new(env).file_name() == Some(OsStr::new("env")) => {
            Ok(vec![found(name)?.into()])
        }
        (Some(interpreter), argument) => Ok([Some(interpreter), argument]
            .into_iter()
            .flatten()
            .map(OsString::from)
            .collect()),
        (None, _) => Ok(Vec::new()),
    }
}

#[cfg(test)]
impl NodeOptions {
    pub(crate) fn without_mesa(folder: &Path) -> Self {
        Self {
            gpu: DEFAULT.to_owned(),
            mesa: Some(folder.into()),
            node_library: Some(folder.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_is_behind_other_libraries() {
        let library = Path::new("/lib/node.so");
        assert_eq!(preload(None, library), "/lib/node.so");
        assert_eq!(preload(Some("".into()), library), "/lib/node.so");
        assert_eq!(
            preload(Some("a.so:b.so".into()), library),
            "a.so:b.so:/lib/node.so"
        );
    }

    #[test]
    fn the_app_keeps_its_folders_of_libraries() {
        let found = |theirs: Option<&str>| libraries(Path::new("/mesa"), theirs.map(Into::into));
        assert_eq!(found(None), "/mesa/libc");
        assert_eq!(found(Some("")), "/mesa/libc");
        assert_eq!(found(Some("/a:/b")), "/mesa/libc:/a:/b");
    }

    #[test]
    fn versions_are_numbers() {
        assert_eq!(version("2.36\n"), Some((2, 36)));
        assert!(version("2.9") < version("2.36"));
        assert_eq!(version("new"), None);
    }

    #[test]
    fn scripts_are_run_by_what_they_name() {
        let folder = tempfile::tempdir().unwrap();
        let words = |text: &str| {
            let file = folder.path().join("script");
            fs::write(&file, text).unwrap();
            interpreted(&file).unwrap()
        };
        assert!(words("\x7fELF").is_empty());
        assert!(words("").is_empty() && words("#!").is_empty());
        assert_eq!(words("#!/bin/sh -e\necho"), ["/bin/sh", "-e"]);
        assert_eq!(words("#! /bin/true"), ["/bin/true"]);
        let [shell] = words("#!/usr/bin/env sh\n").try_into().unwrap();
        assert!(Path::new(&shell).is_file());
    }

    #[test]
    fn a_folder_without_the_runtime_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let options = NodeOptions {
            gpu: DEFAULT.to_owned(),
            mesa: Some(folder.path().into()),
            node_library: None,
        };
        let text = options.mesa().unwrap_err().to_string();
        assert!(
            text.contains("rusticl.icd") && text.contains("cargo xtask mesa"),
            "{text}"
        );
        fs::create_dir(folder.path().join("icd")).unwrap();
        fs::write(folder.path().join("icd/rusticl.icd"), "").unwrap();
        assert_eq!(options.mesa().unwrap(), folder.path().canonicalize().ok());
    }
}
