// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask mesa`: Mesa's OpenCL with panfrost for x86-64.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
};

use clap::Args;
use gpureplay_task::output;

use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

const CASES: (&str, &str) = ("tools/mesa/cases.sh", "valhall-cases.txt");
/// Its hash names the directory.
const RECIPE: &str = "tools/mesa/build.sh";
/// For OpenCL loaders. Only a whole build has it: it comes last.
pub(crate) const RUNTIME: &str = "icd/rusticl.icd";
const TAIL: usize = 25;

/// Build Mesa's OpenCL with panfrost for x86-64, once, for `gpureplay node`
///
/// From Debian's source package with Debian's compilers, in a Debian root of its own that goes when it is done.
#[derive(Args)]
#[command(
    after_help = "Needs root, mmdebstrap, and a Debian mirror in apt's configuration (or in GPUREPLAY_DEBIAN_MIRROR); 4 GB of disk while it\n\
                        builds, 400 MB after. The result is mesa-HASH in ~/.cache/gpureplay (XDG_CACHE_HOME), and `mesa` beside it points there."
)]
pub(crate) struct Mesa {
    /// Compilers that run at once [default: one per processor]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// Only say where it is, or would be; exit code 1 if it is not built
    #[arg(long)]
    path: bool,
    /// Only fetch the cases of Mesa's Valhall assembler (47 MB of source), which tests of mali-isa read
    #[arg(long, conflicts_with_all = ["path", "jobs"])]
    cases: bool,
}

impl Mesa {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        if !cfg!(target_arch = "x86_64") {
            println!("Debian's mesa-opencl-icd has panfrost here: apt-get install mesa-opencl-icd");
            return Ok(ExitCode::SUCCESS);
        }
        let cache = cache();
        if self.cases {
            return fetch_cases(&cache);
        }
        let recipe = root().join(RECIPE);
        let text = files::read(&recipe)?;
        let folder = cache.join(format!("mesa-{:016x}", hash(&text)));
        let built = folder.join(RUNTIME).exists();
        if self.path {
            println!("{}", folder.display());
            return Ok(ExitCode::from(u8::from(!built)));
        }
        if !built {
            if let Some(hindrance) = hindrance() {
                return Err(Error::missing("what builds Mesa", hindrance));
            }
            self.build(&cache, &recipe, &folder)?;
        }
        point(&link(), &folder)?;
        println!("{}", folder.display());
        Ok(ExitCode::SUCCESS)
    }

    fn build(&self, cache: &Path, recipe: &Path, folder: &Path) -> Result<()> {
        files::create_dir(cache)?;
        // An interrupted build must not look whole.
        let work = tempfile::Builder::new().prefix(".mesa-").tempdir_in(cache);
        let work = work.map_err(Error::io("create a folder in", cache))?;
        let sources = work.path().join("sources");
        let out = work.path().join("out");
        for new in [&sources, &out] {
            fs::create_dir(new).map_err(Error::io("create", new))?;
        }
        write_sources(&sources)?;

        let all = || thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.unwrap_or_else(all).max(1);
        let log = cache.join("mesa.log");
        let file = fs::File::create(&log).map_err(Error::io("create", &log))?;
        let errors = file.try_clone().map_err(Error::io("create", &log))?;
        eprintln!(
            "building Mesa, ten minutes on two processors; log: {}",
            log.display()
        );
        let status = Command::new("bash")
            .arg(recipe)
            .env("OUT", &out)
            .env("SOURCES", &sources)
            .env("JOBS", jobs.to_string())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .status()
            .map_err(Error::start("bash"))?;
        if !status.success() {
            return Err(Error::Failed {
                what: "building Mesa".into(),
                status,
                log: tail(&log),
            });
        }
        let runtime = out.join(RUNTIME);
        let library = folder.join("lib/libRusticlOpenCL.so.1");
        let icd = out.join("icd");
        fs::create_dir(&icd).map_err(Error::io("create", &icd))?;
        files::write(&runtime, format!("{}\n", library.display()))?;
        match fs::rename(&out, folder) {
            // Another one was quicker.
            Err(_) if folder.join(RUNTIME).exists() => Ok(()),
            result => result.map_err(Error::io("create", folder)),
        }
    }
}

fn fetch_cases(cache: &Path) -> Result<ExitCode> {
    let file = cache.join(CASES.1);
    if !file.exists() {
        files::create_dir(cache)?;
        let sources = files::temporary()?;
        write_sources(sources.path())?;
        let mut fetch = Command::new("bash");
        fetch.arg(root().join(CASES.0)).env("OUT", cache);
        output(fetch.env("SOURCES", sources.path()))?;
    }
    println!("{}", file.display());
    Ok(ExitCode::SUCCESS)
}

fn write_sources(folder: &Path) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut mirror = Command::new(cargo);
    mirror.current_dir(root());
    mirror.args([
        "run",
        "--quiet",
        "--package",
        "gpureplay-guest",
        "--",
        "sources",
    ]);
    output(mirror.arg(folder)).map(drop)
}

pub(crate) fn link() -> PathBuf {
    cache().join("mesa")
}

fn cache() -> PathBuf {
    caches().join("gpureplay")
}

pub(crate) fn caches() -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    let cache = env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    cache.map_or_else(home, PathBuf::from)
}

/// FNV-1a: independent of compiler releases.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn hindrance() -> Option<&'static str> {
    let answer = |program: &str, argument: &str| output(Command::new(program).arg(argument)).ok();
    if answer("id", "-u").is_none_or(|text| text.trim() != "0") {
        return Some("a Debian root is made by root only");
    }
    answer("mmdebstrap", "--version")
        .is_none()
        .then_some("run `apt-get install mmdebstrap debian-archive-keyring` as root")
}

fn point(link: &Path, folder: &Path) -> Result<()> {
    if fs::read_link(link).is_ok_and(|to| to == folder) {
        return Ok(());
    }
    let new = link.with_extension(std::process::id().to_string());
    symlink(folder, &new).map_err(Error::io("create", &new))?;
    fs::rename(&new, link).map_err(|error| {
        let _ = fs::remove_file(&new);
        Error::io("replace", link)(error)
    })
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the authors of FNV.
    #[test]
    fn hashes_are_fnv() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn the_link_follows() {
        let cache = tempfile::tempdir().unwrap();
        let link = cache.path().join("mesa");
        for name in ["mesa-1", "mesa-1", "mesa-2"] {
            let folder = cache.path().join(name);
            point(&link, &folder).unwrap();
            assert_eq!(fs::read_link(&link).unwrap(), folder);
        }
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_in_the_links_place_stays_alone() {
        let cache = tempfile::tempdir().unwrap();
        let link = cache.path().join("mesa");
        fs::create_dir(&link).unwrap();
        let error = point(&link, &cache.path().join("mesa-1")).unwrap_err();
        assert!(error.to_string().contains("mesa"), "{error}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
        assert!(link.is_dir());
    }
}
