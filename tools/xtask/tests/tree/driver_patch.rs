// SPDX-License-Identifier: MIT OR Apache-2.0
//! `driver-patch/build kbase` explains refusals.

use std::{
    fs,
    process::{Command, Output},
};

use tempfile::TempDir;

fn tree(release: &str, files: &[&str]) -> TempDir {
    let tree = tempfile::tempdir().expect("temporary directory");
    let write = |name: &str, text: &str| {
        let path = tree.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directory");
        fs::write(path, text).expect("file");
    };
    write("mali_kbase_core_linux.c", "\n");
    write("Kbuild", &format!("MALI_RELEASE_NAME ?= '\"{release}\"'\n"));
    for name in files {
        write(name, "\n");
    }
    tree
}

fn script(name: &str) -> Command {
    let folder = super::top().join("driver-patch");
    let mut command = Command::new("bash");
    command.arg(folder.join(name));
    command
}

fn build(release: &str, files: &[&str]) -> Output {
    let tree = tree(release, files);
    let out = tempfile::tempdir().expect("temporary directory");
    script("build")
        .args(["kbase", "--patch-only", "--source"])
        .arg(tree.path())
        .arg("--out")
        .arg(out.path())
        .output()
        .expect("bash runs")
}

fn refused(release: &str, files: &[&str], reason: &str) {
    let output = build(release, files);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{release}: {said}");
    assert!(said.contains(reason), "{release}: {said}");
}

const JOB_MANAGER: &str = "backend/gpu/mali_kbase_jm_hw.c";

#[test]
fn releases_outside_the_range_are_refused() {
    for release in ["r8p0-01eac0", "r45p0-01eac0", "r54p1-00eac0"] {
        refused(release, &[JOB_MANAGER], "r9p0 to r44p1 are supported");
    }
    refused("", &[JOB_MANAGER], "which release is it?");
}

#[test]
fn a_driver_for_command_streams_only_is_refused() {
    let markers = [
        "csf/mali_kbase_csf.c",
        "device/backend/mali_kbase_device_csf.c",
    ];
    refused("r38p0-01eac0", &markers, "no job-manager backend");
}

#[test]
fn a_supported_release_is_not_refused_for_its_age() {
    let output = build("r16p0-01rel0", &[JOB_MANAGER]);
    let said = String::from_utf8_lossy(&output.stderr);
    // The tree lacks places for hooks, or this machine a tool.
    assert!(!said.contains("are supported"), "{said}");
    assert!(
        said.contains("does not take the hooks") || said.contains("spatch is missing"),
        "{said}"
    );
}

#[test]
fn the_table_has_a_line_for_each_source() {
    let trees = [
        tree("r45p0-01eac0", &[JOB_MANAGER]),
        tree("r38p0-01eac0", &["csf/mali_kbase_csf.c"]),
    ];
    let output = script("releases")
        .args(trees.iter().map(TempDir::path))
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let lines: Vec<&str> = said.lines().skip(1).collect();
    assert_eq!(lines.len(), trees.len(), "{said}");
    assert!(
        lines.iter().all(|line| line.contains(" refused ")),
        "{said}"
    );
    assert!(said.contains("r45p0") && said.contains("no job-manager backend"));
}

#[test]
fn a_table_of_nothing_is_an_error() {
    let empty = tempfile::tempdir().expect("temporary directory");
    let output = script("releases").arg(empty.path()).output();
    assert_eq!(output.expect("bash runs").status.code(), Some(1));
    let output = script("releases").arg(empty.path().join("none")).output();
    assert_eq!(output.expect("bash runs").status.code(), Some(1));
}
