// SPDX-License-Identifier: MIT OR Apache-2.0
//! `extract` and `unpack`.

use std::fs;
use std::path::Path;

use crate::start::{Ended, Folder, said as code, shipped};

#[test]
fn an_extracted_job_runs_and_matches_bit_for_bit() {
    let folder = Folder::default();
    let out = folder.text("job");
    let extract = format!("extract acl-gemm-g52 --job /matrix_nt/ -o {out}");
    code(&extract).ended(0, "gives every byte");
    code(&format!("run {out}")).ended(0, "bit for bit");
    code(&format!("verify --deep {out}")).gave(0);
    let first = fs::read(Path::new(&out).join("recording.gpr")).unwrap();
    code(&extract).gave(6);
    fs::write(Path::new(&out).join("recording.sig"), "no signature").unwrap();
    code(&format!("{extract} --force")).gave(0);
    assert_eq!(
        fs::read(Path::new(&out).join("recording.gpr")).unwrap(),
        first
    );
    assert!(!Path::new(&out).join("recording.sig").exists());
    let expected = Path::new(&out).join("expected/written.npy");
    let mut bytes = fs::read(&expected).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&expected, bytes).unwrap();
    code(&format!("run {out}")).gave(1);
}

#[test]
fn dispatches_of_a_kernel_are_taken_out_one_by_one() {
    let folder = Folder::default();
    let all = folder.text("all");
    let extract = "extract digits-g52 --job hash:98aa";
    code(&format!("{extract} --dispatches all -o {all}")).gave(0);
    for job in [0, 2, 4] {
        code(&format!("run {all}/job{job}")).gave(0);
    }
    let first = folder.text("first");
    code(&format!("{extract} -o {first}")).gave(0);
    let bytes = |path: String| fs::read(path + "/recording.gpr").unwrap();
    assert_eq!(bytes(first), bytes(format!("{all}/job0")));
    let none = folder.text("none");
    code(&format!("extract digits-g52 --job 20 -o {none}")).ended(2, "jobs are 0 to 19");
}

#[test]
fn finding_19_weights_and_other_values_are_taken_out() {
    let folder = Folder::default();
    let output = folder.text("out.npy");
    code(&format!("extract saxpy-g52 --tensor out -o {output}")).gave(0);
    let run = folder.text("run.npy");
    code(&format!("run saxpy-g52 --output {run}")).gave(0);
    assert_eq!(fs::read(&output).unwrap(), fs::read(run).unwrap());
    let weight = folder.text("w.npy");
    code(&format!(
        "extract digits-g52 --tensor conv1.weight -o {weight}"
    ))
    .gave(0);
    // Binding a weight's own value changes nothing.
    let bound = format!("conv1.weight={weight}");
    code(&format!("run digits-g52 --input {bound}")).gave(0);
    let (done, _) = code(&format!(
        "extract digits-g52 --tensor none -o {}",
        folder.text("n.npy")
    ));
    assert_ne!(done, 0);
}

#[test]
fn a_pack_is_unpacked_into_what_was_packed() {
    let folder = Folder::default();
    let names = ["saxpy.gprpack", "saxpy", "again.gprpack"];
    let [pack, out, again] = names.map(|name| folder.text(name));
    code(&format!("pack saxpy-g52 -o {pack}")).gave(0);
    code(&format!("unpack {pack} -o {out}")).gave(0);
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
    code(&format!("pack {out} -o {again}")).gave(0);
    assert_eq!(fs::read(&pack).unwrap(), fs::read(&again).unwrap());
    assert_eq!(
        code(&format!("unpack {pack} -o {out}")).0,
        6,
        "nothing is replaced"
    );
    let other = folder.text("other");
    code(&format!("unpack saxpy-g52 -o {other}")).gave(2);
    let mut damaged = fs::read(&pack).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&pack, damaged).unwrap();
    code(&format!("unpack {pack} -o {other}")).gave(3);
    assert!(!Path::new(&other).exists());
}

fn values(path: &Path) -> Vec<u8> {
    let tensor = gpureplay_tensors::read_npy(path).unwrap();
    tensor.bytes().to_vec()
}

#[test]
fn layers_and_ranges_of_jobs_are_one_recording() {
    let folder = Folder::default();
    for (recording, words, last) in [
        ("lenet-g52", "--layers conv1..pool1", "pool1"),
        ("lenet-g52", "--jobs layer:conv2,layer:pool2", "pool2"),
        ("digits-g52", "--layers conv1..conv2", "conv2"),
    ] {
        let out = folder.text(last);
        code(&format!("extract {recording} {words} -o {out}")).ended(0, "give every byte");
        code(&format!("verify --deep {out}")).gave(0);
        let mine = folder.text("mine.npy");
        let output = format!("{last}={mine}");
        code(&format!("run {out} --output {output} --force")).ended(0, "bit for bit");
        let whole = folder.text("whole.npy");
        let tensor = format!("extract {recording} --tensor {last} -o {whole} --force");
        code(&tensor).gave(0);
        assert_eq!(
            values(Path::new(&mine)),
            values(Path::new(&whole)),
            "{last}"
        );
        let (_, listed) = code(&format!("jobs {out} --static"));
        assert!(listed.lines().count() > 3, "{listed}");
    }
    code(&format!(
        "extract lenet-g52 --layers pool1..conv1 -o {}",
        folder.text("x")
    ))
    .failed("before the first");
}

#[test]
fn a_job_has_no_outputs_of_other_layers() {
    let folder = Folder::default();
    let out = folder.text("job");
    code(&format!("extract lenet-g52 --jobs 9 -o {out}")).gave(0);
    let (_, info) = code(&format!("info {out}"));
    // conv2 and ip1 reuse it later.
    assert!(info.contains("conv1") && !info.contains("conv2"), "{info}");
}
