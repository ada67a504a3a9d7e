// SPDX-License-Identifier: MIT OR Apache-2.0
//! No user data is lost or misreported.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use gpureplay_kit::command::{Words, outcome};
use gpureplay_tensors::{ElementType, Tensor, parse_npy, read_npy, write_npy};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::start::{Ended, Folder, Says, command, json, ran_in, shipped};
use crate::values::safetensors;

pub(crate) struct Copy(Folder);

impl Copy {
    pub(crate) fn of(name: &str) -> Self {
        Self(Folder::with(name, "rec"))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.at(name)
    }

    pub(crate) fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((path.clone(), fs::read(path).unwrap())),
                }
            }
        }
        files.sort();
        files
    }

    pub(crate) fn ran(&self, words: &(impl Words + ?Sized)) -> (i32, String, String) {
        ran_in(self.folder(), words)
    }

    /// Ctrl-C comes later if nothing was done, as on a busy machine.
    pub(crate) fn interrupted(&self, words: &str) -> serde_json::Value {
        for seconds in [2, 8, 32, 128] {
            let child = command()
                .current_dir(self.folder())
                .args(words.split(' '))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_secs(seconds));
            kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                return serde_json::from_slice(&output.stdout).unwrap();
            }
            let error = String::from_utf8_lossy(&output.stderr);
            let early = output.status.code() == Some(130) || output.status.signal().is_some();
            assert!(early, "{error}");
        }
        panic!("{words}: nothing was done");
    }

    pub(crate) fn manifest(&self, change: impl Fn(&str) -> String) {
        let path = self.at("rec/manifest.toml");
        let text = fs::read_to_string(&path).unwrap();
        let changed = change(&text);
        assert_ne!(text, changed);
        fs::write(path, changed).unwrap();
    }
}

#[test]
fn finding_1_outputs_never_replace_what_is_read() {
    let copy = Copy::of("saxpy-g52");
    std::os::unix::fs::symlink("rec", copy.at("link")).unwrap();
    fs::hard_link(copy.at("rec/inputs/x.npy"), copy.at("hard.npy")).unwrap();
    fs::copy(copy.at("rec/inputs/x.npy"), copy.at("mine.npy")).unwrap();
    let before = copy.contents();
    for arguments in [
        "run rec --output rec/inputs/x.npy",
        "run rec --output link/inputs/x.npy",
        "run rec --output hard.npy",
        "run rec --input x=mine.npy --input y=rec/inputs/y.npy --output mine.npy",
        "run rec --trace rec/inputs/x.npy",
        "run rec --trace rec/recording.gpr",
        "run rec --expect rec/expected/out.npy --output rec/expected/out.npy",
        "pack rec -o rec/recording.gpr",
        "pack rec -o link/manifest.toml",
        "bench rec --runs 1 -o rec/manifest.toml",
        "bench rec --runs 1 -o rec/recording.gpr",
    ] {
        for force in ["", "--force"] {
            copy.ran(&format!("{arguments} {force}"))
                .ended(2, "this command reads");
        }
    }
    copy.ran("pack rec -o a.gprpack").gave(0);
    let pack = fs::read(copy.at("a.gprpack")).unwrap();
    copy.ran("run a.gprpack --trace a.gprpack --force").gave(2);
    assert!(fs::read(copy.at("a.gprpack")).unwrap() == pack);
    fs::remove_file(copy.at("a.gprpack")).unwrap();
    assert!(copy.contents() == before);
}

#[test]
fn finding_1_what_exists_is_replaced_only_by_force() {
    let copy = Copy::of("saxpy-g52");
    fs::write(copy.at("out.npy"), "precious").unwrap();
    for arguments in [
        "run rec --output out.npy",
        "run rec --trace out.npy",
        "tag --shape 4 out.npy",
        "pack rec -o out.npy",
        "bench rec --runs 1 --warmup 0 -o out.npy",
    ] {
        copy.ran(arguments).ended(6, "--force");
        assert_eq!(fs::read(copy.at("out.npy")).unwrap(), b"precious");
        copy.ran(&format!("{arguments} --force")).gave(0);
        assert_ne!(fs::read(copy.at("out.npy")).unwrap(), b"precious");
        fs::write(copy.at("out.npy"), "precious").unwrap();
    }
    copy.ran("run rec --output o.npy --trace o.npy").gave(2);
    assert!(!copy.at("o.npy").exists());
}

#[test]
fn finding_2_texts_of_strangers_move_nothing_on_a_terminal() {
    let copy = Copy::of("digits-g52");
    let evil = r"a\u001b[2J\u202eb\nforged \u009b5m";
    copy.manifest(|text| {
        let text = text.replace("name = \"digits-g52\"", &format!("name = \"{evil}\""));
        let text = text.replace("description = \"", &format!("description = \"{evil}"));
        let text = text.replace("gpu = \"", &format!("gpu = \"{evil}"));
        text.replace("reference = \"", &format!("reference = \"{evil}"))
            .replace("\"digit 0\"", &format!("\"{evil} 0\""))
    });
    for arguments in [
        "info rec",
        "info rec --json",
        "run rec --input rec/inputs/0.npy --top 3",
        "run rec --input rec/inputs/0.npy --json",
        "bench rec --runs 1 --warmup 0",
        "disasm rec --jobs 0",
        "verify rec",
        "dump rec",
    ] {
        let out = copy.ran(arguments).gave(0);
        let moves = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!out.contains(moves), "{arguments}: {out:?}");
        assert!(!out.contains("\nforged"), "{arguments}: {out}");
    }
    let value = json(&copy.ran("info rec --json").gave(0));
    assert_eq!(value["name"], "a\u{1b}[2J\u{202e}b\nforged \u{9b}5m");
    let strange = copy.at("x\x1b[2J\n\u{202e}");
    fs::create_dir(&strange).unwrap();
    for name in ["info", "verify"] {
        let output = command().arg(name).arg(&strange).output().unwrap();
        let error = outcome(output).ended(3, "");
        error.says(r"x\u001b[2J\u000a\u202e");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn finding_3_another_recording_beside_a_manifest_is_refused() {
    let copy = Copy::of("saxpy-g52");
    let other = shipped("saxpy-kbase-g52").join("recording.gpr");
    fs::copy(other, copy.at("rec/recording.gpr")).unwrap();
    for arguments in [
        "info rec",
        "verify --deep rec",
        "run rec",
        "bench rec --runs 1",
        "dump rec",
        "disasm rec",
        "pack rec -o a.gprpack",
        "diff rec --against model",
        "run rec/recording.gpr",
    ] {
        copy.ran(arguments).ended(3, "SHA-256");
    }
    assert!(!copy.at("a.gprpack").exists());
}

#[test]
fn finding_4_keygen_makes_both_keys_or_nothing() {
    let folder = Folder::default();
    let keygen = |name: &str| ran_in(folder.path(), &["keygen", name]);
    for name in [".", "..", "", "out/", "a/..", "a/.", "/"] {
        keygen(name).gave(2);
    }
    // As on a full disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f 0; exec {} keygen mine",
        env!("CARGO_BIN_EXE_gpureplay")
    );
    let mut shell = Command::new("sh");
    shell.current_dir(folder.path()).args(["-c", &script]);
    outcome(shell.output().unwrap()).gave(6);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    keygen("mine").gave(0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    keygen("mine").gave(6);
    fs::remove_file(folder.at("mine.pub.pem")).unwrap();
    keygen("mine").gave(6);
}

#[test]
fn finding_5_a_name_says_a_format_that_is_written() {
    let copy = Copy::of("saxpy-g52");
    for name in ["a.png", "a.safetensors", "a.txt", "a"] {
        copy.ran(&format!("run rec --output {name}")).gave(2);
        copy.ran(&format!("tag --shape 4 {name}")).gave(2);
        assert!(!copy.at(name).exists());
    }
    copy.ran("run rec --output out.bin").gave(0);
    assert_eq!(fs::metadata(copy.at("out.bin")).unwrap().len(), 4000);
}

#[test]
fn finding_6_a_fault_that_never_happens_is_an_error() {
    let copy = Copy::of("saxpy-g52");
    copy.ran("run rec --inject job-fault@99999999")
        .ended(2, "never happened");
    copy.ran("diff rec --against model --inject memory@99999999")
        .gave(2);
}

#[test]
fn finding_7_both_devices_of_a_diff_must_be_the_recorded_gpu() {
    let copy = Copy::of("saxpy-g52");
    for (device, against) in [("model", "model:g71"), ("model:g71", "model")] {
        copy.ran(&format!("diff rec --device {device} --against {against}"))
            .ended(5, "another GPU");
    }
}

#[test]
fn finding_9_a_dash_is_standard_output_and_nothing_else_is_on_it() {
    let copy = Copy::of("saxpy-g52");
    for name in ["-", "/dev/stdout"] {
        let mut run = command();
        run.current_dir(copy.folder());
        let output = run.args(["run", "rec", "--output", name]).output().unwrap();
        let tensor = parse_npy(&output.stdout).unwrap();
        assert_eq!(tensor.shape(), [1000]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("bit for bit"));
    }
    let quiet = copy.ran("run rec --output o.npy --quiet");
    assert_eq!(quiet, (0, String::new(), String::new()));
    json(&copy.ran("bench rec --runs 1 -o -").gave(0));
    assert!(!copy.at("-").exists());
    copy.ran("run rec --output - --json").gave(2);
    let mut child = command()
        .current_dir(copy.folder())
        .args("run rec --input x=- --input y=rec/inputs/y.npy".split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = fs::read(copy.at("rec/inputs/x.npy")).unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &bytes).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn finding_10_tags_that_repeat_are_said() {
    let folder = Folder::default();
    let tag = |words: &str| ran_in(folder.path(), &format!("tag --dtype u8 {words}"));
    tag("--shape 300 a.npy").ended(0, "255 different values");
    let quiet = tag("--shape 16 b.npy");
    assert_eq!(quiet, (0, String::new(), String::new()));
}

#[test]
fn finding_12_what_is_no_number_is_no_digit() {
    let copy = Copy::of("digits-g52");
    let nan = Tensor::from_f32(&[10], &[f32::NAN; 10]).unwrap();
    write_npy(&copy.at("nan.npy"), &nan).unwrap();
    let run = "run rec --input input=rec/inputs/3.npy --bind fc.bias=nan.npy";
    let out = copy.ran(&format!("{run} --output o.json")).gave(0);
    out.says("10 elements of probabilities 10 are NaN");
    assert!(!out.contains("→ digit"), "{out}");
    let text = fs::read_to_string(copy.at("o.json")).unwrap();
    let value = json(&text);
    assert_eq!(value["data"][0], "NaN");
    // A NaN is infinitely far off, in JSON too.
    let compared = format!("{run} --expect rec/expected/0.npy --json");
    let out = copy.ran(&compared).gave(1);
    let value = json(&out);
    let output = &value["outputs"]["probabilities"];
    assert_eq!(output["comparison"]["max_relative"], "Infinity");
    assert_eq!(output["nan"], 10);
    let (_, out, _) = copy.ran("run rec --layers pool1.. --recorded-values");
    out.says("not from an input");
}

#[test]
fn finding_15_verify_names_files_of_cases_that_are_missing() {
    let copy = Copy::of("saxpy-g52");
    copy.ran("verify rec").gave(0);
    fs::remove_file(copy.at("rec/expected/out.npy")).unwrap();
    copy.ran("verify rec").ended(4, "rec/expected/out.npy");
}

#[test]
fn finding_20_threads_have_bounds() {
    let copy = Copy::of("saxpy-g52");
    for threads in ["0", "100000", "-1", "x"] {
        let threads = format!("--threads={threads}");
        copy.ran(&format!("run rec {threads}"))
            .ended(2, "from 1 to 512");
    }
}

#[test]
fn messages_say_what_is_expected_and_what_to_do() {
    let copy = Copy::of("digits-g52");
    let message = |tensor: &Tensor| {
        write_npy(&copy.at("x.npy"), tensor).unwrap();
        copy.ran("run rec --input x.npy").ended(4, "")
    };
    let double = message(&Tensor::zeros(ElementType::F64, &[8, 8]).unwrap());
    double.says("expected f32[8,8] for input `input`, got f64[8,8]");
    double.says("astype(\"float32\")");
    let deep = message(&Tensor::zeros(ElementType::F32, &[1, 8, 8]).unwrap());
    deep.says("reshape(8, 8)");
    let file = |name: &str, bytes: &[u8]| {
        fs::write(copy.at(name), bytes).unwrap();
        copy.ran(&format!("run rec --input {name}")).2
    };
    assert!(file("x.npz", b"PK\x03\x04....").contains("archive of several arrays"));
    assert!(file("x.csv", b"1,2,3\n").contains("numpy.save"));
    assert!(file("x.safetensors", &safetensors("{}")).contains("it has no tensors"));
    let (_, _, error) = copy.ran("disasm rec --jobs 99");
    error.says("jobs are 0 to 19");
    let (_, _, error) = copy.ran("bench rec --runs x");
    error.says("expected a whole number");
    let far = "run rec --input rec/inputs/3.npy --expect rec/expected/4.npy";
    let out = copy.ran(far).gave(1);
    let digits = |word: &str| word.bytes().filter(u8::is_ascii_digit).count();
    assert!(
        out.split_whitespace().all(|word| digits(word) < 12),
        "{out}"
    );
    assert!(read_npy(&copy.at("rec/inputs/3.npy")).is_ok());
}

#[test]
fn a_buffer_takes_an_array_of_any_shape() {
    let copy = Copy::of("saxpy-g52");
    let ran = |shape: &[u64], bytes: &[u8]| {
        let tensor = Tensor::new(ElementType::F32, shape, bytes.to_vec()).unwrap();
        write_npy(&copy.at("x.npy"), &tensor).unwrap();
        let words = "run rec --input x=x.npy --input y=rec/inputs/y.npy --output out=y.npy";
        copy.ran(words)
    };
    let x: Vec<u8> = (0..1000u16)
        .flat_map(|at| f32::from(at).to_le_bytes())
        .collect();
    let values = |shape: &[u64]| {
        ran(shape, &x).gave(0);
        let read = read_npy(&copy.at("y.npy")).unwrap();
        fs::remove_file(copy.at("y.npy")).unwrap();
        (read.shape().to_vec(), read.into_bytes())
    };
    let flat = values(&[1000]);
    assert_eq!(values(&[10, 100]), flat);
    assert_eq!(values(&[1, 1000]), flat);
    assert_ne!(
        flat.1,
        read_npy(&copy.at("rec/expected/out.npy"))
            .unwrap()
            .into_bytes()
    );
    ran(&[10, 99], &x[..4 * 990]).ended(4, "expected f32[1000] for input `x`, got f32[10,99]");
}
