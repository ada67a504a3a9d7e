// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian packages: the command and the C library.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use gpureplay_task::run;

use super::{
    Machine, SONAME, Source, VERSION,
    library::{Layout, Library, Needs, Part},
    name,
    tree::Tree,
};
use crate::{error::Result, files};

/// Crate, file: recorded apps load them.
pub(super) const COMPANIONS: [(&str, &str); 3] = [
    ("gpureplay-opencl", "libgpureplay_opencl.so"),
    ("gpureplay-recorder", "libgpureplay_recorder.so"),
    ("gpureplay-node", "libgpureplay_node.so"),
];

const SHIPPED: [&str; 6] = [
    "saxpy-g52",
    "digits-g52",
    "digits-g57",
    "digits-g610",
    "bits-g52",
    "bits-g57",
];

const PRIVATE: &str = "usr/lib/gpureplay";

pub(super) fn control(name: &str, architecture: &str, more: &str) -> String {
    format!(
        "Package: {name}\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: gpureplay maintainers <maintainers@users.noreply.example>\n\
         Section: utils\nPriority: optional\n{more}"
    )
}

pub(super) fn read(source: &Source, path: &str) -> Result<Vec<u8>> {
    files::read(source.top.join(path))
}

pub(super) fn copyright(source: &Source, licences: &[&str]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for licence in licences {
        text.extend(read(source, licence)?);
        text.push(b'\n');
    }
    Ok(text)
}

/// It must run here, or man pages and completions are missing.
pub(super) fn command(
    source: &Source,
    architecture: &str,
    command: &Path,
    companions: &[PathBuf],
    packages: &Path,
) -> Result<PathBuf> {
    let tree = Tree::new()?;
    let bytes = files::read(command)?;
    tree.put("usr/bin/gpureplay", bytes, 0o755)?;
    let mut glibc = (0, 0);
    for file in companions {
        glibc = glibc.max(Needs::ask(file)?.glibc);
        let bytes = files::read(file)?;
        tree.put(&format!("{PRIVATE}/{}", name(file)), bytes, 0o644)?;
    }
    for recording in SHIPPED {
        let from = source.top.join("recordings").join(recording);
        copy(
            &from,
            &tree,
            &format!("usr/share/gpureplay/recordings/{recording}"),
        )?;
    }
    let says = |arguments: &[&str]| {
        let output = Command::new(command).args(arguments).output().ok()?;
        output.status.success().then_some(output.stdout)
    };
    if says(&["--version"]).is_some() {
        for (shell, path) in [
            ("bash", "usr/share/bash-completion/completions/gpureplay"),
            ("zsh", "usr/share/zsh/vendor-completions/_gpureplay"),
            ("fish", "usr/share/fish/vendor_completions.d/gpureplay.fish"),
        ] {
            tree.put(
                path,
                says(&["generate", "completions", shell]).unwrap_or_default(),
                0o644,
            )?;
        }
        let manual = tree.path().join("usr/share/man/man1");
        run(
            "writing man pages",
            Command::new(command)
                .args(["--quiet", "generate", "man", "--output"])
                .arg(&manual),
        )?;
        let pages = files::entries(&manual)?;
        // Without name and time: builds are reproducible.
        run(
            "compressing man pages",
            Command::new("gzip").args(["-9n"]).args(pages),
        )?;
    }
    let licences = copyright(source, &["LICENSE-MIT", "LICENSE-APACHE"])?;
    tree.put("usr/share/doc/gpureplay/copyright", licences, 0o644)?;
    // The command is static, its libraries are not.
    let text = format!(
        "Depends: libc6 (>= {}.{}), libgcc-s1\nRecommends: ocl-icd-libopencl1, mesa-opencl-icd\n\
         Description: records a GPU app once, replays it without the GPU stack\n \
         Records OpenCL apps on the kernel's own panfrost driver, or on the GPU model.\n \
         Replays run on panfrost, on the GPU model, on the nano driver, or through /dev/mem.\n",
        glibc.0, glibc.1
    );
    tree.put(
        "DEBIAN/control",
        control("gpureplay", architecture, &text),
        0o644,
    )?;
    tree.pack(
        source,
        packages.join(format!("gpureplay_{VERSION}_{architecture}.deb")),
    )
}

fn copy(from: &Path, tree: &Tree, to: &str) -> Result<()> {
    for path in files::entries(from)? {
        let to = format!("{to}/{}", name(&path));
        match path.is_dir() {
            true => copy(&path, tree, &to)?,
            false => {
                let bytes = files::read(&path)?;
                tree.put(&to, bytes, 0o644)?;
            }
        }
    }
    Ok(())
}

pub(super) fn library(
    source: &Source,
    machine: Machine,
    library: &Library,
    packages: &Path,
) -> Result<[PathBuf; 2]> {
    let architecture = machine.debian();
    let (major, minor) = library.needs.glibc;
    let layout = Layout {
        prefix: "/usr".into(),
        libraries: format!("lib/{}", machine.multiarch()),
    };
    let runtime = format!(
        "libgpureplay{}",
        SONAME.rsplit('.').next().unwrap_or_default()
    );
    let development = "libgpureplay-dev".to_owned();
    let pack = |name: &str, part: Part, text: &str, more: &[(&str, String)]| {
        let tree = Tree::new()?;
        for placed in library.placed(source, &layout)? {
            if placed.part == part {
                tree.place(&placed)?;
            }
        }
        let licences = copyright(source, &["LICENSE-MIT", "LICENSE-APACHE"])?;
        tree.put(&format!("usr/share/doc/{name}/copyright"), licences, 0o644)?;
        for (path, contents) in more {
            tree.put(path, contents, 0o644)?;
        }
        let text = format!("Multi-Arch: same\n{text}");
        tree.put("DEBIAN/control", control(name, architecture, &text), 0o644)?;
        tree.pack(
            source,
            packages.join(format!("{name}_{VERSION}_{architecture}.deb")),
        )
    };
    let example = String::from_utf8_lossy(&read(source, "replayer/c/examples/digits.c")?).into();
    Ok([
        pack(
            &runtime,
            Part::Runtime,
            &format!(
                "Depends: libc6 (>= {major}.{minor}), libgcc-s1\nDescription: replays of recorded GPU computations, shared library\n \
                 What programs need that call gpureplay through its C interface.\n"
            ),
            &[
                // For the loader's cache, and for packages that users build.
                ("DEBIAN/triggers", "activate-noawait ldconfig\n".into()),
                (
                    "DEBIAN/shlibs",
                    format!("libgpureplay 0 {runtime} (>= {VERSION})\n"),
                ),
            ],
        )?,
        pack(
            &development,
            Part::Development,
            &format!(
                "Depends: {runtime} (= {VERSION})\nDescription: replays of recorded GPU computations, for programs in C\n \
                 Header, static library, gpureplay.pc, and an example.\n"
            ),
            &[(
                &format!("usr/share/doc/{development}/examples/digits.c"),
                example,
            )],
        )?,
    ])
}
