// SPDX-License-Identifier: MIT OR Apache-2.0
//! Complaints of checkers about our modules.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{
    build::payload::{in_root, nano_make, nano_sources},
    error::{Error, Result},
    files,
    folder::Folder,
};

const KERNELS: [&str; 3] = ["old", "stock", "new"];

const NEEDED: [&str; 2] = ["CONFIG_PM", "CONFIG_IOMMU_IO_PGTABLE_LPAE"];

pub(crate) fn nano(folder: &Folder) -> Result<Vec<String>> {
    let _lock = Folder::lock(&folder.local)?;
    let mut complaints = Vec::new();
    for which in KERNELS {
        let release = folder.kernel(which)?;
        // A new directory, so that make compiles everything.
        let name = format!("nano-{which}");
        let _ = fs::remove_dir_all(folder.local.join(&name));
        let work = nano_sources(folder, &name)?;
        let mut make = nano_make(folder, &release, &work);
        make.arg("W=1");
        if which == "stock" {
            make.args(["C=1", "CHECK=sparse"]);
        }
        complaints.extend(listen(&mut make, &release)?);
    }
    complaints.extend(style(folder, &["nano-driver", "tools/guest/modules"])?);
    Ok(complaints)
}

/// Options without which the nano driver builds, or fails for another reason.
pub(crate) fn unneeded(folder: &Folder) -> Result<Vec<String>> {
    let _lock = Folder::lock(&folder.local)?;
    let release = folder.stock_kernel()?;
    let work = nano_sources(folder, "nano-without")?;
    let (header, kbuild) = (work.join("without.h"), work.join("Kbuild"));
    let own = files::text(&kbuild)?;
    let text = format!("{own}ccflags-y += -include {}\n", header.display());
    files::write(&kbuild, text)?;
    let mut unneeded = Vec::new();
    for option in NEEDED {
        let text = format!("#undef {option}\n");
        files::write(&header, text)?;
        let said = listen(&mut nano_make(folder, &release, &work), option)?;
        let reason = format!("needs {option}");
        if !said.iter().any(|line| line.contains(&reason)) {
            unneeded.push(format!("{option}: {}", said.join(", ")));
        }
    }
    Ok(unneeded)
}

pub(crate) fn recorder(folder: &Folder) -> Result<Vec<String>> {
    let _lock = Folder::lock(&folder.local)?;
    let mut complaints = Vec::new();
    for which in KERNELS {
        let release = folder.kernel(which)?;
        let mut build = in_root(folder);
        build
            .arg("bash")
            .arg(folder.repository.join("driver-patch/build"))
            .args(["kprobes", "--check", "--kernel", &release, "--out"])
            .arg(folder.local.join(format!("recorder-{which}")));
        complaints.extend(listen(&mut build, &release)?);
    }
    let folders = ["driver-patch/recorder", "driver-patch/kprobes"];
    complaints.extend(style(folder, &folders)?);
    Ok(complaints)
}

fn style(folder: &Folder, folders: &[&str]) -> Result<Vec<String>> {
    let checkpatch = folder.stock_source()? + "/scripts/checkpatch.pl";
    let mut files: Vec<PathBuf> = Vec::new();
    for name in folders {
        let dir = folder.repository.join(name);
        for path in files::entries(&dir)? {
            if path.extension().is_some_and(|end| end == "c" || end == "h") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut command = in_root(folder);
    command
        .arg("perl")
        .arg(checkpatch)
        .args(["--no-tree", "--strict", "--terse", "--no-summary", "-f"])
        .args(files);
    listen(&mut command, "checkpatch")
}

fn listen(command: &mut Command, what: &str) -> Result<Vec<String>> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(Error::start("in-root"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let complains = |line: &&str| {
        let marks = ["warning:", "error:", "WARNING:", "ERROR:", "CHECK:"];
        marks.iter().any(|mark| line.contains(mark)) && !line.contains("modpost: missing")
    };
    let lines = said.lines().filter(complains);
    let mut complaints: Vec<String> = lines.map(|line| format!("{what}: {line}")).collect();
    if !output.status.success() {
        complaints.push(format!("{what}: ended with {}", output.status));
    }
    Ok(complaints)
}
