// SPDX-License-Identifier: MIT OR Apache-2.0
//! `extract` and `unpack`.

use std::fs;
use std::path::Path;

use crate::start::{Ended, said as code, shipped};

#[test]
fn an_extracted_job_runs_and_matches_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("job").display().to_string();
    let extract = [
        "extract",
        "acl-gemm-g52",
        "--job",
        "/matrix_nt/",
        "-o",
        &out,
    ];
    code(&extract).ended(0, "gives every byte");
    code(&["run", &out]).ended(0, "bit for bit");
    assert_eq!(code(&["verify", "--deep", &out]).0, 0);
    let first = fs::read(Path::new(&out).join("recording.gpr")).unwrap();
    assert_eq!(code(&extract).0, 6);
    fs::write(Path::new(&out).join("recording.sig"), "no signature").unwrap();
    assert_eq!(code(&[&extract[..], &["--force"]].concat()).0, 0);
    assert_eq!(
        fs::read(Path::new(&out).join("recording.gpr")).unwrap(),
        first
    );
    assert!(!Path::new(&out).join("recording.sig").exists());
    let expected = Path::new(&out).join("expected/written.npy");
    let mut bytes = fs::read(&expected).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&expected, bytes).unwrap();
    assert_eq!(code(&["run", &out]).0, 1);
}

#[test]
fn dispatches_of_a_kernel_are_taken_out_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).display().to_string();
    let all = out("all");
    let extract = ["extract", "digits-g52", "--job", "hash:98aa"];
    code(&[&extract[..], &["--dispatches", "all", "-o", &all]].concat()).gave(0);
    for job in [0, 2, 4] {
        assert_eq!(code(&["run", &format!("{all}/job{job}")]).0, 0);
    }
    let first = out("first");
    assert_eq!(code(&[&extract[..], &["-o", &first]].concat()).0, 0);
    let bytes = |path: String| fs::read(path + "/recording.gpr").unwrap();
    assert_eq!(bytes(first), bytes(format!("{all}/job0")));
    code(&["extract", "digits-g52", "--job", "20", "-o", &out("none")])
        .ended(2, "jobs are 0 to 19");
}

#[test]
fn finding_19_weights_and_other_values_are_taken_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let output = at("out.npy");
    code(&["extract", "saxpy-g52", "--tensor", "out", "-o", &output]).gave(0);
    let run = at("run.npy");
    assert_eq!(code(&["run", "saxpy-g52", "--output", &run]).0, 0);
    assert_eq!(fs::read(&output).unwrap(), fs::read(run).unwrap());
    let weight = at("w.npy");
    code(&format!(
        "extract digits-g52 --tensor conv1.weight -o {weight}"
    ))
    .gave(0);
    // Binding a weight's own value changes nothing.
    let bound = format!("conv1.weight={weight}");
    code(&["run", "digits-g52", "--input", &bound]).gave(0);
    let (done, _) = code(&format!(
        "extract digits-g52 --tensor none -o {}",
        at("n.npy")
    ));
    assert_ne!(done, 0);
}

#[test]
fn a_pack_is_unpacked_into_what_was_packed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (pack, out, again) = (at("saxpy.gprpack"), at("saxpy"), at("again.gprpack"));
    assert_eq!(code(&["pack", "saxpy-g52", "-o", &pack]).0, 0);
    code(&["unpack", &pack, "-o", &out]).gave(0);
    for file in [
        "recording.gpr",
        "manifest.toml",
        "inputs/x.npy",
        "expected/out.npy",
    ] {
        let recordings = shipped("saxpy-g52");
        let same = fs::read(Path::new(&out).join(file)).unwrap()
            == fs::read(recordings.join(file)).unwrap();
        assert!(same, "{file}");
    }
    assert_eq!(code(&["pack", &out, "-o", &again]).0, 0);
    assert_eq!(fs::read(&pack).unwrap(), fs::read(&again).unwrap());
    assert_eq!(
        code(&["unpack", &pack, "-o", &out]).0,
        6,
        "nothing is replaced"
    );
    assert_eq!(code(&["unpack", "saxpy-g52", "-o", &at("x")]).0, 2);
    let mut damaged = fs::read(&pack).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&pack, damaged).unwrap();
    assert_eq!(code(&["unpack", &pack, "-o", &at("y")]).0, 3);
    assert!(!Path::new(&at("y")).exists());
}

fn values(path: &Path) -> Vec<u8> {
    let tensor = gpureplay_tensors::read_npy(path).unwrap();
    tensor.bytes().to_vec()
}

#[test]
fn layers_and_ranges_of_jobs_are_one_recording() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (recording, words, last) in [
        ("lenet-g52", "--layers conv1..pool1", "pool1"),
        ("lenet-g52", "--jobs layer:conv2,layer:pool2", "pool2"),
        ("digits-g52", "--layers conv1..conv2", "conv2"),
    ] {
        let out = at(last);
        code(&format!("extract {recording} {words} -o {out}")).ended(0, "give every byte");
        assert_eq!(code(&["verify", "--deep", &out]).0, 0);
        let mine = at("mine.npy");
        let output = format!("{last}={mine}");
        code(&["run", &out, "--output", &output, "--force"]).ended(0, "bit for bit");
        let whole = at("whole.npy");
        let tensor = format!("extract {recording} --tensor {last} -o {whole} --force");
        code(&tensor).gave(0);
        assert_eq!(
            values(Path::new(&mine)),
            values(Path::new(&whole)),
            "{last}"
        );
        // Other bytes are there before each run.
        let (_, listed) = code(&["jobs", &out, "--static"]);
        assert!(listed.lines().count() > 3, "{listed}");
    }
    let (done, text) = code(&format!(
        "extract lenet-g52 --layers pool1..conv1 -o {}",
        at("x")
    ));
    assert!(done != 0 && text.contains("before the first"), "{text}");
}

#[test]
fn a_job_has_no_outputs_of_other_layers() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("job").display().to_string();
    code(&["extract", "lenet-g52", "--jobs", "9", "-o", &out]).gave(0);
    let (_, info) = code(&["info", &out]);
    // conv2 and ip1 reuse it later.
    assert!(info.contains("conv1") && !info.contains("conv2"), "{info}");
}
