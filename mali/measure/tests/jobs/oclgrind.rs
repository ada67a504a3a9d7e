// SPDX-License-Identifier: MIT OR Apache-2.0
//! `saxpy-g52` moves the bytes that Oclgrind counts.

use std::path::Path;
use std::process::Command;

use gpureplay_jobs::Jobs;
use gpureplay_jobs::analysis::analyse::analyse;
use gpureplay_jobs::analysis::report::{Report, Verdict};
use gpureplay_library::{Error, ModelOptions, Recording, Session};

fn source(app: &str) -> String {
    let text = app
        .split_once("source[] =")
        .unwrap()
        .1
        .split_once(';')
        .unwrap();
    let rest = text.1.split_once("\";").unwrap().0;
    let quoted = format!("{};{rest}\"", text.0);
    quoted.split('"').skip(1).step_by(2).collect()
}

#[test]
fn saxpy_moves_the_bytes_that_oclgrind_counts() {
    if Command::new("oclgrind-kernel")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: no oclgrind-kernel on this machine (Debian's package oclgrind)");
        return;
    }
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let app = std::fs::read_to_string(top.join("tools/guest/apps/saxpy.c")).unwrap();
    let recording = Recording::open(top.join("recordings/saxpy-g52")).unwrap();
    let jobs = Jobs::of(&recording).unwrap();
    let what = "heat,races".parse().unwrap();
    let report = analyse(
        &recording,
        &jobs,
        &[0],
        what,
        ModelOptions::default(),
        Session::bind_case,
    );
    let report: Report = report.map_err(|error: Error| error.to_string()).unwrap();
    let (job, [local, ..]) = (&report.jobs[0], report.jobs[0].local.unwrap());
    let global = local * job.groups.unwrap()[0];

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("saxpy.cl"), source(&app)).unwrap();
    let bytes = global * 4;
    let sim = format!(
        "saxpy.cl\nsaxpy\n{global} 1 1\n{local} 1 1\n\n<size={bytes} float fill=1>\n<size={bytes} float fill=2>\n<size={bytes} float fill=0>\n<size=4 float>\n2.5\n"
    );
    std::fs::write(folder.path().join("saxpy.sim"), sim).unwrap();
    let output = Command::new("oclgrind-kernel")
        .args(["--data-races", "--inst-counts", "saxpy.sim"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let counted = |of: &str| -> u64 {
        let line = text.lines().find(|line| line.contains(of)).unwrap();
        let (_, rest) = line.split_once('(').unwrap();
        rest.split_once(" bytes")
            .unwrap()
            .0
            .replace(',', "")
            .parse()
            .unwrap()
    };
    let area = |name: &str| job.heat.iter().find(|area| area.name == name).unwrap();
    assert_eq!(area("x").read + area("y").read, counted("load global"));
    assert_eq!(area("out").written, counted("store global"));
    assert!(!text.contains("race at"), "{text}");
    assert_eq!(report.verdict("races"), Some(Verdict::Clean));
}
