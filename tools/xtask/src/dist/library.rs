// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C library: needs and installed files.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use super::{SONAME, Source, VERSION};
use gpureplay_task::output;

use crate::{
    error::{Error, Result},
    files,
};

/// In every manylinux distribution (PEP 600).
const EVERYWHERE: [&str; 5] = [
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// Oldest that suffices: major, minor.
    pub(super) glibc: (u32, u32),
    libraries: BTreeSet<String>,
}

impl Needs {
    pub(super) fn ask(shared: &Path) -> Result<Self> {
        let mut readelf = Command::new("readelf");
        readelf.args(["--wide", "--dynamic", "--version-info"]);
        let needs = Self::of(&output(readelf.arg(shared).env("LC_ALL", "C"))?);
        let strange = needs
            .libraries
            .iter()
            .find(|name| !EVERYWHERE.contains(&name.as_str()));
        if let Some(name) = strange {
            return Err(Error::fell_short(
                format!("{}: it needs {name}", shared.display()),
                "what is for every Linux may not; link that library statically",
            ));
        }
        if needs.glibc == (0, 0) {
            return Err(Error::fell_short(
                format!("{}: it names no version of the C library", shared.display()),
                "readelf --version-info shows what it does name",
            ));
        }
        Ok(needs)
    }

    /// From `readelf --wide --dynamic --version-info`.
    fn of(text: &str) -> Self {
        let between = |line: &str, from: &str, to: char| -> Option<String> {
            let rest = line.split_once(from)?.1;
            Some(rest.split(to).next()?.trim().to_owned())
        };
        let mut needs = Self {
            glibc: (0, 0),
            libraries: BTreeSet::new(),
        };
        for line in text.lines() {
            if line.contains("(NEEDED)") {
                needs.libraries.extend(between(line, "[", ']'));
            }
            // Its own versions have an index, and no number.
            let version = between(line, "Name: GLIBC_", ' ').filter(|_| line.contains("Version:"));
            if let Some((major, minor)) = version.as_deref().and_then(|text| text.split_once('.')) {
                let minor = minor.split('.').next().unwrap_or_default();
                if let (Ok(major), Ok(minor)) = (major.parse(), minor.parse()) {
                    needs.glibc = needs.glibc.max((major, minor));
                }
            }
        }
        needs
    }
}

pub(super) struct Library {
    pub(super) shared: PathBuf,
    archive: PathBuf,
    pub(super) needs: Needs,
}

pub(super) struct Layout {
    pub(super) prefix: String,
    pub(super) libraries: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Runtime,
    Development,
}

pub(super) struct Placed {
    path: String,
    pub(super) part: Part,
    what: What,
}

enum What {
    File(Vec<u8>),
    Link(String),
}

impl Library {
    pub(super) fn built(release: &Path) -> Result<Self> {
        let shared = release.join("libgpureplay.so");
        Ok(Self {
            archive: release.join("libgpureplay.a"),
            needs: Needs::ask(&shared)?,
            shared,
        })
    }

    pub(super) fn placed(&self, source: &Source, layout: &Layout) -> Result<Vec<Placed>> {
        let header = source.top.join("replayer/c/include/gpureplay.h");
        let Layout { prefix, libraries } = layout;
        let in_libraries = |name: &str| format!("{prefix}/{libraries}/{name}");
        let real = format!("libgpureplay.so.{VERSION}");
        let placed = |path, part, what| Placed { path, part, what };
        Ok(vec![
            placed(
                in_libraries(&real),
                Part::Runtime,
                What::File(files::read(&self.shared)?),
            ),
            placed(in_libraries(SONAME), Part::Runtime, What::Link(real)),
            placed(
                in_libraries("libgpureplay.so"),
                Part::Development,
                What::Link(SONAME.into()),
            ),
            placed(
                in_libraries("libgpureplay.a"),
                Part::Development,
                What::File(files::read(&self.archive)?),
            ),
            placed(
                format!("{prefix}/include/gpureplay.h"),
                Part::Development,
                What::File(files::read(&header)?),
            ),
            placed(
                in_libraries("pkgconfig/gpureplay.pc"),
                Part::Development,
                What::File(layout.description().into_bytes()),
            ),
        ])
    }
}

impl Layout {
    /// Private libraries: those of `rustc --print native-static-libs` that a C compiler does not add.
    fn description(&self) -> String {
        let Self { prefix, libraries } = self;
        format!(
            "prefix={prefix}\nlibdir=${{prefix}}/{libraries}\nincludedir=${{prefix}}/include\n\n\
             Name: gpureplay\nDescription: Replays of recorded GPU computations\nVersion: {VERSION}\n\
             Libs: -L${{libdir}} -lgpureplay\nLibs.private: -lutil -lrt -lpthread -lm -ldl\nCflags: -I${{includedir}}\n"
        )
    }
}

impl Placed {
    pub(super) fn write_below(&self, root: &Path) -> Result<PathBuf> {
        let path = root.join(self.path.trim_start_matches('/'));
        // Programs keep the old file that they opened.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path)(error));
            }
            _ => {}
        }
        match &self.what {
            What::File(bytes) => write_file(&path, bytes, 0o644)?,
            What::Link(to) => {
                make_parent(&path)?;
                symlink(to, &path).map_err(Error::io("create", &path))?;
            }
        }
        Ok(path)
    }
}

pub(super) fn write_file(path: &Path, contents: &[u8], mode: u32) -> Result<()> {
    make_parent(path)?;
    files::write(path, contents)?;
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(Error::io("change", path))
}

fn make_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(folder) => files::create_dir(folder),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Layout, Needs};

    #[test]
    fn needs_are_the_newest_version_and_all_libraries() {
        let text = " 0x1 (NEEDED)  Shared library: [libm.so.6]\n \
                    0x1 (NEEDED)  Shared library: [libc.so.6]\n \
                    0xe (SONAME)  Library soname: [libgpureplay.so.0]\n  \
                    0x0010:   Name: GLIBC_2.9  Flags: none  Version: 4\n  \
                    0x0020:   Name: GLIBC_2.34  Flags: none  Version: 3\n  \
                    0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 2\n  \
                    0x001c: Rev: 1  Flags: none  Index: 2  Cnt: 1  Name: GLIBC_9.9\n  \
                    0x0040:   Name: GCC_4.2.0  Flags: none  Version: 5\n";
        let needs = Needs::of(text);
        assert_eq!(needs.glibc, (2, 34));
        let libraries: Vec<&str> = needs.libraries.iter().map(String::as_str).collect();
        assert_eq!(libraries, ["libc.so.6", "libm.so.6"]);
        assert_eq!(Needs::of("").glibc, (0, 0));
    }

    #[test]
    fn pkg_config_gets_the_layout() {
        let layout = Layout {
            prefix: "/opt/x".into(),
            libraries: "lib64".into(),
        };
        let text = layout.description();
        assert!(text.starts_with("prefix=/opt/x\nlibdir=${prefix}/lib64\n"));
        assert!(text.contains("\nLibs: -L${libdir} -lgpureplay\n"));
    }
}
