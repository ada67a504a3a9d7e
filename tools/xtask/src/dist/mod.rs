// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask dist`: what people install.

mod deb;
mod install;
mod library;
mod modules;
pub(crate) mod packages;
mod sbom;
mod tree;
mod wheel;

pub(crate) use install::Install;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::{Args, ValueEnum};

use gpureplay_task::{output, run};

use crate::{
    error::{Error, Result},
    files,
    repository::{git, root},
};

use library::Library;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `replayer/c/build.rs` writes it into the library.
const SONAME: &str = "libgpureplay.so.0";

/// Makes what people install: a static command, Debian packages, a wheel for Python, a list of what is inside,
/// checksums.
///
/// The command needs nothing of the machine. The library for C and Python needs the GNU C library that the wheel's
/// name says. Two builds of one commit give the same bytes, which `--twice` checks.
#[derive(Args)]
#[command(
    after_help = "Needs the target (rustup target add x86_64-unknown-linux-musl), dpkg-deb, and readelf, python3, and for aarch64 the packages gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.\n\
                  Examples:\n  cargo xtask dist\n  cargo xtask dist --machine aarch64 --twice\n  cargo xtask dist --check\n  \
                  apt install ./target/dist/packages/gpureplay_0.1.0_amd64.deb"
)]
pub(crate) struct Dist {
    /// Machine that it is for
    #[arg(long, value_enum, default_value_t = Machine::X86_64)]
    machine: Machine,
    /// Build twice in different folders, and fail if one byte differs
    #[arg(long)]
    twice: bool,
    /// Make only the packages of kernel modules, which are source for every machine: nothing is compiled
    #[arg(long, conflicts_with_all = ["machine", "twice", "check"])]
    modules: bool,
    /// Then install them in a fresh Debian root and use them there, as `cargo xtask packages` does
    #[arg(long)]
    check: bool,
}

/// A machine that packages are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Machine {
    #[value(name = "x86_64")]
    X86_64,
    Aarch64,
}

impl Machine {
    fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    fn multiarch(self) -> String {
        format!("{}-linux-gnu", self.name())
    }

    fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }
}

struct Source {
    top: PathBuf,
    commit: String,
    /// Seconds since 1970.
    time: String,
}

impl Dist {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        if self.check && self.machine.name() != env::consts::ARCH {
            return Err(Error::Usage(format!(
                "--check installs the packages on this machine ({}), and they are for {}",
                env::consts::ARCH,
                self.machine.name()
            )));
        }
        let source = Source::find()?;
        if self.modules {
            let packages = source.top.join("target/dist/packages");
            files::create_dir(&packages)?;
            for path in modules::write(&source, &packages)? {
                println!("{}", path.display());
            }
            return Ok(ExitCode::SUCCESS);
        }
        let made = self.make(&source, &source.top.join("target/dist"))?;
        if self.twice {
            let again = self.make(&source, &source.top.join("target/dist-again"))?;
            let differs = made
                .iter()
                .find(|(name, sum)| again.get(*name) != Some(sum));
            if let Some((name, _)) = differs {
                return Err(Error::fell_short(
                    format!("{name} of two builds of {}", source.commit),
                    "compare target/dist/packages and target/dist-again/packages (diffoscope)",
                ));
            }
            println!("two builds gave the same bytes");
        }
        match self.check {
            true => packages::check(packages::SUITE),
            false => Ok(ExitCode::SUCCESS),
        }
    }

    fn make(&self, source: &Source, folder: &Path) -> Result<BTreeMap<String, String>> {
        let packages = folder.join("packages");
        files::create_dir(&packages)?;
        let command = source.build(folder, self.machine, "musl", "gpureplay")?;
        let command = command.join("gpureplay");
        let library = source.build(folder, self.machine, "gnu", "gpureplay-c")?;
        let library = Library::built(&library)?;
        let companions = deb::COMPANIONS
            .iter()
            .map(|(package, file)| {
                let release = source.build(folder, self.machine, "gnu", package)?;
                Ok(release.join(file))
            })
            .collect::<Result<Vec<_>>>()?;
        let plain = packages.join(format!("gpureplay-{}", self.machine.debian()));
        fs::copy(&command, &plain).map_err(Error::io("write", &plain))?;
        let mut made = vec![plain];
        made.push(deb::command(
            source,
            self.machine.debian(),
            &command,
            &companions,
            &packages,
        )?);
        made.extend(deb::library(source, self.machine, &library, &packages)?);
        made.push(wheel::write(source, self.machine, &library, &packages)?);
        made.extend(modules::write(source, &packages)?);
        made.push(sbom::write(source, &packages)?);
        let sums = made
            .iter()
            .map(|path| Ok((name(path), sha256(path)?)))
            .collect::<Result<BTreeMap<_, _>>>()?;
        let lines: String = sums
            .iter()
            .map(|(name, sum)| format!("{sum}  {name}\n"))
            .collect();
        let path = packages.join(format!("SHA256SUMS-{}", self.machine.debian()));
        files::write(&path, lines)?;
        for path in &made {
            let bytes = fs::metadata(path).map_err(Error::io("read", path))?.len();
            println!("{bytes:>10} bytes  {}", path.display());
        }
        Ok(sums)
    }
}

impl Source {
    fn find() -> Result<Self> {
        let line = |arguments: &[&str]| -> Result<String> {
            Ok(git(arguments)?.into_iter().next().unwrap_or_default())
        };
        Ok(Self {
            commit: line(&["rev-parse", "--short=12", "HEAD"])?,
            time: line(&["log", "-1", "--format=%ct"])?,
            top: root(),
        })
    }

    /// `c`, the C library: `musl` or `gnu`.
    fn build(&self, folder: &Path, machine: Machine, c: &str, package: &str) -> Result<PathBuf> {
        let target = format!("{}-unknown-linux-{c}", machine.name());
        let home = env::var_os("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
        let mut flags = vec![format!(
            "--remap-path-prefix={}=/gpureplay",
            self.top.display()
        )];
        if let Some(home) = home {
            flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
        }
        // A crate with settings in the profile loses the profile's strip.
        flags.push("-Cstrip=symbols".into());
        // With several, builds sometimes differ in names.
        flags.push("-Ccodegen-units=1".into());
        // For generated sources. The last fitting prefix counts.
        flags.push(format!(
            "--remap-path-prefix={}=/gpureplay/target/dist",
            folder.display()
        ));
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(&self.top)
            .args(["build", "--release", "--locked", "--package", package])
            .args(["--target", &target])
            .arg("--target-dir")
            .arg(folder)
            .env("RUSTFLAGS", flags.join(" "))
            .env("GPUREPLAY_COMMIT", &self.commit);
        if machine == Machine::Aarch64 {
            let linker = format!(
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_{}_LINKER",
                c.to_uppercase()
            );
            cargo.env(linker, "aarch64-linux-gnu-gcc");
        }
        run(&format!("building {package}"), &mut cargo)?;
        Ok(folder.join(target).join("release"))
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn sha256(path: &Path) -> Result<String> {
    let text = output(Command::new("sha256sum").arg(path))?;
    Ok(text
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned())
}
